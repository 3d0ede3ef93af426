// What holds for symmetric memory of either kind, whichever ranks share a process.
#include <atomic>
#include <thread>

#include "memory/pool.hpp"
#include "unit/memory/heap_group.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Setting {
  HeapKind kind;
  std::vector<int> process_of;
  const char* name;

  friend void PrintTo(const Setting& of, std::ostream* out) { *out << of.name; }
};

class SymmetricHeapTest : public ::testing::TestWithParam<Setting> {
 protected:
  HeapGroup group_{GetParam().kind, GetParam().process_of};
  const int size_ = group_.size();

  // The same failure on every rank.
  template <class T>
  void expect_all(const std::vector<Result<T>>& results, StatusCode code, const char* text) {
    for (int rank = 0; rank < size_; ++rank) {
      EXPECT_EQ(results[rank].status().code(), code) << results[rank].status().to_string();
      EXPECT_THAT(results[rank].status().message(), HasSubstr(text)) << "on rank " << rank;
    }
  }
};

// What takes at least two ranks.
class SymmetricGroupTest : public SymmetricHeapTest {};

const auto kGroups = ::testing::Values(Setting{HeapKind::kHost, {0, 0, 0}, "host_one_process"},
                                       Setting{HeapKind::kHost, {0, 1, 2}, "host_processes"},
                                       Setting{HeapKind::kHost, {0, 1, 0, 1}, "host_mixed"},
                                       Setting{HeapKind::kCuda, {0, 0, 0}, "cuda_one_process"},
                                       Setting{HeapKind::kCuda, {0, 1, 2}, "cuda_processes"},
                                       Setting{HeapKind::kCuda, {0, 1, 0, 1}, "cuda_mixed"});
const auto kAlone =
    ::testing::Values(Setting{HeapKind::kHost, {0}, "host"}, Setting{HeapKind::kCuda, {0}, "cuda"});
std::string name_of(const ::testing::TestParamInfo<Setting>& setting) { return setting.param.name; }

INSTANTIATE_TEST_SUITE_P(Groups, SymmetricHeapTest, kGroups, name_of);
INSTANTIATE_TEST_SUITE_P(Alone, SymmetricHeapTest, kAlone, name_of);
INSTANTIATE_TEST_SUITE_P(Groups, SymmetricGroupTest, kGroups, name_of);

TEST_P(SymmetricHeapTest, AllocationIsZeroedAlignedAndSymmetric) {
  for (const std::size_t bytes : {1UL, 4096UL, 100000UL}) {
    const auto segments = group_.allocate(bytes);
    for (const Segment& segment : segments) {
      EXPECT_EQ(segment->bytes, bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment->local) % 256, 0U);
      EXPECT_TRUE(std::all_of(segment->local, segment->local + bytes,
                              [](std::byte b) { return b == std::byte{0}; }));
    }
    if (bytes > 1) expect_symmetric(segments, 100);
  }
}

TEST_P(SymmetricHeapTest, IdsAreTheSameOnEveryRankAndFollowOneAnother) {
  const auto first = group_.allocate(100);
  const auto second = group_.allocate(200);
  for (int rank = 0; rank < size_; ++rank) {
    EXPECT_EQ(first[rank]->id, 0U);
    EXPECT_EQ(second[rank]->id, 1U);
  }
}

TEST_P(SymmetricGroupTest, DifferentSizesAreAMismatchThatNamesBothAndLeavesTheHeapUsable) {
  const auto before = group_.open();
  std::vector<Result<Segment>> results(size_, Status(StatusCode::kInternal, ""));
  on_all_ranks(size_, [&](int rank) {
    results[rank] = group_.heap(rank).allocate(rank == 1 ? 8192 : 4096, soon());
  });
  expect_all(results, StatusCode::kMismatch,
             "range 0 has 4096 bytes on rank 0, 8192 bytes on rank 1");
  EXPECT_EQ(group_.open(), before);
  expect_symmetric(group_.allocate(4096));
}

TEST_P(SymmetricGroupTest, DifferentCallsAreAMismatch) {
  std::vector<std::byte> mine(64);
  std::vector<Status> results(size_);
  on_all_ranks(size_, [&](int rank) {
    const Ranges ranges = {{mine.data(), mine.size()}};
    results[rank] = rank == 0 ? group_.heap(rank).allocate(64, soon()).status()
                              : group_.heap(rank).register_ranges(ranges, soon()).status();
  });
  for (const Status& status : results) {
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 0 calls allocate #1"),
                                        HasSubstr("rank 1 calls register #1")));
  }
}

TEST_P(SymmetricHeapTest, RefusesZeroAndAbsurdSizesOnEveryRank) {
  expect_all(group_.try_allocate(0), StatusCode::kInvalidArgument, "rank 0");
  expect_all(group_.try_allocate(~std::size_t{0}), StatusCode::kInvalidArgument, "rank 0");
}

