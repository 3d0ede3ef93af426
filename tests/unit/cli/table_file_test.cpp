#include "tune/table_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TuningEntry entry_of(std::size_t min_bytes, std::size_t max_bytes, int ranks = 2) {
  TuningEntry entry;
  entry.gpu = "NVIDIA H200";
  entry.ranks = ranks;
  entry.min_bytes = min_bytes;
  entry.max_bytes = max_bytes;
  entry.algorithm = "all_reduce/one_shot";
  entry.date = "2026-11-20";
  entry.driver = "580.1";
  entry.samples = 50;
  return entry;
}

std::vector<std::pair<std::size_t, std::size_t>> ranges(const std::vector<TuningEntry>& entries) {
  std::vector<std::pair<std::size_t, std::size_t>> result;
  for (const TuningEntry& entry : entries) result.emplace_back(entry.min_bytes, entry.max_bytes);
  return result;
}

TEST(Range, BeginsBehindTheNextSmallerSize) {
  const std::vector<std::size_t> sizes = {4 * KiB, 1 * KiB, 2 * KiB};
  EXPECT_EQ(range_begin(1 * KiB, sizes), 0u);
  EXPECT_EQ(range_begin(2 * KiB, sizes), 1 * KiB + 1);
  EXPECT_EQ(range_begin(4 * KiB, sizes), 2 * KiB + 1);
}

TEST(Range, OfALargeMessageDoesNotReachDownToNothing) {
  const std::vector<std::size_t> sizes = {1 * MiB, 4 * MiB};
  EXPECT_EQ(range_begin(1 * MiB, sizes), 512 * KiB + 1);
  EXPECT_EQ(range_begin(4 * MiB, sizes), 1 * MiB + 1);
}

TEST(PutEntry, GivesTheSameRangesInAnyOrder) {
  std::vector<TuningEntry> entries;
  for (const auto& [from, to] : {std::pair(1025, 2048), {0, 1024}, {2049, 4096}}) {
    put_entry(entries, entry_of(static_cast<std::size_t>(from), static_cast<std::size_t>(to)));
  }
  EXPECT_THAT(ranges(entries), ElementsAre(Pair(0, 1024), Pair(1025, 2048), Pair(2049, 4096)));
}

TEST(PutEntry, ReplacesWhatWasMeasuredAtItsSize) {
  std::vector<TuningEntry> entries = {entry_of(0, 1024), entry_of(1025, 2048)};
  TuningEntry newer = entry_of(0, 2048);
  newer.algorithm = "all_reduce/two_shot";
  put_entry(entries, newer);
  EXPECT_THAT(ranges(entries), ElementsAre(Pair(0, 1024), Pair(1025, 2048)));
  EXPECT_EQ(entries[1].algorithm, "all_reduce/two_shot");
}

TEST(PutEntry, SplitsTheRangeOfALargerOne) {
  std::vector<TuningEntry> entries = {entry_of(0, 1024), entry_of(1025, 1 * MiB)};
  put_entry(entries, entry_of(1025, 64 * KiB));
  EXPECT_THAT(ranges(entries),
              ElementsAre(Pair(0, 1024), Pair(1025, 64 * KiB), Pair(64 * KiB + 1, 1 * MiB)));
}

TEST(PutEntry, LeavesOtherMachinesAndRanksAlone) {
  TuningEntry host = entry_of(0, 4096);
  host.backend = Backend::kHost;
  host.gpu = host.driver = "";
  TuningEntry other_gpu = entry_of(0, 4096);
  other_gpu.gpu = "NVIDIA B200";
  const std::vector<TuningEntry> others = {host, other_gpu, entry_of(0, 4096, 8)};
  std::vector<TuningEntry> entries = others;
  put_entry(entries, entry_of(0, 1024));
  EXPECT_TRUE(TuningTable::from_sources({{PlanSource::kUserCache, "x", entries}}).is_ok());
  entries.pop_back();
  EXPECT_EQ(entries, others);
}

TEST(IsMeasured, AsksForTheSameSizeMachineAndDriver) {
  const std::vector<TuningEntry> entries = {entry_of(1025, 4096)};
  EXPECT_TRUE(is_measured(entries, entry_of(0, 4096)));
  EXPECT_FALSE(is_measured(entries, entry_of(1025, 2048)));
  EXPECT_FALSE(is_measured(entries, entry_of(0, 4096, 8)));
  TuningEntry other = entry_of(0, 4096);
  other.driver = "590.1";
  EXPECT_FALSE(is_measured(entries, other));
}

TEST(TableFile, IsMadeAndAddedTo) {
  const ScratchFolder folder;
  const std::string file = folder / "tuning.json";
  EXPECT_TRUE(read_table(file)->empty());
  ASSERT_TRUE(add_to_table(file, entry_of(0, 1024)).is_ok());
  ASSERT_TRUE(add_to_table(file, entry_of(0, 1024, 4)).is_ok());
  ASSERT_TRUE(add_to_table(file, entry_of(1025, 2048)).is_ok());
  const auto entries = read_table(file);
  ASSERT_TRUE(entries.is_ok()) << entries.status().to_string();
  EXPECT_THAT(entries->collectives,
              ElementsAre(entry_of(0, 1024), entry_of(1025, 2048), entry_of(0, 1024, 4)));
  EXPECT_EQ(folder.files(), 1u);
}

TEST(TableFile, ThatIsBrokenIsLeftAsItIs) {
  const ScratchFolder folder;
  folder.write("noise.json", "mine");
  folder.write("overlap.json", write_tuning_json({{entry_of(0, 1024), entry_of(1, 2048)}}));
  for (const std::string name : {"noise.json", "overlap.json"}) {
    const std::string before = folder.read(name);
    const Status status = add_to_table(folder / name, entry_of(0, 1024));
    EXPECT_THAT(status.message(), HasSubstr(name));
    EXPECT_EQ(folder.read(name), before);
  }
}

}  // namespace
}  // namespace tutti::cli
