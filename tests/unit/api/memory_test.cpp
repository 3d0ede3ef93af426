// Symmetric memory as a user holds it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

class SymmetricMemoryTest : public ::testing::TestWithParam<RankKind> {
 protected:
  std::string run(const std::function<void(Rank&)>& function) {
    return run_group({.kind = GetParam(), .ranks = 3}, function);
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, SymmetricMemoryTest,
                         ::testing::Values(RankKind::kThreads, RankKind::kProcesses),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(SymmetricMemoryTest, EveryRankSeesEveryPart) {
  EXPECT_EQ(run([](Rank& rank) {
              const SymmetricMemory memory = take(rank.group.allocate(1000));
              require(memory.size() == 1000 && memory.zero_copy() && memory, "a whole allocation");
              require(reinterpret_cast<std::uintptr_t>(memory.data()) % 16 == 0, "aligned");
              require(memory.peer(rank.number()) == memory.data(), "my part is mine");
              require(memory.peer(-1) == nullptr && memory.peer(3) == nullptr, "no such rank");
              for (int peer = 0; peer < rank.size(); ++peer) {
                static_cast<char*>(memory.peer(peer))[rank.number()] =
                    static_cast<char>(10 * rank.number() + peer);
              }
              float one = 1;  // everybody has written
              require_ok(all_reduce(rank.group, {.input = &one, .output = &one, .count = 1}));
              for (int peer = 0; peer < rank.size(); ++peer) {
                require(static_cast<char*>(memory.data())[peer] == 10 * peer + rank.number(),
                        "what a peer wrote into my part");
              }
            }),
            "");
}

TEST_P(SymmetricMemoryTest, MemoryOfTheUserWorksRegisteredOrStaged) {
  EXPECT_EQ(
      run([](Rank& rank) {
        std::vector<float> values(5000, static_cast<float>(rank.number() + 1));
        const SymmetricMemory memory =
            take(rank.group.register_memory(values.data(), values.size() * sizeof(float)));
        require(memory.data() == values.data(), "it stays where it is");
        require(memory.zero_copy() == (rank.spec.kind == RankKind::kThreads),
                "heap memory of another process cannot be addressed");
        require_ok(all_reduce(
            rank.group, {.input = values.data(), .output = values.data(), .count = values.size()}));
        for (const float value : values) require(value == 6.0f, "1 + 2 + 3");
      }),
      "");
}

TEST_P(SymmetricMemoryTest, MemoryMayOutliveItsGroup) {
  SymmetricMemory kept;
  EXPECT_EQ(run_group({.ranks = 1},
                      [&](Rank& rank) {
                        kept = take(rank.group.allocate(100));
                        std::memset(kept.data(), 7, 100);
                      }),
            "");
  EXPECT_EQ(static_cast<char*>(kept.data())[99], 7);
}

TEST_P(SymmetricMemoryTest, NothingIsNoMemory) {
  EXPECT_EQ(run([](Rank& rank) {
              require_failure(rank.group.allocate(0).status(), StatusCode::kInvalidArgument);
              require_failure(rank.group.register_memory(nullptr, 10).status(),
                              StatusCode::kInvalidArgument);
              float value = 0;
              require_failure(rank.group.register_memory(&value, 0).status(),
                              StatusCode::kInvalidArgument);
            }),
            "");
  const SymmetricMemory none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.size(), 0u);
  EXPECT_FALSE(none.zero_copy());
  EXPECT_EQ(none.peer(0), nullptr);
}

}  // namespace
}  // namespace tutti::test
