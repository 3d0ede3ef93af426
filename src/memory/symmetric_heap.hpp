// Memory that every rank of a group can address, and the table that knows it by address.
//
// allocate() and register_*() are collective: every rank calls with the same sizes in the same
// order, handles are exchanged in one batch. A registration's id is its place in that order, so it
// names the same memory on every rank, and finding it by address costs no message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "tutti/status.hpp"

namespace tutti {

// More than any machine has. Beyond it nothing is asked of the ranks, and nothing fails but the
// call.
inline constexpr std::size_t kMaxAllocationBytes = std::size_t{1} << 46;

class Bootstrap;
class CudaDriver;
class SharedMemoryDriver;

// One allocation or registration. Destroying the last reference returns the memory to the heap's
// pool (or closes the mappings, if the heap is gone); local, never blocks on a peer. To be done
// when this rank's work on the memory has ended. The pool keeps at most 1 GiB and 64 blocks that
// every rank has freed; the oldest beyond that end with the next allocate().
class SymmetricSegment {
 public:
  virtual ~SymmetricSegment() = default;
  std::uint32_t id = 0;  // the same on every rank
  std::size_t bytes = 0;
  std::byte* local = nullptr;
  std::size_t capacity = 0;        // of the heap's own allocation that begins there; 0: a user's
  std::vector<std::byte*> at;      // per rank, as this rank addresses it; empty: not zero-copy
  std::string why_staged;          // empty where zero-copy
  std::uint64_t buffer_id = 0;     // registered CUDA memory: to notice free + malloc
  std::byte* multicast = nullptr;  // of all ranks' parts at once; null: not bound to such an object
  std::shared_ptr<void> binding;   // whose address that is
  // It is cudaMalloc's, of ranks of one process on several GPUs. CUDA makes copies of it to other
  // GPUs one behind the other, as the process enqueues them, whatever their streams: one that waits
  // for a rank may hold up what that rank waits for.
  bool copies_queue = false;
  bool zero_copy() const { return !at.empty(); }
};

struct HeapUse {
  std::size_t allocated_bytes = 0;  // in use by segments of this heap
  std::size_t pooled_bytes = 0;     // kept for reuse
  std::size_t open_mappings = 0;    // of peers' memory
};

class SymmetricHeap {
 public:
  virtual ~SymmetricHeap() = default;

  // Collective. Zeroed, 256-byte aligned, at least `bytes`. From the pool where a freed segment of
  // the same rounded size is free on every rank. kMismatch where ranks give different sizes,
  // kResourceExhausted (on every rank) where one rank could not allocate: it is named.
  virtual Result<std::shared_ptr<SymmetricSegment>> allocate(std::size_t bytes,
                                                             Deadline deadline) = 0;

  // Collective. As allocate(), of a few KiB that are never given back while the group lives: no
  // pool has them, and on GPUs, where an allocation of the driver takes 2 MiB or more, groups of
  // one process share one.
  virtual Result<std::shared_ptr<SymmetricSegment>> allocate_small(std::size_t bytes,
                                                                   Deadline deadline) = 0;

  // Collective. One exchange for all of them, in order; element k of the answer belongs to element
  // k of `ranges`. kMismatch where ranks give different numbers or, if sizes are alike, sizes. If
  // one rank's memory cannot be mapped by a peer the segment is staged on every rank, with the
  // reason; but where a rank has run out of something the call fails with kResourceExhausted on
  // every rank, which names it, and nothing is registered: later it may succeed.
  enum class Sizes : std::uint8_t { kAlike, kOfEachRank };
  virtual Result<std::vector<std::shared_ptr<SymmetricSegment>>> register_ranges(
      std::span<const std::pair<void*, std::size_t>> ranges, Deadline deadline, Sizes sizes) = 0;
  Result<std::vector<std::shared_ptr<SymmetricSegment>>> register_ranges(
      std::span<const std::pair<void*, std::size_t>> ranges, Deadline deadline) {
    return register_ranges(ranges, deadline, Sizes::kAlike);
  }

  // The segment that holds [address, address + bytes), or null; of overlapping ones the latest. For
  // the hot path: no lock is held for long, no driver call. The segment may be staged.
  virtual std::shared_ptr<SymmetricSegment> find(const void* address, std::size_t bytes) const = 0;

  // From now on find() passes over the segment: what a captured graph keeps registered lives as
  // long as the graph, which may be longer than the memory, and ends at another time on each rank.
  virtual void hide(const SymmetricSegment& segment) = 0;

  // Whether the segment's registered memory is still the memory that was registered: re-reads the
  // driver's buffer id. kInvalidArgument says that it was freed and given out again.
  virtual Status check_alive(const SymmetricSegment& segment) const = 0;

  // `forget` hears of each allocation of the heap's own that is about to be unmapped, by the
  // address of this rank's part: within allocate(), on every rank in the same order. Not of those
  // that outlive the heap.
  virtual void on_unmap(std::function<void(const std::byte*)> forget) = 0;

  virtual HeapUse use() const = 0;
};

// Ranks that are threads of one process share one mapping; processes exchange descriptors.
Result<std::unique_ptr<SymmetricHeap>> make_host_heap(Bootstrap& bootstrap,
                                                      SharedMemoryDriver& shared_memory);

// `device`: the CUDA ordinal of this rank's GPU in this process's numbering, which may differ
// between processes (CUDA_VISIBLE_DEVICES). Ranks of one process map each other's memory directly;
// others by POSIX descriptors over the bootstrap, or by fabric handles where the bootstrap passes
// no descriptors.
Result<std::unique_ptr<SymmetricHeap>> make_cuda_heap(Bootstrap& bootstrap, CudaDriver& cuda,
                                                      int device);

// Collective. Writes a pattern from every rank into every other rank's part of `segment` (at least
// 4 KiB) and reads it back from both sides, by real transfers. Ok on every rank, or kUnavailable on
// every rank with one line that names the first directed pair that failed; all of them, as ranks,
// are added to `lost`. The answer is cached per process and pair (by GPU uuid). What is checked
// with is zero afterwards.
using RankPairs = std::vector<std::pair<int, int>>;
Status verify_peer_access(Bootstrap& bootstrap, CudaDriver& cuda, const SymmetricSegment& segment,
                          Deadline deadline, RankPairs* lost = nullptr);

}  // namespace tutti