TEST_P(SymmetricHeapTest, FreedMemoryIsUsedAgainZeroed) {
  auto segments = group_.allocate(5000);
  const auto use = group_.heap(0).use();
  EXPECT_GE(use.allocated_bytes, 5000U);
  EXPECT_EQ(use.pooled_bytes, 0U);
  expect_symmetric(segments, 10);
  const std::byte* const was_at = segments[0]->local;
  segments.clear();
  EXPECT_EQ(group_.heap(0).use().pooled_bytes, use.allocated_bytes);
  EXPECT_EQ(group_.heap(0).use().allocated_bytes, 0U);

  const auto open = group_.open();
  segments = group_.allocate(5001);  // the same size, once rounded
  EXPECT_EQ(group_.open(), open) << "nothing new is opened";
  EXPECT_EQ(segments[0]->local, was_at);
  EXPECT_EQ(segments[0]->id, 1U) << "a segment of its own, whatever memory it has";
  for (const Segment& segment : segments)
    EXPECT_EQ(std::count(segment->local, segment->local + 5001, std::byte{0}), 5001);
  expect_symmetric(segments, 10);
}

TEST_P(SymmetricHeapTest, RanksThatFreeInDifferentOrdersAgreeOnWhatToReuse) {
  std::vector<std::vector<Segment>> all;
  for (int k = 0; k < 4; ++k) all.push_back(group_.allocate(4096));
  for (int rank = 0; rank < size_; ++rank) {
    for (int k = 0; k < 4; ++k) all[(k + rank) % 4][rank] = nullptr;
  }
  for (int k = 0; k < 4; ++k) {
    all[k] = group_.allocate(4096);
    expect_symmetric(all[k], 8 * k);
  }
  EXPECT_EQ(group_.heap(0).use().pooled_bytes, 0U);
}

TEST_P(SymmetricGroupTest, MemoryThatOneRankStillHoldsIsNotReused) {
  auto segments = group_.allocate(4096);
  segments[1]->local[5] = std::byte{77};
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != 1) segments[rank] = nullptr;
  }
  const auto others = group_.allocate(4096);
  expect_symmetric(others);
  EXPECT_EQ(segments[1]->local[5], std::byte{77});
  EXPECT_NE(others[1]->local, segments[1]->local);
}

TEST_P(SymmetricHeapTest, ThePoolIsBoundedAlikeOnAllRanks) {
  std::vector<std::vector<Segment>> all;
  for (std::size_t k = 0; k < kMaxPooledBlocks + 6; ++k) all.push_back(group_.allocate(4096));
  const std::size_t rounded = group_.heap(0).use().allocated_bytes / all.size();
  all.clear();
  const auto one = group_.allocate(100 * rounded);
  for (int rank = 0; rank < size_; ++rank)
    EXPECT_EQ(group_.heap(rank).use().pooled_bytes, kMaxPooledBlocks * rounded);
}

// On every rank the same ones, in the same order, while they are still mapped: those that the pool
// gives back, and no others.
TEST_P(SymmetricHeapTest, TellsOfWhatItIsAboutToUnmap) {
  std::vector<std::vector<std::size_t>> told(static_cast<std::size_t>(size_));
  std::vector<std::vector<Segment>> all;
  std::vector<std::vector<const std::byte*>> places;  // per allocation, per rank
  for (int rank = 0; rank < size_; ++rank) {
    group_.heap(rank).on_unmap([&, rank](const std::byte* local) {
      EXPECT_EQ(*local, std::byte{0}) << "it can be read";
      for (std::size_t k = 0; k < places.size(); ++k) {
        if (places[k][static_cast<std::size_t>(rank)] == local) {
          told[static_cast<std::size_t>(rank)].push_back(k);
        }
      }
    });
  }
  for (std::size_t k = 0; k < kMaxPooledBlocks + 3; ++k) {
    all.push_back(group_.allocate(4096));
    places.emplace_back();
    for (const Segment& segment : all.back()) {
      places.back().push_back(segment->local);
      EXPECT_GE(segment->capacity, segment->bytes);
    }
  }
  const std::size_t rounded = all.front().front()->capacity;
  all.clear();
  static_cast<void>(group_.allocate(4096));  // one of them, and the pool is too large still
  static_cast<void>(group_.allocate(100 * rounded));
  for (const auto& mine : told) {
    EXPECT_EQ(mine.size(), 3U);
    EXPECT_EQ(mine, told.front());
  }
}

TEST_P(SymmetricHeapTest, WaitsForARankThatIsLate) {
  for (int exchange = 0; exchange < 3; ++exchange) {
    group_.bootstrap(size_ - 1).before = [this, exchange](int number) {
      if (number % 3 == exchange) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    };
    const auto segments = group_.allocate(4096);
    if (size_ > 1) expect_symmetric(segments);
  }
}

