// What collectives with a root refuse, what they take, and what they do with it; and barrier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "support/told.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

// One rank alone, which is the root.
class RootedTest : public ::testing::Test {
 protected:
  void expect_refused(const Status& status, std::string_view text) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok()) << "a refused call must leave the group usable";
  }
  // What all of them refuse alike.
  template <class AnyCall>
  void expect_checks(AnyCall good, Status (*run)(Communicator&, const AnyCall&)) {
    const auto refused = [&](auto&& change, std::string_view text) {
      AnyCall call = good;
      change(call);
      expect_refused(run(group(), call), text);
    };
    EXPECT_TRUE(run(group(), good).is_ok());
    EXPECT_TRUE(run(group(), AnyCall{}).is_ok()) << "nothing needs no buffer";
    refused([](AnyCall& call) { call.input = nullptr; }, "null buffer");
    refused([](AnyCall& call) { call.output = nullptr; }, "null buffer");
    refused([](AnyCall& call) { call.root = 1; }, "root 1: there are 1 ranks");
    refused([](AnyCall& call) { call.root = -1; }, "root -1");
    refused([](AnyCall& call) { call.count = ~std::size_t{0} / 2; }, "overflows");
    refused([](AnyCall& call) { call.dtype = static_cast<DataType>(99); }, "dtype");
    refused([](AnyCall& call) { call.options.algorithm = "hierarchical"; }, "one_shot_push");
    refused([](AnyCall& call) { call.input = reinterpret_cast<const char*>(call.input) + 2; },
            "aligned");
    refused(
        [](AnyCall& call) {
          call.output = const_cast<float*>(static_cast<const float*>(call.input)) + 1;
        },
        "overlap");
  }
  Communicator& group() { return groups_[0]; }

  std::vector<Communicator> groups_ =
      take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  alignas(16) std::array<float, 64> values_{};
};

TEST_F(RootedTest, BadArgumentsAreRefused) {
  float* const v = values_.data();
  float* const w = v + 32;
  expect_checks(Broadcast{.input = v, .output = w, .count = 2}, broadcast);
  expect_checks(Reduce{.input = v, .output = w, .count = 2}, reduce);
  expect_checks(Gather{.input = v, .output = w, .count = 2}, gather);
  expect_checks(Scatter{.input = v, .output = w, .count = 2}, scatter);
}

TEST_F(RootedTest, InPlaceWhereTheSidesAreAlike) {
  float* const v = values_.data();
  EXPECT_TRUE(broadcast(group(), {.input = v, .output = v, .count = 2}));
  EXPECT_TRUE(reduce(group(), {.input = v, .output = v, .count = 2}));
  expect_refused(gather(group(), {.input = v, .output = v, .count = 2}), "does not run in place");
  expect_refused(scatter(group(), {.input = v, .output = v, .count = 2}), "does not run in place");
}

TEST_F(RootedTest, ExplainHasALinePerAlgorithm) {
  const std::string text = explain(group(), "broadcast", {.count = 1024});
  for (const char* name : {"one_shot_push", "two_shot", "copy_engine", "nccl"}) {
    EXPECT_THAT(text, HasSubstr(std::string("broadcast/") + name));
  }
  EXPECT_THAT(text, HasSubstr("broadcast of 4K (1024 x fp32), symmetric"));
  EXPECT_THAT(explain(group(), "all_to_none", {}), HasSubstr("unknown collective 'all_to_none'"));
  EXPECT_EQ(group().plan("all_to_none", {}).status().code(), StatusCode::kInvalidArgument);
}

// Every rank is the root once. What others give for the root's buffer is not looked at.
TEST(RootedGroupTest, TheRootsBufferIsLookedAtOnTheRootAlone) {
  constexpr std::size_t kCount = 301;
  auto groups = take(Communicator::create_in_process(3, {.backend = Backend::kHost}));
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const auto any = reinterpret_cast<int*>(1);  // not even aligned
    for (int root = 0; root < 3; ++root) {
      const bool is_root = rank == root;
      std::vector<int> one(kCount), all(3 * kCount);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = root * 10'000 + static_cast<int>(i);
      require_ok(scatter(group, {.input = is_root ? all.data() : any,
                                 .output = one.data(),
                                 .count = kCount,
                                 .dtype = DataType::kInt32,
                                 .root = root}));
      const auto first = static_cast<std::ptrdiff_t>(kCount) * rank;
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + first)) << root;
      std::vector<int> back(3 * kCount, -1);
      require_ok(gather(group, {.input = one.data(),
                                .output = is_root ? back.data() : any,
                                .count = kCount,
                                .dtype = DataType::kInt32,
                                .root = root}));
      EXPECT_EQ(back, is_root ? all : std::vector<int>(3 * kCount, -1)) << root;
      require_ok(broadcast(group, {.input = is_root ? all.data() : any,
                                   .output = back.data(),
                                   .count = 3 * kCount,
                                   .dtype = DataType::kInt32,
                                   .root = root}));
      EXPECT_EQ(back, all) << root;
      std::vector<int> sum(kCount, -1);
      require_ok(reduce(group, {.input = all.data(),
                                .output = is_root ? sum.data() : any,
                                .count = kCount,
                                .dtype = DataType::kInt32,
                                .root = root}));
      EXPECT_EQ(sum[7], is_root ? 3 * all[7] : -1) << root;
    }
  });
}

// Two roots are two operations, and the message tells them apart.
TEST(RootedGroupTest, AnotherRootIsFoundAndNamed) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    std::array<float, 2> input{}, output{};
    const Status status =
        broadcast(groups[static_cast<std::size_t>(rank)], {.input = input.data(),
                                                           .output = output.data(),
                                                           .count = 2,
                                                           .root = rank,
                                                           .options = {.algorithm = "two_shot"}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    for (const char* one :
         {"broadcast/two_shot #1 (2 x fp32, root 0)", "broadcast/two_shot #1 (2 x fp32, root 1)"}) {
      EXPECT_THAT(told(groups[static_cast<std::size_t>(rank)], one), HasSubstr(one));
    }
  });
}

// Who comes late is waited for: what it wrote before is there.
TEST(BarrierTest, NobodyGoesOnBeforeAllHaveCome) {
  auto groups = take(Communicator::create_in_process(3, {.backend = Backend::kHost}));
  std::array<std::atomic<int>, 3> come{};
  on_all_ranks(3, [&](int rank) {
    for (int round = 1; round <= 20; ++round) {
      if (rank == round % 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      come[static_cast<std::size_t>(rank)] = round;
      require_ok(barrier(groups[static_cast<std::size_t>(rank)]));
      for (const auto& each : come) EXPECT_GE(each.load(), round);
    }
  });
}

TEST(BarrierTest, ARankThatNeverComesIsNamed) {
  auto groups = take(Communicator::create_in_process(2, {.backend = Backend::kHost}));
  prepare_all(groups);
  require_ok(groups[0].set_timeout(std::chrono::milliseconds(50)));
  const Status status = barrier(groups[0]);
  EXPECT_EQ(status.code(), StatusCode::kTimeout);
  EXPECT_THAT(status.message(), HasSubstr("barrier/flags #1"));
  EXPECT_THAT(status.message(), HasSubstr("s for rank 1"));
}

}  // namespace
}  // namespace tutti::test
