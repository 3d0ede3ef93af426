// GPU memory in groups that cannot pass descriptors, on a fake of GPUs with fabric handles.
#include "unit/memory/heap_group.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kFabricBytes = 64 * KiB;
constexpr const char* kCreate = "create_fabric_allocation";

// Ranks 1 and 2 share a process; all GPUs promise fabric handles.
class FabricTest : public ::testing::Test {
 protected:
  explicit FabricTest(bool descriptors = false) : group_(HeapKind::kCuda, {0, 1, 1}, descriptors) {
    for (auto& properties : group_.world->devices) properties.fabric_handles = true;
  }

  // Every rank fails with the same words, and nothing stays open.
  void expect_failure(StatusCode code, const ::testing::Matcher<const std::string&>& words) {
    const auto open = group_.open();
    for (const auto& result : group_.try_allocate(kFabricBytes)) {
      EXPECT_EQ(result.status().code(), code);
      EXPECT_THAT(result.status().message(), words);
    }
    EXPECT_EQ(group_.open(), open);
  }

  // Memory that a user has mapped, made as `create` does it.
  Ranges virtual_each(Result<CudaAllocation> (FakeCuda::*create)(int, std::size_t)) {
    Ranges ranges;
    for (int rank = 0; rank < group_.size(); ++rank) {
      FakeCuda& cuda = group_.cuda(rank);
      const CudaAllocation allocation = *(cuda.*create)(group_.device(rank), kFabricBytes);
      ranges.push_back(
          {*cuda.map_allocation(allocation, kFabricBytes, {group_.device(rank)}), kFabricBytes});
    }
    return ranges;
  }

  HeapGroup group_;
};

class FabricIsThereTest : public FabricTest {
 protected:
  FabricIsThereTest() : FabricTest(true) {}
};

TEST_F(FabricIsThereTest, ButIsNotAskedForWhereDescriptorsDo) {
  expect_symmetric(group_.allocate(kFabricBytes));
  for (int rank = 0; rank < group_.size(); ++rank) {
    EXPECT_EQ(group_.cuda(rank).calls(kCreate), 0);
    EXPECT_EQ(group_.cuda(rank).calls("export_fabric"), 0);
  }
}

TEST_F(FabricTest, CarriesSymmetricMemoryWithoutDescriptors) {
  const auto segments = group_.allocate(kFabricBytes);
  expect_symmetric(segments);
  for (int rank = 0; rank < group_.size(); ++rank) {
    for (int part = 0; part < group_.size(); ++part)
      EXPECT_TRUE(group_.cuda(rank).accessible(group_.device(rank), segments[rank]->at[part]));
    EXPECT_EQ(group_.cuda(rank).calls("export_allocation"), 0);
    // Sizes, offers with their handles, outcomes: no exchange of descriptors in between.
    EXPECT_EQ(group_.bootstrap(rank).exchanges, 3);
  }
}

TEST_F(FabricTest, ARefusalOnOneRankIsEverybodysAndIsAskedForOnce) {
  group_.world->without_fabric = {0};
  for (int attempt = 0; attempt < 3; ++attempt) {
    expect_failure(StatusCode::kUnavailable,
                   AllOf(HasSubstr("rank 0: the group can pass no descriptors"),
                         HasSubstr("and no fabric handles: GPU 0 permits no fabric handles")));
  }
  EXPECT_EQ(group_.cuda(0).calls(kCreate), 1);
  EXPECT_EQ(group_.cuda(1).calls(kCreate), 3 * 2) << "two ranks there, and none was refused";
}

TEST_F(FabricTest, ARefusalIsRememberedForItsGpuAlone) {
  group_.world->without_fabric = {1};
  expect_failure(StatusCode::kUnavailable, HasSubstr("rank 1: the group can pass no descriptors"));
  expect_failure(StatusCode::kUnavailable, HasSubstr("rank 1: the group can pass no descriptors"));
  EXPECT_EQ(group_.cuda(1).calls(kCreate), 1 + 2) << "once for GPU 1, each time for GPU 2";
}

TEST_F(FabricTest, AGpuThatPromisesNoneIsNotAsked) {
  group_.world->devices[0].fabric_handles = false;
  expect_failure(StatusCode::kUnavailable,
                 AllOf(HasSubstr("rank 0: the group can pass no descriptors"),
                       HasSubstr("and no fabric handles: Fake GPU has none")));
  EXPECT_EQ(group_.cuda(0).calls(kCreate), 0);
}

TEST_F(FabricTest, AnotherFailureIsNoRefusal) {
  group_.cuda(0).fail(kCreate, 0);
  expect_failure(StatusCode::kResourceExhausted, HasSubstr("fails as the test asks"));
  expect_symmetric(group_.allocate(kFabricBytes));
}

// Each has fabric handles, but of a fabric of its own.
TEST_F(FabricTest, AHandleThatDoesNotOpenElsewhereIsEverybodysFailure) {
  group_.cuda(1).fail("import_fabric", 0);
  expect_failure(StatusCode::kCuda,
                 AllOf(HasSubstr("memory of rank 0"), HasSubstr("import_fabric")));
}

TEST_F(FabricTest, CarriesUsersMemoryThatWasMadeForIt) {
  const Ranges ranges = virtual_each(&FakeCuda::create_fabric_allocation);
  std::vector<Ranges> batch;  // three ranges of one allocation
  for (const auto& [address, bytes] : ranges) {
    auto* const base = static_cast<std::byte*>(address);
    batch.push_back({{base, 512}, {base + 512, 512}, {base + 1024, bytes - 1024}});
  }
  const auto results = group_.try_register(batch);
  for (std::size_t k = 0; k < 3; ++k) {
    std::vector<Segment> segments;
    for (const auto& result : results) segments.push_back(result->at(k));
    expect_symmetric(segments);
  }
  EXPECT_EQ(group_.cuda(0).calls("export_fabric"), 1);
}

TEST_F(FabricTest, UsersMemoryThatWasNotMadeForItIsStagedWithTheReason) {
  for (const Segment& segment : group_.register_one(virtual_each(&FakeCuda::create_allocation))) {
    EXPECT_FALSE(segment->zero_copy());
    EXPECT_THAT(segment->why_staged, HasSubstr("rank 0: the allocation was made without fabric"));
  }
  Ranges ranges;
  for (int rank = 0; rank < group_.size(); ++rank)
    ranges.push_back(
        {*group_.cuda(rank).allocate(group_.device(rank), kFabricBytes), kFabricBytes});
  for (const Segment& segment : group_.register_one(ranges)) {
    EXPECT_FALSE(segment->zero_copy());
    EXPECT_THAT(segment->why_staged, HasSubstr("cannot be mapped from other hosts"));
  }
}

}  // namespace
}  // namespace tutti::test
