// Memory of one rank alone, and what becomes of it when a group registers it.
#include "memory/local_allocation.hpp"

#include "unit/memory/heap_group.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kLocalBytes = 100'000;

struct LocalCase {
  HeapKind kind;
  std::vector<int> processes;
  bool descriptors = true;

  std::string name() const {
    std::string name = kind == HeapKind::kHost ? "host" : descriptors ? "cuda" : "fabric";
    for (const int process : processes) name += "_" + std::to_string(process);
    return name;
  }
  friend void PrintTo(const LocalCase& tested, std::ostream* out) { *out << tested.name(); }
};

class LocalAllocationTest : public ::testing::TestWithParam<LocalCase> {
 protected:
  LocalAllocationTest() {
    for (auto& properties : group_.world->devices) properties.fabric_handles = true;
  }

  Result<LocalAllocation::Owned> allocate(int rank) {
    if (GetParam().kind == HeapKind::kHost) {
      return LocalAllocation::on_host(group_.shared_memory(rank), kLocalBytes);
    }
    return LocalAllocation::on_gpu(group_.cuda(rank), group_.device(rank), kLocalBytes,
                                   GetParam().descriptors);
  }
  std::vector<LocalAllocation::Owned> allocate_each() {
    std::vector<LocalAllocation::Owned> memory;
    for (int rank = 0; rank < group_.size(); ++rank) memory.push_back(*allocate(rank));
    return memory;
  }
  // Rank r registers from `step` * r on.
  std::vector<Segment> register_each(const std::vector<LocalAllocation::Owned>& memory,
                                     std::size_t step = 0, std::size_t bytes = kLocalBytes) {
    Ranges ranges;
    for (std::size_t r = 0; r < memory.size(); ++r) {
      ranges.push_back({memory[r]->address() + step * r, bytes});
    }
    return group_.register_one(ranges);
  }

  HeapGroup group_{GetParam().kind, GetParam().processes, GetParam().descriptors};
};
INSTANTIATE_TEST_SUITE_P(Groups, LocalAllocationTest,
                         ::testing::Values(LocalCase{HeapKind::kHost, {0, 0, 0}},
                                           LocalCase{HeapKind::kHost, {0, 1, 0}},
                                           LocalCase{HeapKind::kCuda, {0, 0, 0}},
                                           LocalCase{HeapKind::kCuda, {0, 1, 0}},
                                           LocalCase{HeapKind::kCuda, {0, 1, 1}, false}),
                         [](const auto& tested) { return tested.param.name(); });

TEST_P(LocalAllocationTest, IsReachedByEveryRankFromAnyOffset) {
  const auto memory = allocate_each();
  expect_symmetric(register_each(memory), kLocalBytes - 16);
  expect_symmetric(register_each(memory, 48, 5000), 4000);
}

TEST_P(LocalAllocationTest, LivesAsLongAsItIsRegistered) {
  const auto before = group_.open();
  const int descriptors = open_descriptors();
  auto memory = allocate_each();
  auto whole = register_each(memory);
  auto part = register_each(memory, 4096, 100);
  memory.clear();
  expect_symmetric(whole);
  whole.clear();
  expect_symmetric(part);
  EXPECT_NE(group_.open(), before);
  part.clear();
  EXPECT_EQ(group_.open(), before);
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST_P(LocalAllocationTest, IsOpenedOnceHoweverOftenItIsRegistered) {
  const auto memory = allocate_each();
  const auto first = register_each(memory);
  const auto open = group_.open();
  const auto second = register_each(memory, 8, 50);
  EXPECT_EQ(group_.open(), open);
}

TEST_P(LocalAllocationTest, MayBeGoneBeforeItIsEverRegistered) {
  const auto before = group_.open();
  allocate_each().clear();
  EXPECT_EQ(group_.open(), before);
}

class LocalHostMemory : public ::testing::Test {
 protected:
  HeapGroup group_{HeapKind::kHost, {0, 1}};
};

TEST_F(LocalHostMemory, EndsWhereItEnds) {
  const auto memory = *LocalAllocation::on_host(group_.shared_memory(0), kLocalBytes);
  const std::size_t beyond = memory->bytes() + 1;
  std::vector<std::byte> plain(beyond);
  const auto results =
      group_.try_register({{{memory->address(), beyond}}, {{plain.data(), beyond}}});
  for (const auto& result : results) {
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(result.status().message(), HasSubstr("rank 0: range 0"));
    EXPECT_THAT(result.status().message(), HasSubstr("local memory ends after 102400"));
  }
}

TEST_F(LocalHostMemory, OfSomeRanksOnlyIsStagedOnAll) {
  const auto memory = *LocalAllocation::on_host(group_.shared_memory(0), kLocalBytes);
  std::vector<std::byte> plain(kLocalBytes);
  const auto segments =
      group_.register_one({{memory->address(), kLocalBytes}, {plain.data(), kLocalBytes}});
  for (const Segment& segment : segments) {
    EXPECT_FALSE(segment->zero_copy());
    EXPECT_THAT(segment->why_staged, HasSubstr("rank 1: memory of a process"));
  }
}

TEST_F(LocalHostMemory, IsRefusedWhereNoneIsLeft) {
  LockedSharedMemory& shared_memory = group_.shared_memory(0);
  for (int FakeSharedMemory::*const step :
       {&FakeSharedMemory::fail_create_at, &FakeSharedMemory::fail_map_at}) {
    const int descriptors = open_descriptors();
    shared_memory.fake().*step = 0;
    const auto refused = LocalAllocation::on_host(shared_memory, kLocalBytes);
    EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(open_descriptors(), descriptors);
  }
}

}  // namespace
}  // namespace tutti::test
