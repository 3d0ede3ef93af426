#include "tune/candidates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.hpp"
#include "device/kernel_args.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Geometry middling(const Extent&) { return {16, 256}; }
Geometry largest(const Extent&) { return {kMaxBlocks, kMaxThreads}; }
Geometry left_to_a_library(const Extent&) { return {0, 0}; }

Algorithm row(std::string_view id, Geometry (*geometry)(const Extent&)) {
  return {.id = id, .max_ranks_host = 16, .max_ranks_cuda = 8, .geometry = geometry};
}

std::vector<std::string> texts(const std::vector<Configuration>& candidates) {
  std::vector<std::string> result;
  for (const Configuration& candidate : candidates) result.push_back(to_text(candidate));
  return result;
}

TEST(Candidates, BeginWithTheRowsOwnGeometry) {
  EXPECT_THAT(
      texts(candidates_for(row("all_reduce/x", middling), {64 * KiB, 4}, Backend::kCuda)),
      ElementsAre("x", "x 16x128", "x 16x512", "x 8x256", "x 32x256", "x 32x128", "x 8x512"));
}

TEST(Candidates, StayWithinWhatALaunchCanHave) {
  EXPECT_THAT(texts(candidates_for(row("all_reduce/x", largest), {64 * MiB, 4}, Backend::kCuda)),
              ElementsAre("x", "x 128x256", "x 64x512"));
}

TEST(Candidates, AreOneOnTheHostOrWhereALibraryDecides) {
  EXPECT_THAT(texts(candidates_for(row("all_reduce/x", middling), {1 * MiB, 4}, Backend::kHost)),
              ElementsAre("x"));
  EXPECT_THAT(
      texts(candidates_for(row("all_reduce/x", left_to_a_library), {1 * MiB, 4}, Backend::kCuda)),
      ElementsAre("x"));
}

TEST(Candidates, OfRingsHaveChunksBelowTheMessage) {
  Algorithm ring = row("all_reduce/ring", left_to_a_library);
  ring.ring_directions = 1;
  EXPECT_THAT(
      texts(candidates_for(ring, {1 * MiB, 4}, Backend::kCuda)),
      ElementsAre("ring", "ring chunks of 16K", "ring chunks of 32K", "ring chunks of 128K"));
  EXPECT_THAT(texts(candidates_for(ring, {32 * KiB, 4}, Backend::kHost)),
              ElementsAre("ring", "ring chunks of 16K"));
}

TEST(Candidates, OfWhatPushesThroughStagingTakeLessOfIt) {
  Algorithm staged = row("all_reduce/staged", left_to_a_library);
  staged.pushes_through_staging = true;
  EXPECT_THAT(texts(candidates_for(staged, {8 * MiB, 4}, Backend::kCuda)),
              ElementsAre("staged", "staged chunks of 4M"));
  EXPECT_THAT(texts(candidates_for(staged, {4 * MiB, 4}, Backend::kCuda)), ElementsAre("staged"));
}

TEST(Candidates, AreNoneForMoreRanksThanTheRowTakes) {
  EXPECT_THAT(candidates_for(row("all_reduce/x", middling), {1 * KiB, 9}, Backend::kCuda),
              IsEmpty());
  EXPECT_THAT(candidates_for(row("all_reduce/x", middling), {1 * KiB, 17}, Backend::kHost),
              IsEmpty());
}

TEST(Candidates, OfMessagesKeepTheGridThatTheirGroupNeeds) {
  Algorithm messages = row("send_recv/x", middling);
  EXPECT_GT(candidates_for(messages, {1 * MiB, 4}, Backend::kCuda).size(), 1u);
  messages.sends_messages = true;
  EXPECT_THAT(texts(candidates_for(messages, {1 * MiB, 4}, Backend::kCuda)), ElementsAre("x"));
}

TEST(Candidates, OfTheCatalogueDifferFromEachOther) {
  for (const Algorithm& each : catalogue()) {
    if (each.max_ranks_cuda == 0 || each.collective == Collective::kBarrier) continue;
    const bool has_tokens = each.collective == Collective::kAllReduceResidualRmsNorm;
    const std::size_t token_bytes = has_tokens ? 1024 : 0;
    for (const std::size_t bytes : {std::size_t{1}, 1 * KiB, 1 * MiB, 64 * MiB}) {
      const int ranks = std::min(8, each.max_ranks_cuda);
      auto names = texts(candidates_for(each, {bytes, ranks, token_bytes}, Backend::kCuda));
      EXPECT_EQ(names.front(), each.name());
      std::ranges::sort(names);
      EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << each.id << ", " << bytes;
    }
  }
}

}  // namespace
}  // namespace tutti::cli
