// What is particular to memory of GPUs, on a fake of them.
#include <algorithm>
#include <cstring>
#include <set>

#include "unit/memory/heap_group.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kHeapBytes = 64 * KiB;

// cudaMalloc'ed memory on every rank's own GPU.
Ranges allocate_each(HeapGroup& group, std::size_t bytes = kHeapBytes) {
  Ranges ranges;
  for (int rank = 0; rank < group.size(); ++rank)
    ranges.push_back({*group.cuda(rank).allocate(group.device(rank), bytes), bytes});
  return ranges;
}

struct VirtualMemory {
  CudaAllocation allocation = 0;
  CudaAddress address = nullptr;
};
VirtualMemory map_virtual(FakeCuda& cuda, int device, Result<CudaAllocation> allocation) {
  return {*allocation, *cuda.map_allocation(*allocation, kHeapBytes, {device})};
}
void unmap_virtual(FakeCuda& cuda, const VirtualMemory& memory) {
  ASSERT_TRUE(cuda.unmap_allocation(memory.address, kHeapBytes).is_ok());
  ASSERT_TRUE(cuda.release_allocation(memory.allocation).is_ok());
}
Ranges virtual_each(HeapGroup& group, std::vector<VirtualMemory>& memory) {
  Ranges ranges;
  for (int rank = 0; rank < group.size(); ++rank) {
    FakeCuda& cuda = group.cuda(rank);
    memory.push_back(map_virtual(cuda, group.device(rank),
                                 cuda.create_allocation(group.device(rank), kHeapBytes)));
    ranges.push_back({memory.back().address, kHeapBytes});
  }
  return ranges;
}

std::byte* at(const Ranges& ranges, int rank) {
  return static_cast<std::byte*>(ranges[rank].first);
}

// A kernel of any rank can dereference what its rank was given.
void expect_reachable(HeapGroup& group, const std::vector<Segment>& segments) {
  for (int rank = 0; rank < group.size(); ++rank) {
    for (int part = 0; part < group.size(); ++part) {
      EXPECT_TRUE(group.cuda(rank).accessible(group.device(rank), segments[rank]->at[part]))
          << "part " << part << " from rank " << rank;
    }
  }
}

class CudaHeapTest : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  HeapGroup group_{HeapKind::kCuda, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Groups, CudaHeapTest,
                         ::testing::Values(std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 2},
                                           std::vector<int>{0, 1, 1, 0}),
                         name_of_places);

TEST_P(CudaHeapTest, EveryKindOfMemoryIsReachableByEveryRanksGpu) {
  expect_reachable(group_, group_.allocate(kHeapBytes));
  const auto ranges = allocate_each(group_);
  const auto plain = group_.register_one(ranges);
  expect_reachable(group_, plain);
  expect_symmetric(plain);
  std::vector<VirtualMemory> memory;
  const auto mapped = group_.register_one(virtual_each(group_, memory));
  expect_reachable(group_, mapped);
  for (const Segment& segment : mapped) EXPECT_TRUE(segment->zero_copy()) << segment->why_staged;
}

// What cudaMalloc gave to threads of one process; all ranks say the same of it.
TEST_P(CudaHeapTest, CopiesOfMallocedMemoryQueueWhereRanksShareAProcess) {
  const std::set<int> processes(GetParam().begin(), GetParam().end());
  const bool shared = processes.size() < GetParam().size();
  std::vector<VirtualMemory> memory;
  for (const Segment& segment : group_.register_one(allocate_each(group_))) {
    EXPECT_EQ(segment->copies_queue, shared);
  }
  for (const auto& others :
       {group_.register_one(virtual_each(group_, memory)), group_.allocate(kHeapBytes)}) {
    for (const Segment& segment : others) EXPECT_FALSE(segment->copies_queue);
  }
}

