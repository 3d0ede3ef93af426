// The choice among the algorithms of all_gather_matmul: table x call -> algorithm.
#include "planning/all_gather_matmul.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planning/choose.hpp"
#include "planning/table.hpp"
#include "support/check.hpp"
#include "support/ends.hpp"
#include "unit/planning/entries.hpp"

namespace tutti {
namespace {

using How = AllGatherMatmulAlgorithm;
using test::take;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

constexpr AllGatherMatmulSize kSize = {8192, 3584, 8192};

AllGatherMatmulEntry fused_entry(const AllGatherMatmulSize& size = kSize) {
  return {.gpu = "NVIDIA H200",
          .ranks = 8,
          .element_bytes = 2,
          .size = size,
          .way = {.algorithm = How::kFused},
          .time_us = 708,
          .unfused_us = 956,
          .date = "2026-11-26",
          .driver = "580.159",
          .samples = 30};
}

AllGatherMatmulEntry tiles_entry(const AllGatherMatmulSize& size = kSize) {
  AllGatherMatmulEntry entry = fused_entry(size);
  entry.way = {How::kPipelinedTiles, pipelines::Protocol::kPut, 2, 4};
  entry.runner_up = How::kFused;
  entry.runner_up_us = 720.5;
  return entry;
}

TuningTable sizes_of(std::vector<AllGatherMatmulEntry> entries,
                     PlanSource source = PlanSource::kShipped) {
  return table_of({{source, "sizes", {}, std::move(entries)}});
}

SelectedAllGatherMatmul selected(const TuningTable& table,
                                 const AllGatherMatmulRequest& request = {.size = kSize},
                                 const Topology& topology = eight_h200()) {
  return take(select(request, topology, table));
}

TEST(SelectAllGatherMatmul, WithoutAMeasurementItIsUnfused) {
  const SelectedAllGatherMatmul none = selected(TuningTable::empty());
  EXPECT_EQ(none.algorithm(), How::kUnfused);
  EXPECT_FALSE(none.is_by_table());
  EXPECT_EQ(none.why,
            "no measurement for 8192x3584x8192 on NVIDIA H200, 8 ranks, elements of 2 bytes");
}

TEST(SelectAllGatherMatmul, ATableDecidesAndSaysWhatWasMeasured) {
  const TuningTable table = sizes_of({tiles_entry()}, PlanSource::kUserCache);
  const SelectedAllGatherMatmul chosen = selected(table);
  EXPECT_EQ(chosen.way, tiles_entry().way);
  EXPECT_EQ(chosen.source, PlanSource::kUserCache);
  EXPECT_TRUE(chosen.is_by_table());
  EXPECT_EQ(chosen.why,
            "measured on NVIDIA H200, 8 ranks, 8192x3584x8192: pipelined_tiles, put, 2 streams, 4 "
            "tiles 708 us, unfused 956 us");
}

// What was measured to be slower decides, too: further sources are not asked.
TEST(SelectAllGatherMatmul, UnfusedMayBeWhatWasMeasured) {
  AllGatherMatmulEntry entry = fused_entry();
  entry.way = {};
  entry.time_us = entry.unfused_us = 100;
  entry.runner_up = How::kFused;
  entry.runner_up_us = 99;
  const TuningTable table = table_of({{PlanSource::kUserCache, "cache", {}, {entry}},
                                      {PlanSource::kShipped, "shipped", {}, {fused_entry()}}});
  EXPECT_EQ(selected(table).algorithm(), How::kUnfused);
  EXPECT_THAT(selected(table).why, HasSubstr("unfused 100 us, fused 99 us"));
}

TEST(SelectAllGatherMatmul, AnEntryHoldsForAFactorOfTwoInEachDirection) {
  const TuningTable table = sizes_of({fused_entry({1000, 1000, 1000})});
  const auto algorithm = [&](const AllGatherMatmulSize& size) {
    return selected(table, {.size = size}).algorithm();
  };
  for (const std::size_t holds : {712, 1000, 1408}) {
    EXPECT_EQ(algorithm({holds, 1000, 1000}), How::kFused) << holds;
    EXPECT_EQ(algorithm({1000, holds, 1000}), How::kFused) << holds;
    EXPECT_EQ(algorithm({1000, 1000, holds}), How::kFused) << holds;
  }
  for (const std::size_t outside : {0, 1, 707, 1415, 1 << 30}) {
    EXPECT_EQ(algorithm({outside, 1000, 1000}), How::kUnfused) << outside;
    EXPECT_EQ(algorithm({1000, outside, 1000}), How::kUnfused) << outside;
    EXPECT_EQ(algorithm({1000, 1000, outside}), How::kUnfused) << outside;
  }
}

TEST(SelectAllGatherMatmul, OfSeveralEntriesTheNearestDecides) {
  AllGatherMatmulEntry near = tiles_entry({1300, 1000, 1000});
  const TuningTable table = sizes_of({fused_entry({1000, 1000, 1000}), near});
  EXPECT_EQ(selected(table, {.size = {1104, 1000, 1000}}).algorithm(), How::kFused);
  EXPECT_EQ(selected(table, {.size = {1200, 1000, 1000}}).algorithm(), How::kPipelinedTiles);
  EXPECT_EQ(selected(table, {.size = {1300, 1000, 800}}).algorithm(), How::kPipelinedTiles);
}

TEST(SelectAllGatherMatmul, AnEntryIsOfItsMachineAlone) {
  const TuningTable table = sizes_of({fused_entry()});
  std::vector<Topology> others(4, eight_h200());
  others[0].gpu = "NVIDIA H100 80GB HBM3";
  others[1].ranks = 4;
  others[2].backend = Backend::kHost;
  others[3].node_of = {0, 0, 0, 0, 1, 1, 1, 1};
  for (const Topology& other : others) {
    EXPECT_EQ(selected(table, {.size = kSize}, other).algorithm(), How::kUnfused);
  }
  EXPECT_EQ(selected(table, {.size = kSize, .dtype = DataType::kFloat32}).algorithm(),
            How::kUnfused);
  EXPECT_EQ(selected(table, {.size = kSize, .dtype = DataType::kFloat16}).algorithm(), How::kFused);
}

TEST(SelectAllGatherMatmul, TheCallAndSettingsComeBeforeTables) {
  const TuningTable table = sizes_of({fused_entry()});
  AllGatherMatmulRequest request = {.size = kSize};
  request.only_nccl = true;
  EXPECT_EQ(selected(table, request).algorithm(), How::kUnfused);
  request.tune = "all_reduce:@one_shot;all_gather_matmul:0-128M:@pipelined_ring";
  EXPECT_EQ(selected(table, request).algorithm(), How::kPipelinedRing);
  EXPECT_EQ(selected(table, request).source, PlanSource::kOverride);
  request.only_nccl = false;
  request.size.m = 8200;  // a gathered A of more than 128 MiB
  EXPECT_EQ(selected(table, request).algorithm(), How::kFused);
  request.algorithm = "pipelined_shift";
  EXPECT_EQ(selected(table, request).algorithm(), How::kPipelinedShift);
  EXPECT_FALSE(selected(table, request).is_by_table());
  request.algorithm = "fastest";
  EXPECT_THAT(select(request, eight_h200(), table).status().message(),
              HasSubstr("unknown algorithm of all_gather_matmul 'fastest'"));
}

// On GPUs it needs the place of A on ranks without rows, too, which a caller of unfused need not
// give.
TEST(SelectAllGatherMatmul, ATableDoesNotFuseUnevenShardsOnGpus) {
  const TuningTable table = sizes_of({fused_entry()});
  AllGatherMatmulRequest request = {.size = kSize};
  request.size.m += 1;
  EXPECT_EQ(selected(table, request).algorithm(), How::kUnfused);
  EXPECT_THAT(selected(table, request).why, HasSubstr("M is not a multiple of 8 ranks"));
  AllGatherMatmulEntry on_host = fused_entry();
  Topology host = eight_h200();
  on_host.backend = host.backend = Backend::kHost;
  EXPECT_EQ(selected(sizes_of({on_host}), request, host).algorithm(), How::kFused);
  request.algorithm = "fused";
  EXPECT_EQ(selected(table, request).algorithm(), How::kFused);
}

TEST(SelectAllGatherMatmul, WhatCannotRunIsReplacedWithAReason) {
  const TuningTable table = sizes_of({fused_entry()});
  const SelectedAllGatherMatmul instead = unfused_instead(selected(table), "it is captured");
  EXPECT_EQ(instead.algorithm(), How::kUnfused);
  EXPECT_FALSE(instead.is_by_table());
  EXPECT_THAT(instead.why, testing::EndsWith("; fused cannot run this call: it is captured"));
}

TEST(AllGatherMatmulOverrides, AreCheckedWithTheOthers) {
  const char* const text = "all_gather_matmul:@unfused; all_gather_matmul : 1K-inf : @fused";
  EXPECT_EQ(take(parse_all_gather_matmul_overrides(text)),
            (std::vector<AllGatherMatmulOverride>{{0, SIZE_MAX, How::kUnfused},
                                                  {1024, SIZE_MAX, How::kFused}}));
  EXPECT_TRUE(take(parse_overrides(text)).empty());
  for (const char* wrong : {"all_gather_matmul:@fuse", "all_gather_matmul:5-1:@fused",
                            "all_gather_matmul:fused", "all_gather_matmul"}) {
    EXPECT_THAT(parse_overrides(wrong).status().message(), StartsWith("'all_gather_matmul"));
    EXPECT_EQ(parse_all_gather_matmul_overrides(wrong).status().message(),
              parse_overrides(wrong).status().message());
  }
}

TEST(AllGatherMatmulTable, RoundTrip) {
  AllGatherMatmulEntry host = tiles_entry({1, 2, 3});
  host.backend = Backend::kHost;
  host.gpu.clear();
  host.driver.clear();
  AllGatherMatmulEntry ring = fused_entry({5, 6, 7});
  ring.way = {
      How::kPipelinedRing, pipelines::Protocol::kGet, 4, 0, pipelines::Mover::kKernel, true};
  AllGatherMatmulEntry pulled = fused_entry({8, 9, 10});
  pulled.way.transport = ArrivalTransport::kPull;
  EXPECT_EQ(to_text(pulled.way), "fused, pull");
  const TuningEntries entries = {{entry_of(0, 9)},
                                 {fused_entry(), tiles_entry({2, 2, 2}), ring, pulled, host}};
  EXPECT_EQ(take(parse_tuning_json(write_tuning_json(entries), "x.json")), entries);
}

TEST(AllGatherMatmulTable, TwoEntriesForOneSizeAreRefused) {
  const auto status = [](const AllGatherMatmulEntry& other) {
    return TuningTable::from_sources(
               {{PlanSource::kUserFile, "x.json", {}, {fused_entry(), other}}})
        .status();
  };
  EXPECT_EQ(status(tiles_entry()).message(),
            "x.json: two entries of all_gather_matmul with the same ranks and elements are for "
            "8192x3584x8192");
  EXPECT_TRUE(status(tiles_entry({8192, 3584, 8191})).is_ok());
}

TEST(AllGatherMatmulTable, ItsHashIsOfWhatCanChangeAChoice) {
  const std::uint64_t plain = sizes_of({fused_entry()}).hash();
  EXPECT_NE(plain, TuningTable::empty().hash());
  AllGatherMatmulEntry entry = fused_entry();
  entry.time_us = 1;
  entry.date = "2027-01-01";
  EXPECT_EQ(sizes_of({entry}).hash(), plain);
  std::vector<AllGatherMatmulEntry> changed(10, fused_entry());
  changed[0].gpu = "NVIDIA H100";
  changed[1].ranks = 4;
  changed[2].element_bytes = 4;
  changed[3].size.m = 1;
  changed[4].size.n = 1;
  changed[5].size.k = 1;
  changed[6].way.algorithm = How::kUnfused;
  changed[7] = changed[8] = tiles_entry();
  changed[8].way.mover = pipelines::Mover::kKernel;
  EXPECT_NE(sizes_of({changed[7]}).hash(), sizes_of({changed[8]}).hash());
  changed[9].way.transport = ArrivalTransport::kPull;
  for (const AllGatherMatmulEntry& other : changed) EXPECT_NE(sizes_of({other}).hash(), plain);
}

Json json_of(const AllGatherMatmulEntry& entry) {
  return Json::parse(write_tuning_json({{}, {entry}}));
}

TEST(AllGatherMatmulTable, EachBrokenFieldIsNamed) {
  const std::pair<const char*, Json> broken[] = {{"backend", "auto"},
                                                 {"gpu", ""},
                                                 {"ranks", 0},
                                                 {"element_bytes", 0},
                                                 {"m", 0},
                                                 {"n", -1},
                                                 {"k", 1.5},
                                                 {"algorithm", "all_gather_matmul/ring"},
                                                 {"protocol", "push"},
                                                 {"streams", 17},
                                                 {"tiles", 0},
                                                 {"mover", "hand"},
                                                 {"inter_stream_order", 1},
                                                 {"time_us", "fast"},
                                                 {"unfused_us", 707},
                                                 {"runner_up", "pipelined_tiles"},
                                                 {"runner_up", "unfused"},
                                                 {"runner_up_us", 0},
                                                 {"date", ""},
                                                 {"samples", 0},
                                                 {"min_bytes", 0}};
  for (const auto& [field, value] : broken) {
    Json table = json_of(tiles_entry());
    table["entries"][0][field] = value;
    EXPECT_THAT(parse_tuning_json(table.dump(), "x.json").status().message(),
                StartsWith(std::string("x.json: entry 0: field '") + field + "'"))
        << value;
  }
  Json options = json_of(fused_entry());
  options["entries"][0]["streams"] = 4;
  EXPECT_THAT(parse_tuning_json(options.dump(), "x.json").status().message(),
              HasSubstr("'streams' is no option of fused"));
  Json transport = json_of(tiles_entry());
  transport["entries"][0]["transport"] = "pull";
  EXPECT_THAT(parse_tuning_json(transport.dump(), "x.json").status().message(),
              HasSubstr("'transport' is no option of pipelined_tiles"));
  for (const char* missing : {"m", "element_bytes", "unfused_us", "protocol", "driver"}) {
    Json table = json_of(tiles_entry());
    table["entries"][0].erase(missing);
    EXPECT_THAT(parse_tuning_json(table.dump(), "x.json").status().message(),
                HasSubstr(std::string("field '") + missing + "' is missing"));
  }
}

TEST(AllGatherMatmulTable, NumbersAtTheEndsOfTheirTypesAreRefusedOrChosenBy) {
  const auto look = [](const Json& changed, const std::string& what) {
    const auto parsed = parse_tuning_json(changed.dump(), "x.json");
    if (!parsed.is_ok()) {
      EXPECT_THAT(parsed.status().message(), StartsWith("x.json: entry 0: field '")) << what;
      return;
    }
    const TuningTable table = sizes_of(parsed->all_gather_matmul);
    for (const std::size_t m : {std::size_t{0}, std::size_t{8192}, SIZE_MAX}) {
      EXPECT_FALSE(selected(table, {.size = {m, 3584, 8192}}).why.empty()) << what;
    }
  };
  EXPECT_GE(test::at_all_ends(json_of(tiles_entry()), look), 9);
}

}  // namespace
}  // namespace tutti
