// What communicators keep for themselves on a GPU goes from one to the next.
#include "memory/rank_memory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"

namespace tutti::test {
namespace {

constexpr RankMemory::Sizes kSizes{.device_bytes = 4096, .host_bytes = 512};

class RankMemoryTest : public ::testing::Test {
 protected:
  RankMemory create(int device, const RankMemory::Sizes& sizes = kSizes) {
    return take(RankMemory::create(cuda_, device, sizes));
  }
  std::size_t allocations() { return cuda_.open().allocations; }

  FakeCuda cuda_{std::make_shared<FakeCudaWorld>(2)};
};

TEST_F(RankMemoryTest, NothingIsFreedWhileAnotherCommunicatorMayWait) {
  auto waiting = create(0);
  { const auto first = create(0); }
  EXPECT_EQ(allocations(), 4u);
  waiting = {};
  EXPECT_EQ(allocations(), 0u);
}

TEST_F(RankMemoryTest, WhatIsGivenBackGoesToTheNextOfItsDeviceAndSizes) {
  const auto stays = create(0);
  auto first = create(0);
  CudaAddress const device_memory = first.device_memory();
  std::byte* const host_memory = first.host_memory();
  first = {};
  const auto elsewhere = create(1);
  const auto larger = create(0, {.device_bytes = 8192, .host_bytes = 512});
  EXPECT_NE(elsewhere.device_memory(), device_memory);
  EXPECT_NE(larger.device_memory(), device_memory);
  const auto next = create(0);
  EXPECT_EQ(next.device_memory(), device_memory);
  EXPECT_EQ(next.host_memory(), host_memory);
}

TEST_F(RankMemoryTest, WhatIsLeftBehindIsNeitherFreedNorGivenOutAgain) {
  const auto stays = create(0);
  auto first = create(0);
  CudaAddress const device_memory = first.device_memory();
  std::byte* const host_memory = first.host_memory();
  first.leave_behind();
  first = {};
  const auto next = create(0);
  EXPECT_NE(next.device_memory(), device_memory);
  EXPECT_EQ(allocations(), 6u);
  require_ok(cuda_.free(device_memory));  // the fake looks for what was forgotten
  require_ok(cuda_.free_mapped_host(host_memory));
}

TEST_F(RankMemoryTest, AFailureLeavesNothing) {
  for (const char* call : {"allocate", "allocate_mapped_host"}) {
    cuda_.fail(call, 0);
    EXPECT_FALSE(RankMemory::create(cuda_, 0, kSizes).is_ok());
    EXPECT_EQ(allocations(), 0u) << call;
  }
  EXPECT_NE(create(0).host_memory(), nullptr);
}

}  // namespace
}  // namespace tutti::test
