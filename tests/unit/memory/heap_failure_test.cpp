// One rank fails at every place where it can: every rank returns a failure that names it, nothing
// stays open, and the heaps work on.
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "fakes/fake_shared_memory.hpp"
#include "memory/heap_backend.hpp"
#include "unit/memory/heap_group.hpp"

namespace tutti::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr int kFailing = 1;  // the rank that fails
constexpr int kMostCalls = 100;

using Places = std::vector<int>;

class HeapFailureTest : public ::testing::TestWithParam<Places> {};

INSTANTIATE_TEST_SUITE_P(Groups, HeapFailureTest,
                         ::testing::Values(Places{0, 1, 2}, Places{0, 1, 0, 2}),
                         [](const auto& places) {
                           return places.param.size() == 3 ? "processes" : "mixed";
                         });

void expect_failure_of(const Status& status, const std::string& rank) {
  EXPECT_FALSE(status.is_ok());
  EXPECT_THAT(status.message(), HasSubstr(rank));
}

// Calls `attempt(k)` with k = 0, 1, ... until the k-th call does not come any more. `attempt`
// returns whether it has come.
template <class Attempt>
void with_every_call_failing(Attempt attempt) {
  int k = 0;
  while (k < kMostCalls && attempt(k)) ++k;
  EXPECT_GT(k, 2) << "the failures did not come";
  EXPECT_LT(k, kMostCalls) << "no end";
}

TEST_P(HeapFailureTest, AllocationOfGpuMemory) {
  HeapGroup group(HeapKind::kCuda, GetParam());
  const auto before = group.open();
  const int descriptors = open_descriptors();
  with_every_call_failing([&](int k) {
    group.cuda(kFailing).fail("", k);
    auto results = group.try_allocate(64 * KiB * (k + 1));  // a size that is in no pool
    const bool failed = group.cuda(kFailing).has_failed();
    group.cuda(kFailing).fail("", -1);
    for (const auto& result : results) {
      EXPECT_EQ(result.is_ok(), !failed) << "call " << k << result.status().to_string();
      if (failed) expect_failure_of(result.status(), "rank 1");
    }
    if (!failed) return false;
    results.clear();
    EXPECT_EQ(group.open(), before) << "after call " << k;
    return true;
  });
  const int kept_by_the_fake = static_cast<int>(group.size());  // memfds of what it has mapped
  EXPECT_LE(open_descriptors(), descriptors + kept_by_the_fake);
  expect_symmetric(group.allocate(4096));
}

TEST_P(HeapFailureTest, ReuseOfGpuMemory) {
  HeapGroup group(HeapKind::kCuda, GetParam());
  const auto before = group.open();
  with_every_call_failing([&](int k) {
    static_cast<void>(group.allocate(4096));  // and back to the pool
    group.cuda(kFailing).fail("", k);
    auto results = group.try_allocate(4096);
    const bool failed = group.cuda(kFailing).has_failed();
    for (const auto& result : results) {
      EXPECT_EQ(result.is_ok(), !failed);
      if (failed) expect_failure_of(result.status(), "rank 1");
    }
    results.clear();
    if (failed && k > 0) {  // the first call comes before the ranks have chosen a block
      EXPECT_EQ(group.open(), before) << "the block that failed is gone";
    }
    return failed;
  });
}

class UserMemory {
 public:
  explicit UserMemory(HeapGroup& group) : ranges(group.size()) {
    for (int rank = 0; rank < group.size(); ++rank) {
      FakeCuda& cuda = group.cuda(rank);
      const int device = group.device(rank);
      ranges[rank].push_back({*cuda.allocate(device, 4096), 4096});
      allocations_.push_back(*cuda.create_allocation(device, 64 * KiB));
      ranges[rank].push_back(
          {*cuda.map_allocation(allocations_[rank], 64 * KiB, {device}), 64 * KiB});
    }
  }

  std::vector<Ranges> ranges;  // per rank: of cudaMalloc, and mapped

