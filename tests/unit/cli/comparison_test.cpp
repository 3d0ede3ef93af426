#include "bench/printers/comparison.hpp"

#include <gtest/gtest.h>

#include "some_record.hpp"

namespace tutti::cli {
namespace {

TEST(Comparison, KnowsWhoMovesTheBytes) {
  EXPECT_EQ(library_of("nccl"), Library::kNccl);
  EXPECT_EQ(library_of("torch_nccl"), Library::kNccl);
  EXPECT_EQ(library_of("nccl_window"), Library::kNcclSymmetric);
  EXPECT_EQ(library_of("nccl_copy_engine"), Library::kNcclSymmetric);
  EXPECT_EQ(library_of("torch_two_shot"), Library::kTorch);
  EXPECT_EQ(library_of("vllm_custom_allreduce"), Library::kVllm);
  EXPECT_EQ(library_of("tutti_custom_allreduce"), Library::kTutti);
  EXPECT_EQ(library_of("two_shot"), Library::kTutti);
}

TEST(Comparison, TakesTheFastestOfEachLibraryAndTheBestOfAll) {
  const std::vector<Row> rows = {some_row("ring", 1024, 4, true), some_row("push", 1024, 3),
                                 some_row("nccl", 1024, 9), some_row("nccl_window", 1024, 7)};
  const Row torch = some_row("torch_nccl", 1024, 8), slow = some_row("torch_one_shot", 1024, 20);
  const auto sizes = compare(groups_of(rows).front(), {&torch, &slow});
  ASSERT_EQ(sizes.size(), 1u);
  EXPECT_EQ(sizes[0].chosen->algorithm, "ring");
  EXPECT_EQ(sizes[0].other[0]->algorithm, "torch_nccl");
  EXPECT_EQ(sizes[0].best_other()->algorithm, "nccl_window");
  EXPECT_EQ(sizes[0].speed_up(), 7.0 / 4);
}

TEST(Comparison, HasNoSpeedUpOfWhatWasNotMeasured) {
  for (const char* algorithm : {"nccl", "push"}) {
    const std::vector<Row> rows = {some_row(algorithm, 1024, 9, algorithm == std::string("push"))};
    EXPECT_EQ(compare(groups_of(rows).front())[0].speed_up(), std::nullopt);
  }
}

TEST(Comparison, PrefersWhatWasMeasuredOutOfPlace) {
  Row in_place = some_row("nccl", 1024, 1);
  in_place.in_place = true;
  const std::vector<Row> rows = {some_row("nccl", 1024, 9), in_place};
  EXPECT_EQ(compare(groups_of(rows).front())[0].best_other()->time_us.p50, 9);
  EXPECT_EQ(compare({.rows = {&in_place}})[0].best_other()->time_us.p50, 1);
}

// Torch begins at 2K and has no 4K; NCCL has all.
TEST(Comparison, SaysWhereALibraryHasAGap) {
  std::vector<Row> rows;
  for (const std::size_t bytes : {1024, 2048, 4096, 8192, 16384}) {
    rows.push_back(some_row("nccl", bytes, 9));
    if (bytes == 2048 || bytes == 8192) rows.push_back(some_row("torch_one_shot", bytes, 9));
  }
  std::vector<bool> complete;
  for (const Compared& size : compare(groups_of(rows).front())) complete.push_back(size.complete);
  EXPECT_EQ(complete, (std::vector<bool>{true, true, false, true, true}));
}

}  // namespace
}  // namespace tutti::cli
