#include "planning/table.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/units.hpp"
#include "planning/shipped_tables.hpp"
#include "unit/planning/entries.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;

TuningTable table_of(std::vector<TuningSource> sources) {
  auto table = TuningTable::from_sources(std::move(sources));
  EXPECT_TRUE(table.is_ok()) << table.status().to_string();
  return *std::move(table);
}

// What the table names for `bytes`, from one source after the other: "a, b".
std::string all_found(const TuningTable& table, const TuningTable::Key& key,
                      const Topology& topology = eight_h200()) {
  std::string all;
  for (const auto& match : table.matches(key, topology)) {
    const auto is = [](const auto* wanted) {
      return [wanted](const auto& each) { return &each == wanted; };
    };
    EXPECT_TRUE(std::ranges::any_of(table.sources(), is(match.source)));
    EXPECT_TRUE(std::ranges::any_of(match.source->entries, is(match.entry)));
    all += (all.empty() ? "" : ", ") + std::string(name_of_id(match.entry->algorithm));
  }
  return all;
}

// What it names first; "none" where nothing matches.
std::string found(const TuningTable& table, std::size_t bytes,
                  const Topology& topology = eight_h200()) {
  const auto matches = table.matches({Collective::kAllReduce, bytes}, topology);
  return matches.empty() ? "none" : matches.front().entry->algorithm;
}

// Those of symmetric buffers are better than nothing.
TEST(TuningTable, PlainBuffersHaveEntriesOfTheirOwn) {
  TuningEntry plain = entry_of(100, 199, "all_reduce/plain");
  plain.plain = true;
  TuningEntry shipped_plain = plain;
  shipped_plain.algorithm = "all_reduce/shipped_plain";
  const TuningEntry symmetric = entry_of(0, 299, "all_reduce/symmetric");
  const TuningEntry shipped = entry_of(0, 999, "all_reduce/shipped");
  const auto named = [](const TuningTable& table, std::size_t bytes, bool for_plain) {
    return all_found(table, {Collective::kAllReduce, bytes, for_plain});
  };
  const TuningTable both = table_of({{PlanSource::kUserCache, "c", {symmetric, plain}},
                                     {PlanSource::kShipped, "s", {shipped, shipped_plain}}});
  EXPECT_EQ(named(both, 150, true), "plain, shipped_plain, symmetric, shipped");
  EXPECT_EQ(named(both, 150, false), "symmetric, shipped");
  EXPECT_EQ(named(both, 250, true), "symmetric, shipped");
  EXPECT_EQ(named(both, 350, true), "shipped");

  // A user who has tuned symmetric buffers keeps what is known of plain ones.
  const TuningTable tuned = table_of(
      {{PlanSource::kUserCache, "c", {symmetric}}, {PlanSource::kShipped, "s", {shipped_plain}}});
  EXPECT_EQ(named(tuned, 150, true), "shipped_plain, symmetric");
}

TEST(TuningTable, RangesAreInclusiveAtBothEnds) {
  const TuningTable table = table_of(
      {{PlanSource::kShipped,
        "s",
        {entry_of(1024, 65536, "all_reduce/a"), entry_of(65537, 1 << 20, "all_reduce/b")}}});
  EXPECT_EQ(found(table, 1023), "none");
  EXPECT_EQ(found(table, 1024), "all_reduce/a");
  EXPECT_EQ(found(table, 65535), "all_reduce/a");
  EXPECT_EQ(found(table, 65536), "all_reduce/a");
  EXPECT_EQ(found(table, 65537), "all_reduce/b");
  EXPECT_EQ(found(table, 1 << 20), "all_reduce/b");
  EXPECT_EQ(found(table, (1 << 20) + 1), "none");
}

