// Ranks on threads, each with a heap, in as many pretended processes as a test wants.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <dirent.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "drivers/shared_memory.hpp"
#include "fakes/fake_cuda.hpp"
#include "fakes/fake_shared_memory.hpp"
#include "memory/symmetric_heap.hpp"
#include "support/bootstrap_shim.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "unit/memory/require.hpp"

namespace tutti::test {

inline int open_descriptors() {
  int count = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

// FakeSharedMemory for several threads.
class LockedSharedMemory final : public SharedMemoryDriver {
 public:
  Result<Fd> create(std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    return fake_.create(bytes);
  }
  Result<std::byte*> map(int fd, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    return fake_.map(fd, bytes);
  }
  void unmap(std::byte* address, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    fake_.unmap(address, bytes);
  }
  int mapped() const {
    const std::lock_guard lock(mutex_);
    return fake_.mapped;
  }
  FakeSharedMemory& fake() { return fake_; }

 private:
  mutable std::mutex mutex_;
  FakeSharedMemory fake_{real_shared_memory()};
};

enum class HeapKind { kHost, kCuda };
inline void PrintTo(HeapKind kind, std::ostream* out) {
  *out << (kind == HeapKind::kHost ? "host" : "cuda");
}
// "processes_0_1_0" of {0, 1, 0}.
inline std::string name_of_places(const ::testing::TestParamInfo<std::vector<int>>& places) {
  std::string name = "processes";
  for (const int process : places.param) name += "_" + std::to_string(process);
  return name;
}
using Segment = std::shared_ptr<SymmetricSegment>;
using Ranges = std::vector<std::pair<void*, std::size_t>>;

class HeapGroup {
 public:
  // Rank r has the world's GPU r, and sees those of the ranks of its process.
  HeapGroup(HeapKind kind, std::vector<int> process_of, bool descriptors = true)
      : process_of_(std::move(process_of)),
        world(std::make_shared<FakeCudaWorld>(static_cast<int>(process_of_.size()))) {
    auto inner = make_in_process_group(size());
    std::map<int, std::vector<int>> visible;
    for (int rank = 0; rank < size(); ++rank) {
      ordinals_.push_back(static_cast<int>(visible[process_of_[rank]].size()));
      visible[process_of_[rank]].push_back(rank);
      bootstraps_.push_back(std::make_unique<BootstrapShim>(std::move(inner[rank]), process_of_));
      bootstrap(rank).descriptors = descriptors;
    }
    for (const auto& [process, devices] : visible) {
      cudas_[process] = std::make_unique<FakeCuda>(world, devices);
      shared_memories_[process] = std::make_unique<LockedSharedMemory>();
    }
    for (int rank = 0; rank < size(); ++rank) {
      auto heap = kind == HeapKind::kHost
                      ? make_host_heap(bootstrap(rank), shared_memory(rank))
                      : make_cuda_heap(bootstrap(rank), cuda(rank), device(rank));
      heaps_.push_back(*std::move(heap));
    }
  }

  int size() const { return static_cast<int>(process_of_.size()); }
  bool one_process() const { return cudas_.size() == 1; }
  int device(int rank) const { return ordinals_[rank]; }
  BootstrapShim& bootstrap(int rank) { return *bootstraps_[rank]; }
  FakeCuda& cuda(int rank) { return *cudas_[process_of_[rank]]; }
  LockedSharedMemory& shared_memory(int rank) { return *shared_memories_[process_of_[rank]]; }
  SymmetricHeap& heap(int rank) { return *heaps_[rank]; }
  void destroy_heap(int rank) { heaps_[rank].reset(); }

  std::vector<Result<Segment>> try_allocate(std::size_t bytes, Deadline deadline = soon()) {
    return collect<Segment>([&](int rank) { return heap(rank).allocate(bytes, deadline); });
  }
  // Element r: of rank r. Null where it failed, which is a failure of the test.
  std::vector<Segment> allocate(std::size_t bytes) {
    std::vector<Segment> segments;
    for (auto& result : try_allocate(bytes)) {
      EXPECT_TRUE(result.is_ok()) << result.status().to_string();
      segments.push_back(result.is_ok() ? *result : nullptr);
    }
    return segments;
  }
  std::vector<Segment> allocate_small(std::size_t bytes) {
    std::vector<Segment> segments;
    for (auto& result :
         collect<Segment>([&](int rank) { return heap(rank).allocate_small(bytes, soon()); })) {
      EXPECT_TRUE(result.is_ok()) << result.status().to_string();
      segments.push_back(result.is_ok() ? *result : nullptr);
    }
    return segments;
  }
  std::vector<Result<std::vector<Segment>>> try_register(const std::vector<Ranges>& per_rank) {
    return collect<std::vector<Segment>>(
        [&](int rank) { return heap(rank).register_ranges(per_rank[rank], soon()); });
  }
  // One range per rank.
  std::vector<Segment> register_one(const Ranges& per_rank) {
    std::vector<Ranges> ranges;
    for (const auto& range : per_rank) ranges.push_back({range});
    std::vector<Segment> segments;
    for (auto& result : try_register(ranges)) {
      EXPECT_TRUE(result.is_ok()) << result.status().to_string();
      segments.push_back(result.is_ok() ? result->at(0) : nullptr);
    }
    return segments;
  }

  // What a test must leave as it found it.
  struct Open {
    std::vector<FakeCudaOpen> cuda;
    std::vector<int> mapped;
    friend bool operator==(const Open&, const Open&) = default;
  };
  Open open() const {
    Open open;
    for (const auto& [process, cuda] : cudas_) {
      open.cuda.push_back(cuda->open());
      open.cuda.back().streams = 0;  // a heap keeps the one it has made
    }
    for (const auto& [process, memory] : shared_memories_) open.mapped.push_back(memory->mapped());
    return open;
  }

 private:
  template <class T, class Body>
  std::vector<Result<T>> collect(Body body) {
    std::vector<Result<T>> results(size(), Status(StatusCode::kInternal, "not run"));
    on_all_ranks(size(), [&](int rank) { results[rank] = body(rank); });
    return results;
  }

  std::vector<int> process_of_;
  std::vector<int> ordinals_;  // of each rank's GPU in its process
  std::map<int, std::unique_ptr<FakeCuda>> cudas_;
  std::map<int, std::unique_ptr<LockedSharedMemory>> shared_memories_;
  std::vector<std::unique_ptr<BootstrapShim>> bootstraps_;
  std::vector<std::unique_ptr<SymmetricHeap>> heaps_;

 public:
  const std::shared_ptr<FakeCudaWorld> world;
};

// Every rank writes its number, and some more, into every other's part at `offset`, and finds what
// the others wrote: the parts are the same memory whoever looks. `segments[r]` is rank r's.
inline void expect_symmetric(const std::vector<Segment>& segments, std::size_t offset = 0) {
  const std::size_t size = segments.size();
  static std::uint8_t salt = 0;
  ++salt;
  const auto mark = [&](std::size_t from, std::size_t to) {
    return static_cast<std::byte>(salt + 16 * from + to);
  };
  for (std::size_t from = 0; from < size; ++from) {
    ASSERT_NE(segments[from], nullptr);
    ASSERT_EQ(segments[from]->at.size(), size) << segments[from]->why_staged;
    for (std::size_t to = 0; to < size; ++to)
      segments[from]->at[to][offset + from] = mark(from, to);
  }
  for (std::size_t to = 0; to < size; ++to) {
    ASSERT_EQ(segments[to]->at[to], segments[to]->local);
    for (std::size_t from = 0; from < size; ++from)
      EXPECT_EQ(segments[to]->local[offset + from], mark(from, to)) << from << " to " << to;
  }
}

}  // namespace tutti::test