 private:
  std::vector<CudaAllocation> allocations_;
};

// Where a rank's part cannot be mapped the segment is staged on all; where the range cannot be
// right, the call fails on all.
TEST_P(HeapFailureTest, RegistrationOfGpuMemory) {
  HeapGroup group(HeapKind::kCuda, GetParam());
  const UserMemory memory(group);
  const auto before = group.open();
  const int descriptors = open_descriptors();
  with_every_call_failing([&](int k) {
    group.cuda(kFailing).fail("", k);
    auto results = group.try_register(memory.ranges);
    const bool failed = group.cuda(kFailing).has_failed();
    for (const auto& result : results) {
      EXPECT_EQ(result.is_ok(), results[0].is_ok());
      if (!result.is_ok()) {
        expect_failure_of(result.status(), "rank 1");
        continue;
      }
      std::string reasons;
      for (const Segment& segment : *result) reasons += segment->why_staged;
      EXPECT_EQ(!reasons.empty(), failed);
      if (failed) {
        EXPECT_THAT(reasons, HasSubstr("rank 1: "));
      }
    }
    results.clear();
    EXPECT_EQ(group.open(), before) << "after call " << k;
    EXPECT_EQ(open_descriptors(), descriptors);
    return failed;
  });
}

// But what has run out may be there later: nothing is staged for ever for that.
TEST_P(HeapFailureTest, RegistrationWithoutDescriptorsOrMapsFailsAndMayBeRepeated) {
  HeapGroup group(HeapKind::kCuda, GetParam());
  const UserMemory memory(group);
  const auto before = group.open();
  with_every_call_failing([&](int k) {
    group.cuda(kFailing).fail("", k, true);
    auto results = group.try_register(memory.ranges);
    const bool failed = group.cuda(kFailing).has_failed();
    group.cuda(kFailing).fail("", -1);
    for (const auto& result : results) {
      EXPECT_EQ(result.status().code(), failed ? StatusCode::kResourceExhausted : StatusCode::kOk)
          << "call " << k << result.status().to_string();
      if (failed) expect_failure_of(result.status(), "rank 1");
    }
    results.clear();
    EXPECT_EQ(group.open(), before) << "after call " << k;
    for (const auto& result : group.try_register(memory.ranges)) {
      EXPECT_TRUE(result.is_ok()) << result.status().to_string();
      if (!result.is_ok()) continue;
      for (const Segment& segment : *result) EXPECT_TRUE(segment->zero_copy());
    }
    return failed;
  });
}

TEST_P(HeapFailureTest, AllocationWithoutDescriptorsOrMapsSaysSo) {
  HeapGroup group(HeapKind::kCuda, GetParam());
  with_every_call_failing([&](int k) {
    group.cuda(kFailing).fail("", k, true);
    const auto results = group.try_allocate(64 * KiB * (k + 1));
    const bool failed = group.cuda(kFailing).has_failed();
    group.cuda(kFailing).fail("", -1);
    for (const auto& result : results) {
      EXPECT_EQ(result.status().code(), failed ? StatusCode::kResourceExhausted : StatusCode::kOk)
          << "call " << k << result.status().to_string();
    }
    return failed;
  });
  expect_symmetric(group.allocate(4096));
}

TEST_P(HeapFailureTest, AllocationOfHostMemory) {
  HeapGroup group(HeapKind::kHost, GetParam());
  const auto before = group.open();
  const int descriptors = open_descriptors();
  FakeSharedMemory& memory = group.shared_memory(kFailing).fake();
  for (int* const countdown : {&memory.fail_create_at, &memory.fail_map_at}) {
    *countdown = 0;
    for (const auto& result : group.try_allocate(4096)) {
      EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
      expect_failure_of(result.status(), "rank 1");
    }
    EXPECT_EQ(group.open(), before);
    EXPECT_EQ(open_descriptors(), descriptors);
  }
  for (int opened = 1; opened < group.size() - 1; ++opened) {
    memory.fail_map_at = opened;  // of its own part, then of the others'
    for (const auto& result : group.try_allocate(4096))
      expect_failure_of(result.status(), "rank 1");
    EXPECT_EQ(group.open(), before);
    EXPECT_EQ(open_descriptors(), descriptors);
  }
  expect_symmetric(group.allocate(4096));
}

