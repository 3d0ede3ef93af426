// The verbs on GPUs: a block of threads, over peers that are mapped into this GPU's address space.
// Every wait has a deadline; a block that fails says so in the failure record and poisons its rank.
#pragma once

#include <cuda_runtime.h>

#include "transport/nvlink_peer/memory.cuh"
#include "transport/team.hpp"

namespace tutti {

// All addresses of the operation are 16-byte aligned and the tile is whole.
struct WideAccess {
  static constexpr bool kLoadsAhead = true;
};
// Anything else: accesses of `width` bytes (8, 4, 2 or 1, never less than the element).
struct NarrowAccess {
  static constexpr bool kLoadsAhead = false;
  int width;
};

// What a test may take away from the protocol; see Weakening in host_team.hpp. The library's
// kernels are built with Faithful, which costs nothing.
struct Faithful {
  static __device__ bool skip_barrier(int) { return false; }
  static __device__ bool release(int) { return true; }
  static __device__ bool acquire(int) { return true; }
  static __device__ void before_barrier(int, int) {}
};

template <class Protocol = Faithful>
class NvlinkTeam {
 public:
  static constexpr int kMaxRanks = kMaxCudaRanks;
  template <class T>
  static constexpr __host__ __device__ int tile_elements() {
    return static_cast<int>(16 / sizeof(T));
  }