TEST_P(SymmetricGroupTest, ARankThatIsTooLateIsNamedByTheOthersAndNothingLeaks) {
  const auto before = group_.open();
  const int descriptors = open_descriptors();
  std::atomic<int> given_up{0};
  group_.bootstrap(1).before = [&](int) {
    while (given_up < size_ - 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  on_all_ranks(size_, [&](int rank) {
    const auto result = group_.heap(rank).allocate(4096, Deadline(std::chrono::milliseconds(50)));
    EXPECT_FALSE(result.is_ok());
    if (rank == 1) return;
    ++given_up;
    EXPECT_EQ(result.status().code(), StatusCode::kTimeout);
    EXPECT_THAT(result.status().message(),
                AllOf(HasSubstr("allocate #1 (4096 bytes)"), HasSubstr("1")));
  });
  EXPECT_EQ(group_.open(), before);
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST_P(SymmetricHeapTest, TheNumberOfExchangesDoesNotDependOnTheNumberOfRanges) {
  std::vector<std::vector<std::byte>> memory(size_, std::vector<std::byte>(100));
  const auto exchanges = [&](int count) {
    std::vector<Ranges> ranges(size_);
    for (int rank = 0; rank < size_; ++rank) {
      for (int k = 0; k < count; ++k) ranges[rank].push_back({&memory[rank][k], 1});
    }
    const int before = group_.bootstrap(0).exchanges;
    for (const auto& result : group_.try_register(ranges)) EXPECT_TRUE(result.is_ok());
    return group_.bootstrap(0).exchanges - before;
  };
  EXPECT_EQ(exchanges(1), exchanges(100));
}

TEST_P(SymmetricHeapTest, FindsSegmentsByAddress) {
  auto segments = group_.allocate(1000);
  const SymmetricHeap& heap = group_.heap(0);
  std::byte* const at = segments[0]->local;
  EXPECT_EQ(heap.find(at, 1000), segments[0]);
  EXPECT_EQ(heap.find(at + 999, 1), segments[0]);
  EXPECT_EQ(heap.find(at + 999, 2), nullptr);
  EXPECT_EQ(heap.find(at - 1, 2), nullptr);
  EXPECT_EQ(heap.find(at, ~std::size_t{0}), nullptr);
  segments.clear();
  EXPECT_EQ(heap.find(at, 1), nullptr) << "what is in the pool is nobody's segment";
}

TEST_P(SymmetricHeapTest, SegmentsOutliveTheHeap) {
  auto kept = group_.allocate(4096);
  auto freed = group_.allocate(4096);
  freed.clear();
  for (int rank = 0; rank < size_; ++rank) group_.destroy_heap(rank);
  expect_symmetric(kept);
  kept.clear();
  for (const auto& open : group_.open().cuda) EXPECT_EQ(open, FakeCudaOpen{});
  for (const int mapped : group_.open().mapped) EXPECT_EQ(mapped, 0);
}

TEST_P(SymmetricHeapTest, OpenMappingsCountsOnlyMemoryOfOtherProcesses) {
  auto segments = group_.allocate(4096);
  for (int rank = 0; rank < size_; ++rank) {
    std::size_t elsewhere = 0;
    for (const PeerIdentity& peer : group_.bootstrap(rank).identities())
      elsewhere += peer.process_token != group_.bootstrap(rank).identities()[rank].process_token;
    EXPECT_EQ(group_.heap(rank).use().open_mappings, elsewhere);
  }
}

TEST_P(SymmetricHeapTest, FindAndFreeFromOtherThreadsWhileOthersAllocate) {
  std::vector<std::vector<Segment>> rounds;
  for (int k = 0; k < 8; ++k) rounds.push_back(group_.allocate(4096));
  std::vector<const std::byte*> addresses;
  for (const auto& round : rounds) addresses.push_back(round[0]->local);
  std::thread finder([&] {
    for (int k = 0; k < 2000; ++k) {
      const auto found = group_.heap(0).find(addresses[k % 8], 1);
      if (found != nullptr) {
        EXPECT_EQ(found->local, addresses[k % 8]);
      }
    }
  });
  std::thread owner([&] { rounds.clear(); });
  const auto more = group_.allocate(4096);
  owner.join();
  finder.join();
  expect_symmetric(more);
}

TEST(SymmetricHeap, OfTheHostIsRefusedAcrossHosts) {
  auto inner = make_in_process_group(2);
  BootstrapShim shim(std::move(inner[0]), {0, 1});
  shim.pretended()[1].host_id += 1;
  const auto heap = make_host_heap(shim, real_shared_memory());
  EXPECT_EQ(heap.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(heap.status().message(), HasSubstr("within one host"));
}

}  // namespace
}  // namespace tutti::test
