// Blocks that go round without a message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "support/check.hpp"
#include "support/fake_gpus.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

class SymmetricPoolTest : public ::testing::Test {
 protected:
  Communicator& group() { return groups_[0]; }
  std::vector<Communicator> groups_ =
      take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  SymmetricPool pool_{group()};
};

TEST_F(SymmetricPoolTest, TheBlockThatWasGivenBackFirstIsTakenFirst) {
  SymmetricBlock a = take(pool_.take(5000)), b = take(pool_.take(5000));
  void *const first = a.data(), *const second = b.data();
  EXPECT_NE(first, second);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0u);
  EXPECT_EQ(a.bytes(), 5000u);
  require_ok(b.give_back(nullptr));
  EXPECT_FALSE(b);
  a = {};
  EXPECT_EQ(take(pool_.take(5000)).data(), second);
  EXPECT_EQ(take(pool_.take(5000)).data(), first);
  EXPECT_EQ(pool_.use().blocks, 2u);
}

TEST_F(SymmetricPoolTest, SizesOfOneEighthShareBlocks) {
  const void* const block = take(pool_.take(8 << 20)).data();
  EXPECT_EQ(take(pool_.take((8 << 20) - 1000)).data(), block);
  EXPECT_NE(take(pool_.take((8 << 20) + 1)).data(), block);
  EXPECT_EQ(pool_.use().blocks, 2u);
  EXPECT_EQ(pool_.use().free_bytes, std::size_t{(8 + 9) << 20});
  for (const std::size_t bytes : {1, 255, 4097, 1000000, 123456789}) {
    pool_.trim();
    const SymmetricBlock taken = take(pool_.take(bytes));
    EXPECT_GE(pool_.use().taken_bytes, bytes);
    EXPECT_LE(pool_.use().taken_bytes, bytes + std::max(bytes / 8, std::size_t{256}));
  }
}

TEST_F(SymmetricPoolTest, TrimFreesWhatIsNotTaken) {
  const SymmetricBlock kept = take(pool_.take(1000));
  { const SymmetricBlock freed = take(pool_.take(1000)); }
  EXPECT_EQ(pool_.use().blocks, 2u);
  pool_.trim();
  EXPECT_EQ(pool_.use().blocks, 1u);
  EXPECT_EQ(pool_.use().free_bytes, 0u);
  EXPECT_EQ(static_cast<char*>(kept.data())[999], 0);
  const auto before = group().counters();
  const SymmetricBlock again = take(pool_.take(1000));
  EXPECT_EQ(group().counters().allocations, before.allocations + 1);
}

TEST_F(SymmetricPoolTest, BlocksOutliveTheirPoolAndTheirGroup) {
  SymmetricBlock kept = take(pool_.take(1000));
  pool_ = SymmetricPool(group());
  groups_.clear();
  static_cast<char*>(kept.data())[999] = 1;
  require_ok(kept.give_back(nullptr));
}

TEST_F(SymmetricPoolTest, WhatCannotBeTakenIsRefused) {
  require_failure(pool_.take(0).status(), StatusCode::kInvalidArgument, {"take(0)"});
  require_failure(pool_.take(~std::size_t{0}).status(), StatusCode::kInvalidArgument);
  EXPECT_EQ(pool_.use().blocks, 0u);
  EXPECT_TRUE(group().status().is_ok());
  SymmetricBlock none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.bytes(), 0u);
  require_ok(none.give_back(nullptr));
}

// A loop as a layer's gathering is one; `extra`: bytes of a block that each iteration takes for
// good.
Communicator::Counters change_after_the_first_iteration(Rank& rank, std::size_t extra) {
  constexpr std::size_t kCount = 300;
  SymmetricPool pool(rank.group);
  std::vector<SymmetricBlock> kept;
  Communicator::Counters first;
  for (int iteration = 0; iteration < 5; ++iteration) {
    const SymmetricBlock block = take(pool.take(rank.size() * kCount * sizeof(int)));
    auto* const output = static_cast<int*>(block.data());
    int* const own = output + static_cast<std::size_t>(rank.number()) * kCount;
    std::fill_n(own, kCount, 10 * iteration + rank.number());
    require_ok(all_gather(rank.group, {.input = own,
                                       .output = output,
                                       .count = kCount,
                                       .dtype = DataType::kInt32,
                                       .options = {.algorithm = "copy_engine"}}));
    for (int r = 0; r < rank.size(); ++r) {
      require(output[static_cast<std::size_t>(r + 1) * kCount - 1] == 10 * iteration + r, "rank's");
    }
    if (extra > 0) kept.push_back(take(pool.take(extra)));
    if (iteration == 0) first = rank.group.counters();
  }
  const auto last = rank.group.counters();
  return {.allocations = last.allocations - first.allocations,
          .registrations = last.registrations - first.registrations,
          .exchanges = last.exchanges - first.exchanges};
}

