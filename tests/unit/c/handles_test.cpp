// Handles: which ones are found, and that a closed one never is.
#include "c/handles.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

namespace tutti::c {
namespace {

// As the library's own, it is never destroyed.
class Handles : public testing::Test {
 protected:
  static HandleTable& table() {
    static HandleTable of_tests;
    return of_tests;
  }
  int first_ = 0, second_ = 0;
};

TEST_F(Handles, AnOpenHandleIsFoundByItsKind) {
  const std::uint64_t handle = table().open(3, &first_);
  ASSERT_NE(handle, 0u);
  EXPECT_EQ(table().find(3, handle), &first_);
  EXPECT_EQ(table().find(2, handle), nullptr);
  EXPECT_EQ(table().close(2, handle), nullptr);
  EXPECT_EQ(table().close(3, handle), &first_);
}

TEST_F(Handles, AClosedHandleIsNotFoundEvenIfItsPlaceIsUsedAgain) {
  std::set<std::uint64_t> closed;
  for (int k = 0; k < 100; ++k) {
    const std::uint64_t handle = table().open(1, &first_);
    EXPECT_TRUE(closed.insert(handle).second) << "handed out twice";
    for (const std::uint64_t old : closed) {
      EXPECT_EQ(table().find(1, old), old == handle ? &first_ : nullptr);
    }
    EXPECT_EQ(table().close(1, handle), &first_);
    EXPECT_EQ(table().close(1, handle), nullptr);
  }
}

TEST_F(Handles, NumbersThatAreNoHandlesAreNotFound) {
  const std::uint64_t handle = table().open(1, &first_);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_EQ(table().find(1, handle ^ (std::uint64_t{1} << bit)), nullptr) << bit;
  }
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0},
                                     reinterpret_cast<std::uint64_t>(&first_)}) {
    EXPECT_EQ(table().find(1, number), nullptr) << number;
  }
}

TEST_F(Handles, ManyAreOpenAtOnce) {
  std::vector<std::uint64_t> open;
  for (int k = 0; k < 5000; ++k) open.push_back(table().open(1, k % 2 == 0 ? &first_ : &second_));
  for (std::size_t k = 0; k < open.size(); ++k) {
    EXPECT_EQ(table().find(1, open[k]), k % 2 == 0 ? &first_ : &second_);
  }
}

// What one thread opens, another one finds; and one closing thread alone gets the object.
TEST_F(Handles, OfSeveralThreads) {
  constexpr int kThreads = 4, kTimes = 500;
  std::atomic<std::uint64_t> shared = table().open(1, &first_);
  std::atomic<int> closed = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    (void)threads.emplace_back([&] {
      for (int k = 0; k < kTimes; ++k) {
        const std::uint64_t handle = shared.load();
        void* const found = table().find(1, handle);
        EXPECT_TRUE(found == &first_ || found == nullptr);
        if (table().close(1, handle) == nullptr) continue;
        ++closed;
        shared = table().open(1, &first_);
      }
    });
  }
  threads.clear();  // joins them
  EXPECT_GT(closed.load(), 0);
  EXPECT_EQ(table().find(1, shared), &first_);
}

}  // namespace
}  // namespace tutti::c