TEST_P(CudaHeapTest, SmallPiecesShareAnAllocationAndAreGivenOutOnce) {
  constexpr std::size_t kPiece = 5000;
  group_.allocate(kHeapBytes);  // and so every rank has a stream
  const auto before = group_.open();
  auto first = group_.allocate_small(kPiece);
  const auto open = group_.open();
  auto second = group_.allocate_small(kPiece);
  EXPECT_EQ(group_.open(), open) << "the second opens nothing";
  expect_reachable(group_, first);
  expect_reachable(group_, second);
  for (int rank = 0; rank < group_.size(); ++rank) {
    for (int part = 0; part < group_.size(); ++part) {
      std::memset(first[rank]->at[part], 1, kPiece);  // a late store of a peer's
    }
  }
  first.clear();
  auto third = group_.allocate_small(kPiece);
  for (const auto& segments : {second, third}) {
    for (const Segment& segment : segments) {
      EXPECT_TRUE(std::all_of(segment->local, segment->local + kPiece,
                              [](std::byte value) { return value == std::byte{0}; }));
      EXPECT_EQ(segment->bytes, kPiece);
    }
  }
  second.clear();
  third.clear();
  EXPECT_EQ(group_.open(), before) << "with its last piece the allocation ends";
}

TEST_P(CudaHeapTest, RegistersAtAnyOffsetOfAnAllocation) {
  const Ranges ranges = allocate_each(group_);
  std::vector<VirtualMemory> memory;
  const Ranges whole = virtual_each(group_, memory);
  for (const Ranges* const base : {&ranges, &whole}) {
    Ranges shifted;
    for (int rank = 0; rank < group_.size(); ++rank)
      shifted.push_back({at(*base, rank) + 100 * (rank + 1), 5000});
    const auto segments = group_.register_one(shifted);
    for (int rank = 0; rank < group_.size(); ++rank) {
      EXPECT_EQ(segments[rank]->local, at(shifted, rank));
      for (int part = 0; part < group_.size(); ++part)
        segments[rank]->at[part][4000 + rank] = std::byte(10 * part + rank + 1);
    }
    for (int part = 0; part < group_.size(); ++part) {
      for (int rank = 0; rank < group_.size(); ++rank)
        EXPECT_EQ(at(*base, part)[100 * (part + 1) + 4000 + rank], std::byte(10 * part + rank + 1));
    }
  }
}

TEST_P(CudaHeapTest, RangesOfOneAllocationShareOneOpening) {
  const Ranges ranges = allocate_each(group_);
  std::vector<VirtualMemory> memory;
  const Ranges whole = virtual_each(group_, memory);
  const auto before = group_.open();
  for (const Ranges* const base : {&ranges, &whole}) {
    auto first = group_.register_one(*base);
    const auto open = group_.open();
    const auto use = group_.heap(0).use();
    Ranges part;
    for (int rank = 0; rank < group_.size(); ++rank) part.push_back({at(*base, rank) + 512, 100});
    auto second = group_.register_one(part);
    EXPECT_EQ(group_.open(), open) << "the second opens nothing";
    EXPECT_EQ(group_.heap(0).use().open_mappings, use.open_mappings);
    first.clear();
    EXPECT_EQ(group_.open(), open) << "the second still needs it";
    expect_symmetric(second);
    second.clear();
    EXPECT_EQ(group_.open(), before) << "closed with the last";
  }
}

TEST_P(CudaHeapTest, ManyRangesOfOneBatchShareOneOpening) {
  const Ranges base = allocate_each(group_);
  std::vector<Ranges> ranges(group_.size());
  for (int rank = 0; rank < group_.size(); ++rank) {
    for (int k = 0; k < 50; ++k) ranges[rank].push_back({at(base, rank) + 64 * k, 64});
  }
  const auto results = group_.try_register(ranges);
  for (int rank = 0; rank < group_.size(); ++rank) {
    ASSERT_TRUE(results[rank].is_ok());
    for (int k = 0; k < 50; ++k) EXPECT_EQ((*results[rank])[k]->id, static_cast<unsigned>(k));
    EXPECT_LT(group_.heap(rank).use().open_mappings, static_cast<std::size_t>(group_.size()));
  }
  std::vector<Segment> seventh;
  for (const auto& result : results) seventh.push_back((*result)[7]);
  expect_symmetric(seventh);
}

