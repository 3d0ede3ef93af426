// How a wait on a GPU goes on and ends: what every team there has in common.
#pragma once

#include "device/nvlink_peer/memory.cuh"
#include "device/team.hpp"

namespace tutti {

// What a test may take away from the protocol; see ProtocolMutation in host_team.hpp. The library's
// kernels are built with ProductionProtocol, which costs nothing.
struct ProductionProtocol {
  static __device__ bool skip_barrier(int) { return false; }
  static __device__ bool release(int) { return true; }
  static __device__ bool acquire(int) { return true; }
  static __device__ void before_barrier(int, int) {}
  static __device__ void before_push() {}
  static __device__ bool polls() { return true; }    // until packets are there
  static __device__ bool empties() { return true; }  // what it takes
  static __device__ bool waits_for_chunks() { return true; }
  static __device__ bool releases_chunks() { return true; }
};

inline constexpr unsigned kPollsBeforeClock = 64;
inline constexpr unsigned kPollsPerClock = 64;
inline constexpr unsigned kPollsPerHostLook = 1024;

// Whether a wait that has polled so often looks at the host's words. They are across PCIe: looks of
// 128 blocks at once took a quarter of a millisecond, so blocks take turns.
__device__ inline bool is_turn_at_host(unsigned polls) {
  return polls % kPollsPerHostLook == 0 && polls / kPollsPerHostLook % gridDim.x == blockIdx.x;
}

__device__ inline std::uint64_t check_word(std::uint32_t signature, std::uint64_t epoch) {
  return static_cast<std::uint64_t>(signature) << 32 | static_cast<std::uint32_t>(epoch);
}

// The widest access that addresses with these low bits allow.
__device__ inline int width_of(std::uintptr_t bits) {
  const int low = static_cast<int>(bits & 15u);
  return low == 0 ? 16 : low & -low;
}

// Between the loads of a tile, or of packets, and their uses. ptxas, left alone, uses the first
// before it issues the last, and so waits twice for the link. It does not move uses up over a
// branch, be it one that is never taken.
__device__ __forceinline__ void end_all_loads(const KernelArgs& work) {
  if (work.ranks > kMaxCudaRanks) asm volatile("trap;");
}

// The wait of one thread for one flag, as a failure record tells it.
struct Waiting {
  std::uint64_t expected_epoch;
  Flag seen;
  int missing;
  std::uint64_t waited_ns;
};

// By a thread of a block that gives up, long after the block arrived: nobody who comes from now on
// may go on. But for a mismatch, which peers find by these flags.
__device__ __noinline__ inline void take_flags_back(const KernelArgs& work, FailureReason why) {
  if (why == FailureReason::kMismatch) return;
  for (int r = 0; r < work.ranks; ++r) {
    auto& channel = *reinterpret_cast<ChannelMemory*>(work.channels.at[r]);
    store_flag(&channel.flags[blockIdx.x][work.rank], Flag{});
  }
  if (work.ring.directions == 0) return;
  const auto ring = [&](int rank) -> RingFlags& {
    return reinterpret_cast<ChannelMemory*>(work.channels.at[rank])->rings[blockIdx.x];
  };
  RingFlags& next = ring((work.rank + 1) % work.ranks);
  RingFlags& before = ring((work.rank + work.ranks - 1) % work.ranks);
  store_flag(&next.chunks[kForward], Flag{});
  store_flag(&before.chunks[kReverse], Flag{});
  store_flag(&before.credits, Flag{});
}

// Writes the failure record, unless another block was first, and poisons this rank. Out of line: it
// takes values, so that a team stays in registers.
__device__ __noinline__ inline Outcome fail(const KernelArgs& work, FailureReason reason,
                                            Waiting waiting) {
  atomicCAS(&work.control->poison, 0u, static_cast<std::uint32_t>(reason));
  take_flags_back(work, reason);
  if (atomicExch(&work.control->claimed, 1u) != 0) return Outcome::kFailed;
  FailureRecord& record = *work.failure;
  record.sequence = work.sequence;
  record.expected_epoch = waiting.expected_epoch;
  record.seen_epoch = waiting.seen.epoch;
  record.expected_signature = work.signature;
  record.seen_signature = static_cast<std::uint32_t>(waiting.seen.check >> 32);
  record.waiting_rank = work.rank;
  record.missing_rank = waiting.missing;
  record.block = static_cast<int>(blockIdx.x);
  record.reason = static_cast<std::uint32_t>(reason);
  record.waited_ns = waiting.waited_ns;
  // Release: the host that sees the state sees the record.
  fence_release_system();
  store_relaxed_system(&record.state, 1u);
  return Outcome::kFailed;
}

__device__ inline std::uint64_t timeout_ns(const KernelArgs& work) {
  return work.timeout_ns != 0 ? work.timeout_ns : load_relaxed_gpu(&work.control->timeout_ns);
}

// The slow part of a wait: has somebody called it off, or is it over? Its shape keeps registers for
// those who call it: what fails, fails at the end.
__device__ __noinline__ inline Outcome look_up(const KernelArgs& work, bool look_at_host,
                                               Waiting waiting) {
  const std::uint32_t poison = load_relaxed_gpu(&work.control->poison);
  if (poison != 0) {
    take_flags_back(work, Control::reason_of(poison));
    return Outcome::kFailed;
  }
  if (look_at_host && (load_relaxed_system(work.notices) & Notice::kAbort) != 0) {
    return fail(work, FailureReason::kAborted, waiting);
  }
  if (waiting.waited_ns > timeout_ns(work)) return fail(work, FailureReason::kTimeout, waiting);
  return Outcome::kDone;
}

// Whether a rank has left the group. Acquire: a poll after this finds all that it sent.
__device__ inline bool has_left(const KernelArgs& work, int rank) {
  return (load_acquire_system(work.notices) & Notice::left(rank)) != 0;
}

// How long one thread goes on polling.
class Patience {
 public:
  // Behind each poll that found nothing: whether to look up. The first polls read no clock.
  __device__ bool is_tried() {
    ++polls_;
    return polls_ > kPollsBeforeClock && polls_ % kPollsPerClock == 0;
  }
  // Where the rank had left at the look before, it was polled in vain since: nothing will come.
  __device__ Outcome look_up(const KernelArgs& work, Waiting waiting) {
    const std::uint64_t now = global_timer_ns();
    if (start_ == 0) start_ = now;
    waiting.waited_ns = now - start_;
    if (left_) return fail(work, FailureReason::kLeft, waiting);
    const bool at_host = is_turn_at_host(polls_);
    const Outcome end = tutti::look_up(work, at_host, waiting);
    if (at_host) left_ = has_left(work, waiting.missing);
    return end;
  }

 private:
  unsigned polls_ = 0;
  bool left_ = false;
  std::uint64_t start_ = 0;
};

}  // namespace tutti