TEST(HeapFailure, WhenMemoryRunsOutThePoolIsGivenBack) {
  HeapGroup group(HeapKind::kCuda, {0, 1});
  for (CudaDeviceProperties& gpu : group.world->devices) gpu.memory_bytes = 1 * MiB;
  static_cast<void>(group.allocate(768 * KiB));
  EXPECT_EQ(group.heap(0).use().pooled_bytes, 768 * KiB);
  const auto larger = group.allocate(1 * MiB);
  EXPECT_EQ(group.heap(1).use().pooled_bytes, 0U);
  expect_symmetric(larger);
  for (const auto& result : group.try_allocate(64 * KiB)) {
    EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(result.status().message(), HasSubstr("rank 0"));
  }
}

// Memory of nothing. Each rank opens that of the others once `opens` says so.
class EmptyBackend final : public HeapBackend {
 public:
  explicit EmptyBackend(std::function<Status()> opens) : opens_(std::move(opens)) {}
  int device() const override { return -1; }
  Result<std::size_t> granularity() override { return std::size_t{4096}; }
  Result<LocalPart> create(std::size_t bytes, const std::vector<int>&, Deadline) override {
    LocalPart part;
    part.offer.how = Offer::How::kOwned;
    part.offer.allocation_bytes = bytes;
    return part;
  }
  Status zero(std::byte*, std::size_t, Deadline) override { return Status::ok(); }
  Result<LocalPart> offer(std::byte*, std::size_t) override { return LocalPart{}; }
  Result<Fd> export_part(LocalPart&) override { return Fd(); }
  Result<OpenedPart> open(const PeerOffer&) override {
    TUTTI_TRY(opens_());
    return OpenedPart{};
  }
  Status check_alive(const SymmetricSegment&) const override { return Status::ok(); }

 private:
  std::function<Status()> opens_;
};

// Rank 1 is too slow for rank 0, which drops its part. The other ranks hear of the reason.
TEST(HeapOfAnImpatientRank, TheOthersFailForItsReason) {
  constexpr int kThree = 3;
  constexpr int kImpatient = 0, kSlow = 1;
  auto bootstraps = make_in_process_group(kThree);
  std::promise<void> gave_up;
  std::vector<std::unique_ptr<SymmetricHeap>> heaps;
  for (int rank = 0; rank < kThree; ++rank) {
    const auto opens = [rank, &gave_up, first = true]() mutable -> Status {
      if (rank != kSlow || !std::exchange(first, false)) return Status::ok();
      gave_up.get_future().wait();
      return {StatusCode::kPeerFailed, "it is gone"};
    };
    heaps.push_back(make_collective_heap(*bootstraps[rank], places_of(*bootstraps[rank]),
                                         std::make_unique<EmptyBackend>(opens)));
  }
  std::vector<Status> results(kThree);
  on_all_ranks(kThree, [&](int rank) {
    const auto allocate = [&](Deadline deadline) {
      results[rank] = heaps[rank]->allocate(4096, deadline).status();
    };
    if (rank != kImpatient) return allocate(soon());
    allocate(Deadline(100ms));
    gave_up.set_value();
    std::this_thread::sleep_for(50ms);  // the others' last exchange has what this rank gave to it
    bootstraps[rank]->announce_failure({kImpatient, StatusCode::kTimeout, "waited too long"});
  });
  for (int rank = 0; rank < kThree; ++rank) {
    EXPECT_EQ(results[rank].code(), StatusCode::kTimeout) << results[rank].to_string();
    if (rank == kImpatient) continue;
    EXPECT_THAT(results[rank].message(), HasSubstr("waited too long"));
  }
}

}  // namespace
}  // namespace tutti::test
