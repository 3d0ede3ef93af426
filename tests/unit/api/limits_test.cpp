// Numbers at the ends of their types: what is taken, and what is refused with nothing done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "support/check.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int kPair = 2;

// An all_reduce of 1 + 1 on both ranks, which may be unsupported, but not wrong.
void expect_two(std::vector<Communicator>& groups, const CallOptions& options) {
  on_all_ranks(kPair, [&](int rank) {
    std::vector<float> values(5000, 1.0F);
    const Status done = all_reduce(groups[static_cast<std::size_t>(rank)], {.input = values.data(),
                                                                            .output = values.data(),
                                                                            .count = values.size(),
                                                                            .options = options});
    if (done.code() == StatusCode::kUnsupported) return;
    EXPECT_TRUE(done.is_ok()) << options.algorithm << ": " << done.to_string();
    EXPECT_THAT(values, testing::Each(2.0F)) << options.algorithm;
  });
}

TEST(Limits, TheLongestTimeoutIsAsGoodAsNone) {
  for (const milliseconds longest : {milliseconds(9223372036853), milliseconds::max()}) {
    auto groups = take(
        Communicator::create_in_process(kPair, {.backend = Backend::kHost, .timeout = longest}));
    expect_two(groups, {});
    for (Communicator& group : groups) require_ok(group.set_timeout(longest));
    expect_two(groups, {.timeout = longest});
    require_ok(signal(groups[0], {.peer = 1}));
    require_ok(wait_signal(groups[1], {.peer = 0, .timeout = longest}));
  }
}

TEST(Limits, OptionsOfACommunicatorAreChecked) {
  const auto refusal = [](const CommunicatorOptions& options) {
    const auto made = Communicator::create_in_process(1, options);
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument) << made.status().to_string();
    return made.status().message();
  };
  EXPECT_THAT(refusal({.timeout = milliseconds(-1)}), HasSubstr("timeout -1 ms"));
  EXPECT_THAT(refusal({.timeout = milliseconds::min()}), HasSubstr("must not be negative"));
  EXPECT_THAT(refusal({.backend = static_cast<Backend>(9)}), HasSubstr("unknown backend 9"));
}

TEST(Limits, OptionsOfACallAreChecked) {
  auto groups = groups_of(kPair);
  const auto refusal = [&](const CallOptions& options) {
    float value = 1;
    const Status status =
        all_reduce(groups[0], {.input = &value, .output = &value, .count = 1, .options = options});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    return status.message();
  };
  EXPECT_THAT(refusal({.timeout = milliseconds(-1)}), HasSubstr("all_reduce: a timeout"));
  EXPECT_THAT(refusal({.blocks = -1}), HasSubstr("blocks and threads"));
  EXPECT_THAT(refusal({.threads = std::numeric_limits<int>::min()}), HasSubstr("negative"));
  for (const std::size_t chunk : {~std::size_t{0} - 14, ~std::size_t{0}, kMostChunkBytes + 1}) {
    EXPECT_THAT(refusal({.chunk_bytes = chunk}), HasSubstr("chunk_bytes"));
  }
  expect_two(groups, {});
}

TEST(Limits, EveryAlgorithmTakesTheLargestOptions) {
  auto groups = groups_of(kPair);
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const Algorithm& row : rows_of(Collective::kAllReduce)) {
    for (const std::size_t chunk : {std::size_t{1}, kMostChunkBytes}) {
      expect_two(groups, {.algorithm = row.id,
                          .timeout = milliseconds::max(),
                          .blocks = kMost,
                          .threads = kMost,
                          .chunk_bytes = chunk});
    }
  }
}

TEST(Limits, TooManyRanksAreRefusedBeforeAnythingIsMade) {
  for (const int ranks : {257, 1'000'000, 1'000'000'000}) {
    const auto made = Communicator::create_in_process(ranks, {.backend = Backend::kHost});
    EXPECT_EQ(made.status().code(), StatusCode::kUnsupported) << made.status().to_string();
    EXPECT_THAT(made.status().message(), HasSubstr("takes up to"));
  }
}

}  // namespace
}  // namespace tutti::test
