// What is particular to memory of the host.
#include "unit/memory/heap_group.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

TEST(HostHeap, RanksOfOneProcessShareOneMappingOfEachPart) {
  HeapGroup group(HeapKind::kHost, {0, 0, 1, 0, 1});
  const auto segments = group.allocate(10000);
  for (int part = 0; part < group.size(); ++part) {
    EXPECT_EQ(segments[0]->at[part], segments[1]->at[part]);
    EXPECT_EQ(segments[0]->at[part], segments[3]->at[part]);
    EXPECT_EQ(segments[2]->at[part], segments[4]->at[part]);
    EXPECT_NE(segments[0]->at[part], segments[2]->at[part]) << "processes have their own";
  }
  EXPECT_EQ(group.shared_memory(0).mapped(), 5) << "one per part, whatever the number of ranks";
  EXPECT_EQ(group.shared_memory(2).mapped(), 5);
  expect_symmetric(segments, 9000);
}

TEST(HostHeap, NoDescriptorStaysOpen) {
  HeapGroup group(HeapKind::kHost, {0, 1, 0});
  const int before = open_descriptors();
  const auto segments = group.allocate(10000);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(HostHeap, RegistersPointersWithinOneProcess) {
  HeapGroup group(HeapKind::kHost, {0, 0});
  std::vector<std::vector<std::byte>> memory(2, std::vector<std::byte>(100));
  const auto segments = group.register_one({{memory[0].data(), 100}, {memory[1].data(), 100}});
  EXPECT_EQ(segments[0]->at[1], memory[1].data());
  expect_symmetric(segments);
  EXPECT_EQ(group.heap(0).find(memory[0].data() + 50, 50), segments[0]);
  EXPECT_TRUE(group.heap(0).check_alive(*segments[0]).is_ok());
}

TEST(HostHeap, StagesRegistrationsAcrossProcessesAndSaysWhy) {
  HeapGroup group(HeapKind::kHost, {0, 1});
  std::vector<std::vector<std::byte>> memory(2, std::vector<std::byte>(100));
  const auto segments = group.register_one({{memory[0].data(), 100}, {memory[1].data(), 100}});
  for (const Segment& segment : segments) {
    EXPECT_FALSE(segment->zero_copy());
    EXPECT_THAT(segment->why_staged, HasSubstr("memory of a process cannot be mapped"));
  }
  EXPECT_EQ(group.heap(1).find(memory[1].data(), 100), segments[1]) << "staged, but known";
}

TEST(HostHeap, TheLatestOfOverlappingRegistrationsIsFound) {
  HeapGroup group(HeapKind::kHost, {0});
  std::vector<std::byte> memory(1000);
  std::byte* const at = memory.data();
  const auto whole = group.register_one({{at, 1000}});
  auto middle = group.register_one({{at + 200, 300}});
  const auto later = group.register_one({{at + 100, 600}});
  const SymmetricHeap& heap = group.heap(0);
  EXPECT_EQ(heap.find(at, 10), whole[0]);
  EXPECT_EQ(heap.find(at + 250, 10), later[0]);
  EXPECT_EQ(heap.find(at + 650, 100), whole[0]);
  EXPECT_EQ(heap.find(at + 150, 800), whole[0]);
  EXPECT_EQ(heap.find(at + 999, 2), nullptr);
}

TEST(HostHeap, ANullRangeFailsOnAllRanksAndNamesTheOne) {
  HeapGroup group(HeapKind::kHost, {0, 0});
  std::byte here{};
  const auto results = group.try_register({{{&here, 1}}, {{nullptr, 1}}});
  for (const auto& result : results) {
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(result.status().message(), HasSubstr("rank 1: range 0: a null pointer"));
  }
}

TEST(HostHeap, EmptyRangesAndNoRangesAreFine) {
  HeapGroup group(HeapKind::kHost, {0, 0});
  for (const auto& result : group.try_register({{{nullptr, 0}}, {{nullptr, 0}}})) {
    ASSERT_TRUE(result.is_ok());
    EXPECT_FALSE(result->at(0)->zero_copy());
  }
  for (const auto& result : group.try_register({{}, {}})) EXPECT_TRUE(result.is_ok());
  for (const Segment& segment : group.allocate(1)) EXPECT_EQ(segment->id, 1U);
}

TEST(HostHeap, RegistrationOfDifferentNumbersIsAMismatch) {
  HeapGroup group(HeapKind::kHost, {0, 0});
  std::byte here[2] = {};
  for (const auto& result : group.try_register({{{here, 1}}, {{here, 1}, {here + 1, 1}}})) {
    EXPECT_EQ(result.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(result.status().message(), HasSubstr("register #1 (1 ranges), rank 1 calls "
                                                     "register #1 (2 ranges)"));
  }
}

}  // namespace
}  // namespace tutti::test