class SymmetricPoolLoop : public ::testing::TestWithParam<RankKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, SymmetricPoolLoop,
                         ::testing::Values(RankKind::kThreads, RankKind::kProcesses),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(SymmetricPoolLoop, AllocatesRegistersAndAsksNothingAfterItsFirstIteration) {
  EXPECT_EQ(run_group({.kind = GetParam(), .ranks = 3},
                      [](Rank& rank) {
                        require(
                            change_after_the_first_iteration(rank, 0) == Communicator::Counters{},
                            "nothing was asked for");
                      }),
            "");
}

TEST_P(SymmetricPoolLoop, NegativeControlAnIterationThatAllocatesShows) {
  EXPECT_EQ(run_group({.kind = GetParam(), .ranks = 3},
                      [](Rank& rank) {
                        const auto change = change_after_the_first_iteration(rank, 100);
                        require(change.allocations == 4, "one in each iteration");
                        require(change.exchanges >= 4, "none without the other ranks");
                        require(change.registrations == 0, "no memory of a user's");
                      }),
            "");
}

TEST_F(SymmetricPoolTest, RegistrationsAreCountedToo) {
  const auto before = group().counters();
  std::vector<float> values(100);
  const SymmetricMemory memory = take(group().register_memory(values.data(), 400));
  EXPECT_EQ(group().counters().registrations, before.registrations + 1);
  EXPECT_EQ(group().counters().allocations, before.allocations);
  EXPECT_GT(group().counters().exchanges, before.exchanges);
}

// Rank 1 gives back in the other order: it then holds another block than rank 0.
TEST(SymmetricPoolOrder, NegativeControlRanksThatGiveBackInAnotherOrderAreFound) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    SymmetricPool pool(group);
    SymmetricBlock a = take(pool.take(4096)), b = take(pool.take(4096));
    if (rank == 1) std::swap(a, b);
    a = {};
    b = {};
    const SymmetricBlock block = take(pool.take(4096));
    auto* const output = static_cast<float*>(block.data());
    const Status status = all_gather(group, {.input = output + rank * 512,
                                             .output = output,
                                             .count = 512,
                                             .options = {.algorithm = "copy_engine"}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("all_gather/copy_engine #1"));
  });
}

class SymmetricPoolStreams : public ::testing::Test {
 protected:
  FakeGpus gpus_{1};
  SymmetricPool pool_{gpus_.groups[0]};
  Stream one_ = gpus_.make_stream(0), other_ = gpus_.make_stream(0);
};

TEST_F(SymmetricPoolStreams, ATakerWaitsForTheStreamOfTheLastUse) {
  SymmetricBlock block = take(pool_.take(1000, one_));
  const auto gate = gpus_.occupy(one_);
  require_ok(block.give_back(one_));
  block = take(pool_.take(1000, other_));
  EXPECT_FALSE(gpus_.idle(other_));
  *gate = true;
  EXPECT_TRUE(gpus_.idle(other_));
}

TEST_F(SymmetricPoolStreams, NegativeControlOneThatIsGivenBackWithoutAStreamIsNotWaitedFor) {
  SymmetricBlock block = take(pool_.take(1000, one_));
  gpus_.occupy(one_);
  block = {};
  block = take(pool_.take(1000, other_));
  EXPECT_TRUE(gpus_.idle(other_));
}

TEST_F(SymmetricPoolStreams, CapturesAreRefusedWithTheReason) {
  SymmetricBlock kept = take(pool_.take(1000, one_));
  { const SymmetricBlock free = take(pool_.take(1000, one_)); }
  const void* const data = kept.data();
  const auto before = pool_.use();
  require_ok(gpus_.cuda.begin_capture(one_));
  for (const std::size_t bytes : {1000, 5000}) {
    require_failure(pool_.take(bytes, one_).status(), StatusCode::kInvalidArgument,
                    {"capture", "before it"});
  }
  require_failure(kept.give_back(one_), StatusCode::kInvalidArgument, {"capture"});
  EXPECT_EQ(kept.data(), data);
  EXPECT_EQ(pool_.use().blocks, before.blocks);
  EXPECT_EQ(pool_.use().taken_bytes, before.taken_bytes);
  const CudaGraph graph = take(gpus_.cuda.end_capture(one_));
  require_ok(gpus_.cuda.destroy_graph(graph));
  require_ok(kept.give_back(one_));
}

}  // namespace
}  // namespace tutti::test
