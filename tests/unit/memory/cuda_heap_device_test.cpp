// Symmetric memory of real GPUs, between ranks of one process and of several; skipped where there
// are fewer than two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "drivers/cuda.hpp"
#include "memory/symmetric_heap.hpp"
#include "support/children.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "unit/memory/require.hpp"

namespace tutti::test {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 2;
constexpr std::size_t kBytes = 1 * MiB;

// One rank's life. Throws where something is not as it should be.
class RankOnGpu {
 public:
  RankOnGpu(CudaDriver& cuda, Bootstrap& bootstrap, int device)
      : cuda_(cuda), bootstrap_(bootstrap), device_(device) {
    require(cuda.set_device(device), "set_device");
    heap_ = require(make_cuda_heap(bootstrap, cuda, device), "make_cuda_heap");
  }

  void run() {
    const auto segment = require(heap_->allocate(kBytes, soon()), "allocate");
    expect_zero(*segment);
    expect_symmetric(*segment);
    require(verify_peer_access(bootstrap_, cuda_, *segment, soon()), "verify_peer_access");
    plain_memory();
    virtual_memory();
    require(heap_->use().open_mappings <= kRanks, "open mappings are bounded");
  }

 private:
  using Ranges = std::vector<std::pair<void*, std::size_t>>;

  int rank() const { return bootstrap_.rank(); }
  void meet() { require(bootstrap_.barrier(soon()), "barrier"); }

  void expect_zero(const SymmetricSegment& segment) {
    std::vector<std::byte> seen(segment.bytes, std::byte{1});
    require(cuda_.copy(seen.data(), segment.local, seen.size()), "copy");
    require(seen == std::vector<std::byte>(segment.bytes), "new memory is zero");
  }

  // Each rank fills a part of every rank's memory, from its GPU, and finds what the others wrote.
  void expect_symmetric(const SymmetricSegment& segment) {
    require(segment.zero_copy(), segment.why_staged);
    const std::size_t part = segment.bytes / kRanks;
    const Stream stream = require(cuda_.create_stream(device_), "create_stream");
    for (int to = 0; to < kRanks; ++to)
      require(cuda_.set_async(segment.at[to] + rank() * part, 16 * rank() + to + 1, part, stream),
              "set_async");
    require(cuda_.synchronize(stream), "synchronize");
    require(cuda_.destroy_stream(stream), "destroy_stream");
    meet();
    std::vector<std::byte> seen(segment.bytes);
    require(cuda_.copy(seen.data(), segment.local, seen.size()), "copy");
    for (int from = 0; from < kRanks; ++from) {
      const auto mark = static_cast<std::byte>(16 * from + rank() + 1);
      require(seen[from * part] == mark && seen[from * part + part - 1] == mark,
              fmt::format("rank {} sees what rank {} wrote", rank(), from));
    }
    meet();
  }

  // cudaMalloc, at offsets that differ between the ranks; freed and allocated anew in between.
  void plain_memory() {
    std::uint64_t last_buffer = 0;
    for (int round = 0; round < 3; ++round) {
      const CudaAddress base = require(cuda_.allocate(device_, 4 * kBytes), "allocate");
      const Ranges ranges = {{base + 512 * (rank() + 1), kBytes}, {base + 2 * kBytes, kBytes}};
      const auto segments = require(heap_->register_ranges(ranges, soon()), "register_ranges");
      for (const auto& segment : segments) {
        expect_symmetric(*segment);
        require(heap_->check_alive(*segment), "check_alive");
        require(segment->buffer_id != last_buffer, "buffer ids are not used again");
      }
      last_buffer = segments[0]->buffer_id;
      require(cuda_.free(base), "free");
      require(heap_->check_alive(*segments[0]).code() == StatusCode::kInvalidArgument,
              "freed memory is noticed");
      meet();
    }
  }

  void virtual_memory() {
    const std::size_t granularity = require(cuda_.allocation_granularity(device_), "granularity");
    const std::size_t bytes = round_up(kBytes, granularity);
    const CudaAllocation allocation = require(cuda_.create_allocation(device_, bytes), "create");
    const CudaAddress base = require(cuda_.map_allocation(allocation, bytes, {device_}), "map");
    {
      const Ranges ranges = {{base, bytes}, {base + 4096, 4096}};
      const auto segments = require(heap_->register_ranges(ranges, soon()), "register_ranges");
      for (const auto& segment : segments) {
        expect_symmetric(*segment);
        require(heap_->check_alive(*segment), "check_alive");
      }
    }
    require(cuda_.unmap_allocation(base, bytes), "unmap");
    require(cuda_.release_allocation(allocation), "release");
  }

  CudaDriver& cuda_;
  Bootstrap& bootstrap_;
  const int device_;
  std::unique_ptr<SymmetricHeap> heap_;
};

std::string run_rank(const GroupId& id, int rank) {
  try {
    const auto bootstrap = require(join_group(id, rank, kRanks, soon()), "join_group");
    RankOnGpu(*real_cuda(), *bootstrap, rank).run();
    bootstrap->leave({});
  } catch (const std::exception& failure) {
    return fmt::format("rank {}: {}", rank, failure.what());
  }
  return {};
}

// A child says this where it cannot run.
constexpr std::string_view kSkipped = "skipped: ";

void run_ranks_in(int processes) {
  const int threads = kRanks / processes;
  const GroupId id = require(GroupId::local(), "GroupId::local");
  Children children(processes, [&](int process, Wire& parent) {
    std::string why;
    CudaDriver* const cuda = real_cuda(&why);
    const int gpus = cuda == nullptr ? 0 : require(cuda->device_count(), "device_count");
    if (gpus < kRanks) return parent.say(fmt::format("{}{} GPUs {}", kSkipped, gpus, why));
    std::vector<std::string> failures(static_cast<std::size_t>(threads));
    on_all_ranks(threads,
                 [&](int thread) { failures[thread] = run_rank(id, process * threads + thread); });
    for (const std::string& failure : failures) require(failure.empty(), failure);
  });
  for (const auto& child : children.finish(2 * kPatience)) {
    const std::string said = child.lines.empty() ? "" : child.lines.back();
    if (said.starts_with(kSkipped)) GTEST_SKIP() << said;
    EXPECT_TRUE(child.succeeded()) << child.describe_end() << ": " << said;
  }
}

TEST(CudaHeapOnDevices, RanksOfOneProcess) { run_ranks_in(1); }

TEST(CudaHeapOnDevices, RanksOfTwoProcesses) { run_ranks_in(2); }

}  // namespace
}  // namespace tutti::test
