// Ranks that call short collectives in different orders hear so long before their deadline, also
// where no flag of the algorithm carries a signature.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "support/check.hpp"
#include "support/group.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

using ShortValues = std::array<float, 64>;

struct ShortCall {
  std::string name;  // as texts have it
  Status (*start)(Communicator& group, ShortValues& values, std::string_view algorithm);
};

template <OpKind kOp>
Status reduce_short(Communicator& group, ShortValues& values, std::string_view algorithm) {
  return all_reduce(group, {.input = values.data(),
                            .output = values.data(),
                            .count = 8,
                            .dtype = DataType::kFloat32,
                            .op = kOp,
                            .options = {.algorithm = algorithm}});
}
Status gather_short(Communicator& group, ShortValues& values, std::string_view) {
  return all_gather(group, {.input = values.data(),
                            .output = values.data() + 16,
                            .count = 8,
                            .dtype = DataType::kFloat32});
}

const ShortCall kSumOf8{"sum)", reduce_short<OpKind::kSum>};
const ShortCall kMaxOf8{"max)", reduce_short<OpKind::kMax>};
const ShortCall kGatherOf8{"all_gather/", gather_short};

// Calls may return well, with wrong results: then status() tells.
Status failure_soon(Communicator& group) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (group.status().is_ok() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return group.status();
}

// The deadline is far beyond the limit of the test.
std::string in_other_orders(RankKind kind, const ShortCall& a, const ShortCall& b,
                            std::string_view algorithm) {
  return run_group({.kind = kind, .timeout = kNever}, [&](Rank& rank) {
    ShortValues values{};
    const bool is_first = rank.number() == 0;
    require_ok(kSumOf8.start(rank.group, values, ""));
    const auto begun = std::chrono::steady_clock::now();
    (void)(is_first ? a : b).start(rank.group, values, algorithm);
    (void)(is_first ? b : a).start(rank.group, values, algorithm);
    const Status status = failure_soon(rank.group);
    require(std::chrono::steady_clock::now() - begun < kPatience / 2, "it took too long");
    const std::string& text = status.message();
    const bool names_both = text.find(a.name) != std::string::npos &&
                            text.find(b.name) != std::string::npos &&
                            text.find("#2 ") != std::string::npos;
    require(status.code() == StatusCode::kMismatch && names_both, status.to_string());
    require(kSumOf8.start(rank.group, values, "").code() == StatusCode::kMismatch,
            "the group goes on");
  });
}

class OtherOperationsTest : public ::testing::TestWithParam<RankKind> {};

TEST_P(OtherOperationsTest, AreAMismatch) {
  for (const std::string_view algorithm : {"", "one_shot_push", "two_shot_push", "one_shot"}) {
    EXPECT_EQ(in_other_orders(GetParam(), kSumOf8, kMaxOf8, algorithm), "") << algorithm;
    EXPECT_EQ(in_other_orders(GetParam(), kSumOf8, kGatherOf8, algorithm), "") << algorithm;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, OtherOperationsTest,
                         ::testing::Values(RankKind::kThreads, RankKind::kProcesses),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

}  // namespace
}  // namespace tutti::test