TEST_P(CudaHeapTest, MemoryThatWasFreedAndGivenOutAgainIsNoticed) {
  const Ranges ranges = allocate_each(group_);
  auto segments = group_.register_one(ranges);
  FakeCuda& cuda = group_.cuda(1);
  EXPECT_TRUE(group_.heap(1).check_alive(*segments[1]).is_ok());
  ASSERT_TRUE(cuda.free(at(ranges, 1)).is_ok());
  EXPECT_EQ(group_.heap(1).check_alive(*segments[1]).code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(*cuda.allocate(group_.device(1), kHeapBytes), at(ranges, 1))
      << "the same address again";
  const Status moved = group_.heap(1).check_alive(*segments[1]);
  EXPECT_EQ(moved.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(moved.message(), HasSubstr("freed and given out again"));
  EXPECT_TRUE(group_.heap(0).check_alive(*segments[0]).is_ok());

  // The others still have the old memory open: the new registration must not be given that.
  const auto renewed = group_.register_one(ranges);
  EXPECT_TRUE(group_.heap(1).check_alive(*renewed[1]).is_ok());
  expect_symmetric(renewed);
}

TEST_P(CudaHeapTest, VirtualMemoryWhoseHandleIsUsedAgainIsNotMistakenForTheOld) {
  std::vector<VirtualMemory> memory;
  Ranges ranges = virtual_each(group_, memory);
  auto segments = group_.register_one(ranges);
  FakeCuda& cuda = group_.cuda(1);
  segments[1] = nullptr;  // rank 1 is done with it; the others keep theirs
  unmap_virtual(cuda, memory[1]);
  const auto again =
      map_virtual(cuda, group_.device(1), cuda.create_allocation(group_.device(1), kHeapBytes));
  ranges[1].first = again.address;
  const auto renewed = group_.register_one(ranges);
  expect_symmetric(renewed);
}

TEST_P(CudaHeapTest, WhatPeersCannotMapIsStagedOnAllRanksWithTheReason) {
  const struct {
    CudaMemoryKind kind;
    const char* reason;
  } cases[] = {{CudaMemoryKind::kPool, "rank 1: memory of cudaMallocAsync"},
               {CudaMemoryKind::kManaged, "rank 1: managed memory"},
               {CudaMemoryKind::kHost, "rank 1: pinned host memory"}};
  Ranges ranges = allocate_each(group_);
  const auto open = group_.open();
  for (const auto& [kind, reason] : cases) {
    auto other = ranges;
    other[1].first = *group_.cuda(1).allocate_kind(kind, group_.device(1), kHeapBytes);
    for (const Segment& segment : group_.register_one(other)) {
      EXPECT_FALSE(segment->zero_copy());
      EXPECT_THAT(segment->why_staged, HasSubstr(reason));
      EXPECT_TRUE(group_.heap(0).check_alive(*segment).is_ok());
    }
    ASSERT_TRUE(group_.cuda(1).free(at(other, 1)).is_ok());
  }
  std::vector<std::byte> plain(kHeapBytes);
  ranges[1].first = plain.data();
  for (const Segment& segment : group_.register_one(ranges))
    EXPECT_THAT(segment->why_staged, HasSubstr("rank 1: the memory is not known to CUDA"));
  EXPECT_EQ(group_.open(), open);
}

TEST_P(CudaHeapTest, OneStagedRangeLeavesTheOthersOfItsBatchZeroCopy) {
  const Ranges ranges = allocate_each(group_);
  std::byte plain[100] = {};
  std::vector<Ranges> batch(group_.size());
  for (int rank = 0; rank < group_.size(); ++rank)
    batch[rank] = {{at(ranges, rank), 100}, {plain, 100}, {at(ranges, rank) + 100, 100}};
  for (const auto& result : group_.try_register(batch)) {
    ASSERT_TRUE(result.is_ok());
    EXPECT_TRUE((*result)[0]->zero_copy());
    EXPECT_FALSE((*result)[1]->zero_copy());
    EXPECT_TRUE((*result)[2]->zero_copy());
  }
}

TEST_P(CudaHeapTest, ARangeBeyondItsAllocationIsRefusedOnAllRanks) {
  Ranges ranges = allocate_each(group_);
  for (auto& range : ranges) range.second = 1000;
  ranges[1].first = at(ranges, 1) + kHeapBytes - 999;
  std::vector<Ranges> batch;
  for (const auto& range : ranges) batch.push_back({range});
  for (const auto& result : group_.try_register(batch)) {
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(result.status().message(),
                AllOf(HasSubstr("rank 1"), HasSubstr("the allocation ends after 999")));
  }
}

TEST_P(CudaHeapTest, AVirtualRangeBeyondItsAllocationIsStaged) {
  std::vector<VirtualMemory> memory;
  Ranges ranges = virtual_each(group_, memory);
  for (auto& range : ranges) range.second = kHeapBytes / 2;
  ranges[0].first = at(ranges, 0) + kHeapBytes - 100;
  for (const Segment& segment : group_.register_one(ranges))
    EXPECT_THAT(segment->why_staged, HasSubstr("rank 0: the range of 32768 bytes spans several"));
}

TEST_P(CudaHeapTest, VirtualMemoryThatCannotBeExportedIsStagedForOtherProcesses) {
  std::vector<VirtualMemory> memory;
  Ranges ranges = virtual_each(group_, memory);
  FakeCuda& cuda = group_.cuda(1);
  ranges[1].first = map_virtual(cuda, group_.device(1),
                                cuda.create_private_allocation(group_.device(1), kHeapBytes))
                        .address;
  for (const Segment& segment : group_.register_one(ranges)) {
    EXPECT_EQ(segment->zero_copy(), group_.one_process());
    if (!group_.one_process()) {
      EXPECT_THAT(segment->why_staged, HasSubstr("rank 1: the allocation was made without"));
    }
  }
}

TEST(CudaHeap, MemoryOnAnotherGpuThanTheRanksIsStaged) {
  HeapGroup group(HeapKind::kCuda, {0, 0});
  Ranges ranges = allocate_each(group);
  ranges[0].first = *group.cuda(0).allocate(1, kHeapBytes);
  for (const Segment& segment : group.register_one(ranges))
    EXPECT_THAT(segment->why_staged, HasSubstr("rank 0: the memory is on GPU 1"));
}

TEST(CudaHeap, WithoutPeerAccessAllocationFailsAndRegistrationIsStaged) {
  for (const auto& places : {std::vector<int>{0, 0}, std::vector<int>{0, 1}}) {
    HeapGroup group(HeapKind::kCuda, places);
    group.world->without_peer_access = {{1, 0}};
    for (const auto& result : group.try_allocate(kHeapBytes)) {
      EXPECT_EQ(result.status().code(), StatusCode::kCuda);
      EXPECT_THAT(result.status().message(), HasSubstr("peer access"));
    }
    for (const Segment& segment : group.register_one(allocate_each(group))) {
      EXPECT_FALSE(segment->zero_copy());
      EXPECT_THAT(segment->why_staged, HasSubstr("rank 1: memory of rank 0: "));
    }
  }
}

TEST(CudaHeap, MoreVirtualAllocationsThanDescriptorsAreStaged) {
  HeapGroup group(HeapKind::kCuda, {0, 1});
  std::vector<Ranges> ranges(2);
  for (int k = 0; k < 65; ++k) {
    std::vector<VirtualMemory> memory;
    const Ranges next = virtual_each(group, memory);
    for (int rank = 0; rank < 2; ++rank) ranges[rank].push_back(next[rank]);
  }
  for (const auto& result : group.try_register(ranges)) {
    ASSERT_TRUE(result.is_ok());
    EXPECT_TRUE((*result)[63]->zero_copy()) << (*result)[63]->why_staged;
    EXPECT_THAT((*result)[64]->why_staged, HasSubstr("more than 64 VMM allocations"));
  }
}

}  // namespace
}  // namespace tutti::test