  // All threads of the block. Reads the epoch and the poison word; starts nothing.
  __device__ explicit NvlinkTeam(const Work& work) : work_(work) {
    epoch_ = work.epochs[blockIdx.x];
    first_epoch_ = epoch_;
    poisoned_ = load_relaxed_gpu(&work.control->poison) != 0;
    late_ = work.late != nullptr;
    registered_ = !late_ || work.late->ready != 0;
    std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(work.input) |
                          reinterpret_cast<std::uintptr_t>(work.output);
    const Buffers<kMaxRanks> all = buffers();
    TUTTI_UNROLL
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= work.ranks) break;
      bits |= reinterpret_cast<std::uintptr_t>(all.inputs.at[r]);
      bits |= reinterpret_cast<std::uintptr_t>(all.outputs.at[r]);
    }
    const int low = static_cast<int>(bits & 15u);
    width_ = low == 0 ? 16 : low & -low;
  }

  __device__ int ranks() const { return work_.ranks; }

  __device__ Buffers<kMaxRanks> buffers() const {
    Buffers<kMaxRanks> all;
    TUTTI_UNROLL
    for (int r = 0; r < kMaxRanks; ++r) {
      all.inputs.at[r] = work_.stage_input ? work_.staging.at[r]
                         : late_           ? work_.late->inputs.at[r]
                                           : work_.inputs.at[r];
      all.outputs.at[r] =
          late_ && !work_.stage_output ? work_.late->outputs.at[r] : work_.outputs.at[r];
    }
    return all;
  }

  template <class T, class F>
  __device__ void for_each_tile(Range range, F&& f) const {
    constexpr std::size_t kStep = tile_elements<T>();
    const std::size_t whole = width_ == 16 ? range.count / kStep : 0;
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    std::size_t k = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; k < whole; k += stride) {
      f(WideAccess{}, TileAt{range.first + k * kStep, static_cast<int>(kStep)});
    }
    const NarrowAccess narrow{width_ < static_cast<int>(sizeof(T)) ? static_cast<int>(sizeof(T))
                                                                   : width_};
    TUTTI_NO_UNROLL
    for (; k * kStep < range.count; k += stride) {
      const std::size_t left = range.count - k * kStep;
      f(narrow, TileAt{range.first + k * kStep, static_cast<int>(left < kStep ? left : kStep)});
    }
  }

  template <class T>
  __device__ Tile<T, tile_elements<T>()> load(const std::byte* from, WideAccess, TileAt at) const {
    return __builtin_bit_cast(Tile<T, tile_elements<T>()>,
                              load_vector(from + at.first * sizeof(T)));
  }
  template <class T>
  __device__ Tile<T, tile_elements<T>()> load(const std::byte* from, NarrowAccess access,
                                              TileAt at) const {
    return __builtin_bit_cast(
        Tile<T, tile_elements<T>()>,
        load_pieces<sizeof(T)>(from + at.first * sizeof(T), access.width, at.count));
  }

  template <class T>
  __device__ void store(std::byte* to, WideAccess, TileAt at,
                        const Tile<T, tile_elements<T>()>& value) const {
    store_vector(to + at.first * sizeof(T), __builtin_bit_cast(uint4, value));
  }
  template <class T>
  __device__ void store(std::byte* to, NarrowAccess access, TileAt at,
                        const Tile<T, tile_elements<T>()>& value) const {
    store_pieces<sizeof(T)>(to + at.first * sizeof(T), __builtin_bit_cast(uint4, value),
                            access.width, at.count);
  }

  template <class T>
  __device__ void store_all(const Pointers<kMaxRanks>& to, WideAccess access, TileAt at,
                            const Tile<T, tile_elements<T>()>& value) const {
    TUTTI_UNROLL
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < work_.ranks) store<T>(to.at[r], access, at, value);
    }
  }
  template <class T>
  __device__ void store_all(const Pointers<kMaxRanks>& to, NarrowAccess access, TileAt at,
                            const Tile<T, tile_elements<T>()>& value) const {
    TUTTI_NO_UNROLL
    for (int r = 0; r < work_.ranks; ++r) store<T>(to.of(r), access, at, value);
  }

  template <class T>
  __device__ void copy_in(Range range, std::size_t origin) const {
    std::byte* staging = work_.staging.at[work_.rank];
    for_each_tile<T>(range, [&](auto access, TileAt at) {
      const auto value = load<T>(work_.input, access, at);
      store<T>(staging, access, TileAt{at.first - origin, at.count}, value);
    });
  }
  template <class T>
  __device__ void copy_out(Range range, std::size_t origin) const {
    const std::byte* staging = work_.staging.at[work_.rank];
    for_each_tile<T>(range, [&](auto access, TileAt at) {
      const auto value = load<T>(staging, access, TileAt{at.first - origin, at.count});
      store<T>(work_.output, access, at, value);
    });
  }

  __device__ void publish_scalar(double scalar) const {
    if (threadIdx.x == 0) channel(work_.rank).scalars[blockIdx.x] = scalar;
  }
  __device__ double scalar_of(int rank) const { return channel(rank).scalars[blockIdx.x]; }

  __device__ Outcome barrier() {
    const int index = barriers_++;
    Protocol::before_barrier(work_.rank, index);
    if (Protocol::skip_barrier(index)) return Outcome::kDone;
    ++epoch_;
    __syncthreads();  // the whole block's accesses come before its flag
    bool failed = false;
    const int peer = static_cast<int>(threadIdx.x);
    if (peer < work_.ranks) {
      if (Protocol::release(index)) fence_release_system();
      store_flag(&channel(peer).flags[blockIdx.x][work_.rank],
                 Flag{epoch_, check_word(work_.signature, epoch_)});
      failed = wait(peer) != Outcome::kDone;
      if (Protocol::acquire(index)) fence_acquire_system();
    }
    return __syncthreads_or(failed) ? Outcome::kFailed : Outcome::kDone;
  }

  // Uniform over the block: false ends the operation before it starts.
  __device__ bool ready() const {
    if (!registered_ && threadIdx.x == 0) {
      fail(FailureReason::kNotRegistered, work_.rank, Flag{}, 0);
    }
    return !__syncthreads_or(poisoned_ || !registered_);
  }

  __device__ Outcome finish() const {
    if (threadIdx.x == 0) {
      // Another operation on the same channel would have moved the epoch meanwhile.
      if (load_relaxed_gpu(&work_.epochs[blockIdx.x]) != first_epoch_) {
        fail(FailureReason::kOverlap, work_.rank, Flag{}, 0);
      } else {
        work_.epochs[blockIdx.x] = epoch_;
      }
    }
    return Outcome::kDone;
  }

 private:
  static constexpr unsigned kPollsBeforeClock = 64;
  static constexpr unsigned kPollsPerClock = 64;
  static constexpr unsigned kPollsPerHostLook = 1024;  // the host's word is across PCIe

  __device__ ChannelMemory& channel(int rank) const {
    return *reinterpret_cast<ChannelMemory*>(work_.channels.at[rank]);
  }
  static __device__ std::uint64_t check_word(std::uint32_t signature, std::uint64_t epoch) {
    return static_cast<std::uint64_t>(signature) << 32 | static_cast<std::uint32_t>(epoch);
  }

  // One thread waits for one peer's flag.
  __device__ Outcome wait(int peer) const {
    const Flag* flag = &channel(work_.rank).flags[blockIdx.x][peer];
    std::uint64_t start = 0;
    for (unsigned polls = 0;; ++polls) {
      const Flag seen = load_flag(flag);
      // The words may arrive apart: they belong together when their epochs agree.
      const bool together =
          static_cast<std::uint32_t>(seen.check) == static_cast<std::uint32_t>(seen.epoch);
      if (seen.epoch >= epoch_ && together) {
        const bool other =
            seen.epoch == epoch_ && seen.check != check_word(work_.signature, epoch_);
        if (!other) return Outcome::kDone;
        return fail(FailureReason::kMismatch, peer, seen, 0);
      }
      if (polls < kPollsBeforeClock || polls % kPollsPerClock != 0) continue;
      const std::uint64_t now = global_timer_ns();
      if (start == 0) start = now;
      if (Outcome end = look_up(polls, peer, seen, now - start); end != Outcome::kDone) return end;
    }
  }

  // The slow part of a wait: has somebody called it off, or is it over?
  __device__ __noinline__ Outcome look_up(unsigned polls, int peer, const Flag& seen,
                                          std::uint64_t waited_ns) const {
    if (load_relaxed_gpu(&work_.control->poison) != 0) return Outcome::kFailed;
    if (polls % kPollsPerHostLook == 0 && load_relaxed_system(work_.abort) != 0) {
      return fail(FailureReason::kAborted, peer, seen, waited_ns);
    }
    const std::uint64_t limit =
        work_.timeout_ns != 0 ? work_.timeout_ns : load_relaxed_gpu(&work_.control->timeout_ns);
    if (waited_ns > limit) return fail(FailureReason::kTimeout, peer, seen, waited_ns);
    return Outcome::kDone;
  }

  __device__ __noinline__ Outcome fail(FailureReason reason, int missing, const Flag& seen,
                                       std::uint64_t waited_ns) const {
    store_relaxed_gpu(&work_.control->poison, static_cast<std::uint32_t>(reason));
    if (atomicExch(&work_.control->claimed, 1u) != 0) return Outcome::kFailed;
    FailureRecord& record = *work_.failure;
    record.sequence = work_.sequence;
    record.expected_epoch = epoch_;
    record.seen_epoch = seen.epoch;
    record.expected_signature = work_.signature;
    record.seen_signature = static_cast<std::uint32_t>(seen.check >> 32);
    record.waiting_rank = work_.rank;
    record.missing_rank = missing;
    record.block = static_cast<int>(blockIdx.x);
    record.reason = static_cast<std::uint32_t>(reason);
    record.waited_ns = waited_ns;
    // Release: the host that sees the state sees the record.
    fence_release_system();
    store_relaxed_system(&record.state, 1u);
    return Outcome::kFailed;
  }

  const Work& work_;
  std::uint64_t epoch_, first_epoch_;
  int barriers_ = 0;
  int width_;
  bool poisoned_, late_, registered_;
};

}  // namespace tutti