TEST(TuningTable, OnlyEntriesOfTheSameMachineCount) {
  const TuningTable table = table_of({{PlanSource::kShipped, "s", {entry_of(0, SIZE_MAX)}}});
  EXPECT_NE(found(table, 0), "none");
  EXPECT_NE(found(table, SIZE_MAX), "none");
  Topology topology = eight_h200();
  topology.ranks = 4;
  EXPECT_EQ(found(table, 5, topology), "none");
  topology = eight_h200();
  topology.gpu = "NVIDIA H100";
  EXPECT_EQ(found(table, 5, topology), "none");
  topology = eight_h200();
  topology.backend = Backend::kHost;
  EXPECT_EQ(found(table, 5, topology), "none");
  topology = eight_h200();
  topology.node_of = {0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_EQ(found(table, 5, topology), "none");
}

TEST(TuningTable, SourcesAreAskedInTheirOrder) {
  const TuningTable table =
      table_of({{PlanSource::kUserFile, "other ranks", {entry_of(0, 9, "all_reduce/x", 4)}},
                {PlanSource::kUserCache, "cache", {entry_of(10, 20, "all_reduce/cache")}},
                {PlanSource::kShipped, "shipped", {entry_of(0, 99, "all_reduce/shipped")}}});
  EXPECT_EQ(all_found(table, {Collective::kAllReduce, 15}), "cache, shipped");
  // Whoever has tuned one size keeps what is known of the others.
  EXPECT_EQ(all_found(table, {Collective::kAllReduce, 50}), "shipped");
  EXPECT_EQ(all_found(table, {Collective::kAllReduce, 100}), "");
}

// Of a machine that was measured, the model knows more than what others published of theirs.
TEST(TuningTable, WhatOthersPublishedIsForMachinesThatNobodyMeasured) {
  const TuningSource shipped{
      PlanSource::kShipped, "shipped", {entry_of(10, 20, "all_reduce/shipped")}};
  const TuningSource published{
      PlanSource::kPublished, "published", {entry_of(0, 99, "all_reduce/published")}};
  const TuningTable both = table_of({shipped, published});
  EXPECT_EQ(all_found(both, {Collective::kAllReduce, 50}), "");
  EXPECT_EQ(all_found(both, {Collective::kAllReduce, 15}), "shipped, published")
      << "for where the first cannot run";
  EXPECT_EQ(all_found(table_of({published}), {Collective::kAllReduce, 50}), "published");
}

TEST(TuningTable, OverlapsWithinASourceAreRefused) {
  const auto status_of = [](std::vector<TuningEntry> entries) {
    return TuningTable::from_sources({{PlanSource::kUserFile, "mine.json", std::move(entries)}})
        .status();
  };
  const Status touching = status_of({entry_of(0, 64), entry_of(64, 128)});
  EXPECT_EQ(touching.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(touching.message(), testing::AllOf(HasSubstr("mine.json: entries 0"),
                                                 HasSubstr("and 1"), HasSubstr("64-128")));
  EXPECT_FALSE(status_of({entry_of(10, 20), entry_of(30, 40), entry_of(0, 100)}).is_ok());
  EXPECT_TRUE(status_of({entry_of(0, 64), entry_of(65, 128)}).is_ok());
  EXPECT_TRUE(status_of({entry_of(0, 64), entry_of(0, 64, "all_reduce/one_shot", 4)}).is_ok());
}

TEST(TuningTable, HashIsOfWhatCanChangeAChoice) {
  const auto hash_of = [](TuningEntry entry) {
    return table_of({{PlanSource::kShipped, "s", {std::move(entry)}}}).hash();
  };
  const std::uint64_t plain = hash_of(entry_of(0, 64));
  TuningEntry entry = entry_of(0, 64);
  entry.time_us = 9;
  entry.date = "2027-01-01";
  entry.samples = 51;
  EXPECT_EQ(hash_of(entry), plain);

  std::vector<TuningEntry> changed(10, entry_of(0, 64));
  changed[0].min_bytes = 1;
  changed[1].max_bytes = 65;
  changed[2].algorithm = "all_reduce/two_shot";
  changed[3].blocks = 1;
  changed[4].threads = 32;
  changed[5].chunk_bytes = 1;
  changed[6].ranks = 4;
  changed[7].gpu = "NVIDIA H100";
  changed[8].cores = 2;
  changed[9].runner_up = "all_reduce/nccl";
  changed.push_back(entry_of(0, 64));
  changed.back().provenance = Provenance::kPublished;
  for (const TuningEntry& other : changed) EXPECT_NE(hash_of(other), plain);

  EXPECT_NE(table_of({{PlanSource::kUserCache, "s", {entry_of(0, 64)}}}).hash(), plain);
  // A cache without entries is the same as none.
  EXPECT_EQ(
      table_of({{PlanSource::kUserCache, "c", {}}, {PlanSource::kShipped, "s", {entry_of(0, 64)}}})
          .hash(),
      plain);
}

class TuningFiles : public testing::Test {
 protected:
  TuningFiles()
      : folder_(std::filesystem::temp_directory_path() /
                ("tutti_tuning_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TuningFiles() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  std::filesystem::path folder_;
};

TEST_F(TuningFiles, AreReadInOrderOfPrecedence) {
  const auto user = file("user.json", write_tuning_json({{entry_of(0, 9, "all_reduce/nccl")}}));
  const auto cache =
      file("cache.json", write_tuning_json({{entry_of(0, 9, "all_reduce/two_shot")}}));
  const auto table = TuningTable::load(user, cache);
  ASSERT_TRUE(table.is_ok()) << table.status().to_string();
  ASSERT_EQ(table->sources().size(), 2 + shipped_tables().size());
  EXPECT_EQ(table->sources()[0].source, PlanSource::kUserFile);
  EXPECT_EQ(table->sources()[0].name, user);
  EXPECT_EQ(table->sources()[1].source, PlanSource::kUserCache);
  EXPECT_EQ(table->sources()[2].source, PlanSource::kShipped);
  EXPECT_EQ(table->sources().back().source, PlanSource::kPublished);
  EXPECT_TRUE(std::ranges::is_sorted(table->sources(), {}, &TuningSource::source));
  EXPECT_EQ(found(*table, 5), "all_reduce/nccl");
}

TEST_F(TuningFiles, ANamedFileMustExistACacheNeedNot) {
  const std::string missing = (folder_ / "missing.json").string();
  EXPECT_TRUE(TuningTable::load("", missing).is_ok());
  const auto named = TuningTable::load(missing, "");
  ASSERT_FALSE(named.is_ok());
  EXPECT_THAT(named.status().message(),
              testing::AllOf(HasSubstr("TUTTI_TUNING_FILE"), HasSubstr(missing)));
}

TEST_F(TuningFiles, AFolderIsRefusedAsAFile) {
  const auto table = TuningTable::load("", folder_.string());
  ASSERT_FALSE(table.is_ok());
  EXPECT_THAT(table.status().message(), HasSubstr(folder_.string()));
}

TEST_F(TuningFiles, ABrokenOneIsNamed) {
  const auto broken = file("broken.json", "{\n\n]");
  for (const auto& table : {TuningTable::load(broken, ""), TuningTable::load("", broken)}) {
    ASSERT_FALSE(table.is_ok());
    EXPECT_THAT(table.status().message(), HasSubstr(broken + ": line 3"));
  }
  const auto empty = file("empty.json", "");
  EXPECT_FALSE(TuningTable::load("", empty).is_ok());
}

TEST_F(TuningFiles, AUsersFileNamesRowsOfThisBuildACacheMayNotKnowThem) {
  const auto path =
      file("t.json", write_tuning_json({{entry_of(0, 9), entry_of(10, 99, "all_reduce/magic")}}));
  const auto user = TuningTable::load(path, "");
  ASSERT_FALSE(user.is_ok());
  EXPECT_THAT(user.status().message(),
              testing::AllOf(HasSubstr(path + ": entry 1"), HasSubstr("'all_reduce/magic'"),
                             HasSubstr("two_shot")));
  EXPECT_TRUE(TuningTable::load("", path).is_ok());
}

TEST(TuningTable, OfTheHostHoldsWhereAsManyRanksShareCores) {
  const auto entry = [](int cores, std::string algorithm) {
    TuningEntry made = entry_of(0, 64, std::move(algorithm), 4);
    made.backend = Backend::kHost;
    made.gpu.clear();
    made.cores = cores;
    return made;
  };
  const TuningEntry crowded = entry(2, "all_reduce/one_shot");
  const TuningEntry apart = entry(8, "all_reduce/two_shot");
  const TuningTable table = table_of({{PlanSource::kShipped, "s", {crowded, apart}}});
  Topology host{.backend = Backend::kHost, .ranks = 4};
  for (const auto& [cores, algorithm] : {std::pair(1, crowded.algorithm),
                                         {3, crowded.algorithm},
                                         {4, apart.algorithm},
                                         {64, apart.algorithm}}) {
    host.cores = cores;
    EXPECT_EQ(found(table, 64, host), algorithm) << cores;
  }
  host.cores = 0;
  EXPECT_TRUE(holds_for(crowded, host) && holds_for(apart, host));
  EXPECT_TRUE(of_one_machine(crowded, entry(3, "all_reduce/ring")));
  EXPECT_TRUE(of_one_machine(crowded, entry(0, "all_reduce/ring")));
  EXPECT_FALSE(of_one_machine(crowded, apart));
  EXPECT_FALSE(TuningTable::from_sources({{PlanSource::kShipped, "s", {apart, entry(0, "x")}}}));
}

TEST(ShippedTables, AreWholeAndNameRowsOfThisBuild) {
  ASSERT_FALSE(shipped_tables().empty());
  const auto table = TuningTable::load("", "");
  ASSERT_TRUE(table.is_ok()) << table.status().to_string();
  for (const TuningSource& source : table->sources()) {
    EXPECT_THAT(source.name, testing::StartsWith("shipped "));
    for (const TuningEntry& entry : source.entries) {
      const bool published = source.source == PlanSource::kPublished;
      EXPECT_EQ(entry.provenance == Provenance::kPublished, published) << source.name;
      if (published) continue;
      EXPECT_TRUE(find_algorithm(entry.collective, entry.algorithm).is_ok()) << entry.algorithm;
      EXPECT_GT(entry.time_us, 0) << source.name << " " << entry.algorithm;
      EXPECT_GE(entry.samples, 50) << source.name << " " << entry.algorithm;
      // Of what differs by less than 2 % `tutti tune` takes what comes first.
      EXPECT_TRUE(entry.runner_up.empty() || entry.time_us <= 1.02 * entry.runner_up_us)
          << source.name;
    }
  }
}

}  // namespace
}  // namespace tutti
