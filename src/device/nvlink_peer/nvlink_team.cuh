// The verbs on GPUs: a block of threads, over peers that are mapped into this GPU's address space.
// Every wait has a deadline; a block that fails says so in the failure record and poisons its rank.
#pragma once

#include <cuda_runtime.h>

#include "device/nvlink_peer/token_verbs.cuh"
#include "device/nvlink_peer/waits.cuh"
#include "device/team.hpp"

namespace tutti {

template <class Protocol = ProductionProtocol>
class NvlinkTeam : public TokenVerbs<SingleBlock> {
 public:
  static constexpr int kMaxRanks = kMaxCudaRanks;
  static constexpr bool kHasMulticast = false;
  static constexpr bool kBlockIsThread = false;

  // All threads of the block. Reads the epoch and the poison word; touches nothing of a peer's.
  __device__ explicit NvlinkTeam(const KernelArgs& work) : work_(work) {
    epoch_ = load_relaxed_gpu(&work.epochs[blockIdx.x]);
    first_epoch_ = epoch_;
    late_ = work.late != nullptr;
    ended_ = load_relaxed_gpu(&work.control->poison) != 0;
    if (late_ && work.late->ready == 0) {
      if (threadIdx.x == 0) fail(work, FailureReason::kNotRegistered, {epoch_, {}, work.rank, 0});
      ended_ = true;
    }
  }

  __device__ int ranks() const { return work_.ranks; }
  __device__ int block() const { return static_cast<int>(blockIdx.x); }

  // Reads many parameters: best between arrive() and wait(). Decides how wide accesses can be.
  __device__ Buffers<kMaxRanks> buffers(std::size_t piece = 0) {
    Buffers<kMaxRanks> all;
    std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(work_.input) |
                          reinterpret_cast<std::uintptr_t>(work_.output) | piece;
    TUTTI_UNROLL
    for (int r = 0; r < kMaxRanks; ++r) {
      all.inputs.at[r] = work_.stage_input ? work_.staging.at[r]
                         : late_           ? work_.late->inputs.at[r]
                                           : work_.inputs.at[r];
      all.outputs.at[r] = late_ ? work_.late->outputs.at[r] : work_.outputs.at[r];
      if (r >= work_.ranks) continue;
      bits |= reinterpret_cast<std::uintptr_t>(all.inputs.at[r]);
      bits |= reinterpret_cast<std::uintptr_t>(all.outputs.at[r]);
    }
    width_ = width_of(bits);
    outputs_alike_ = are_alike(all.outputs, 16);
    return all;
  }

  template <class T, class F>
  __device__ void for_each_tile(Range range, F&& f) const {
    for_each_tile<T>(range, TileCut{width_}, f);
  }
  template <class T, class F>
  __device__ void for_each_tile(Range range, TileCut cut, F&& f) const {
    const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    deal_tiles<T>(range, cut, thread, threads, f);
  }
  template <class T, class F>
  __device__ void for_each_stored_tile(Range range, const std::byte* to, F&& f) const {
    const bool staged = work_.stage_input || work_.stage_output;  // what others find by their tiles
    const int stored = width_of(reinterpret_cast<std::uintptr_t>(to));
    const TileCut cut = staged ? TileCut{width_, stored} : cut_for<T>(width_, to);
    for_each_tile<T>(range, outputs_alike_ ? cut : TileCut{width_}, f);
  }
  // A thread's tiles are for_each_tile's.
  template <class T>
  __device__ void copy_between(Range range, const std::byte* from, std::byte* to) const {
    const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    copy_dealt<T, false>(range, from, to, thread, threads);
  }
  template <class T>
  __device__ void copy_alone(Range range, const std::byte* from, std::byte* to) const {
    copy_dealt<T, true>(range, from, to, threadIdx.x, blockDim.x);
  }
  // Tile `thread` of the range, and every `threads`-th behind it, several of them under way.
  // `kAlone`: no other block has to find the same tiles.
  template <class T, bool kAlone>
  __device__ void copy_dealt(Range range, const std::byte* from, std::byte* to, std::size_t thread,
                             std::size_t threads) const {
    constexpr std::size_t kStep = tile_elements<T>();
    constexpr int kAhead = 8;
    const auto copy = [&](auto access, TileAt at) {
      store<T>(to, access, at, load<T>(from, access, at));
    };
    from += range.first * sizeof(T);
    to += range.first * sizeof(T);
    const int width =
        width_of(reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to));
    if (width != 16) {
      const TileCut cut = kAlone ? cut_for<T>(width, to) : TileCut{width};
      return deal_tiles<T>({0, range.count}, cut, thread, threads, copy);
    }
    const std::size_t whole = range.count / kStep, rest = range.count % kStep;
    TUTTI_NO_UNROLL
    for (std::size_t tile = thread; tile < whole; tile += kAhead * threads) {
      uint4 part[kAhead];
      TUTTI_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const std::size_t at = tile + i * threads;
        part[i] = at < whole ? load_vector(from + at * 16) : uint4{};
      }
      end_of_loads();
      TUTTI_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const std::size_t at = tile + i * threads;
        if (at < whole) store_vector(to + at * 16, part[i]);
      }
    }
    if (rest > 0 && thread == whole % threads) {
      copy(NarrowAccess{width}, {whole * kStep, static_cast<int>(rest)});
    }
  }
  // Tile `thread` of the range, and every `threads`-th behind it.
  template <class T, class F>
  static __device__ void deal_tiles(Range range, TileCut cut, std::size_t thread,
                                    std::size_t threads, F&& f) {
    constexpr std::size_t kStep = tile_elements<T>();
    const std::size_t end = range.count == 0 ? 0 : cut.lead + range.count;
    std::size_t at = thread * kStep;
    for (; cut.width == 16 && at + kStep <= end; at += threads * kStep) {
      f(WideAccess{}, TileAt{range.first + at, static_cast<int>(kStep)});
    }
    TUTTI_NO_UNROLL
    for (; at < end; at += threads * kStep) {
      const std::size_t first = at < cut.lead ? cut.lead : at;
      const std::size_t last = end - at < kStep ? end : at + kStep;
      const auto count = static_cast<int>(last - first);
      const TileAt tile{range.first + (first - cut.lead), count};
      f(NarrowAccess{count == static_cast<int>(kStep) ? cut.stored : cut.width}, tile);
    }
  }
  // Where a range of `width` is stored from `to` on.
  template <class T>
  static __device__ TileCut cut_for(int width, const std::byte* to) {
    const auto behind = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(to) & 15u);
    return {width, 16, behind / static_cast<unsigned>(sizeof(T))};
  }

  template <class T>
  __device__ Tile<T, tile_elements<T>()> load(const std::byte* from, WideAccess, TileAt at) const {
    return __builtin_bit_cast(Tile<T, tile_elements<T>()>,
                              load_vector(from + at.first * sizeof(T)));
  }
  template <class T>
  __device__ Tile<T, tile_elements<T>()> load(const std::byte* from, NarrowAccess,
                                              TileAt at) const {
    return __builtin_bit_cast(
        Tile<T, tile_elements<T>()>,
        load_bytes(from + at.first * sizeof(T), at.count * static_cast<int>(sizeof(T))));
  }

  template <class T, class Access>
  __device__ bool is_whole_tile(const Pointers<kMaxRanks>&, Access, TileAt) const {
    return Access::kIsWhole;
  }

  __device__ void end_of_loads() const { end_all_loads(work_); }

  template <class T>
  __device__ void store(std::byte* to, WideAccess, TileAt at,
                        const Tile<T, tile_elements<T>()>& value) const {
    store_vector(to + at.first * sizeof(T), __builtin_bit_cast(uint4, value));
  }
  template <class T>
  __device__ void store(std::byte* to, NarrowAccess access, TileAt at,
                        const Tile<T, tile_elements<T>()>& value) const {
    store_bytes(to + at.first * sizeof(T), __builtin_bit_cast(uint4, value), access.width,
                at.count * static_cast<int>(sizeof(T)));
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
    const int width = width_of(reinterpret_cast<std::uintptr_t>(work_.input));
    for_each_tile<T>(range, TileCut{width}, [&](auto access, TileAt at) {
      const auto value = load<T>(work_.input, access, at);
      store<T>(staging, access, TileAt{at.first - origin, at.count}, value);
    });
  }
  template <class T>
  __device__ void copy_out(Range range, std::size_t origin) const {
    const std::byte* const staging = work_.staging.at[work_.rank] - origin * sizeof(T);
    const auto bits = [&](const std::byte* at) {
      return reinterpret_cast<std::uintptr_t>(at + range.first * sizeof(T));
    };
    const int width = width_of(bits(staging) | bits(work_.output));
    for_each_tile<T>(range, TileCut{width}, [&](auto access, TileAt at) {
      store<T>(work_.output, access, at, load<T>(staging, access, at));
    });
  }

  template <class T>
  __device__ T load_scalar(const std::byte* from) const {
    return load<T>(from, NarrowAccess{sizeof(T)}, TileAt{0, 1}).at[0];
  }
  __device__ void publish_scalar(ScalarBits scalar) const {
    if (threadIdx.x == 0) channel(work_.rank).scalars[blockIdx.x] = scalar;
  }
  // A peer's word, as a whole: of a plain load nvcc takes as many bytes as are used.
  __device__ ScalarBits scalar_of(int rank) const {
    const ScalarBits* const word = &channel(rank).scalars[blockIdx.x];
    return pack(load_u64(reinterpret_cast<const std::byte*>(word)));
  }

  template <class F>
  __device__ void publish_counts(F&& count) const {
    const int to = static_cast<int>(threadIdx.x);
    if (to < work_.ranks && !ended_) channel(work_.rank).counts[blockIdx.x][to] = count(to);
  }
  __device__ std::uint32_t published(int from, int to) const {
    return load_relaxed_system(&channel(from).counts[blockIdx.x][to]);
  }
  template <class Load, class IsRight>
  __device__ Outcome learn_counts(Load&& load, IsRight&& is_right) const {
    bool wrong = false;
    const int pairs = work_.ranks * work_.ranks;
    for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += blockDim.x) {
      const int from = pair / work_.ranks, to = pair % work_.ranks;
      const std::uint32_t count = load(from, to);
      table().at[from][to] = count;
      const CountVerdict verdict = is_right(from, to, count);
      wrong = wrong || (!verdict.is_right && refuse(from, count, verdict) != Outcome::kDone);
    }
    return __syncthreads_or(wrong) ? Outcome::kFailed : Outcome::kDone;
  }
  __device__ std::uint32_t counted(int from, int to) const { return table().at[from][to]; }
  __device__ Outcome refuse(int rank, std::uint64_t count, const CountVerdict& verdict) const {
    return fail(work_, verdict.why, {verdict.right, Flag{count, 0}, rank, 0});
  }

  __device__ void arrive(Publish publish) {
    arrive_by(publish, work_.ranks, [&](int peer, const Flag& flag) {
      store_flag(&channel(peer).flags[blockIdx.x][work_.rank], flag);
    });
  }

  __device__ Outcome wait() {
    const int index = barriers_ - 1;
    if (Protocol::skip_barrier(index)) return Outcome::kDone;
    bool failed = ended_;
    const int peer = static_cast<int>(threadIdx.x);
    if (!failed && peer < work_.ranks) {
      kept_epoch_ = load_relaxed_gpu(&work_.epochs[blockIdx.x]);  // for finish(); arrives meanwhile
      const Flag* const flag = &channel(work_.rank).flags[blockIdx.x][peer];
      failed = wait_for(flag, peer, epoch_, Protocol::acquire(index)) != Outcome::kDone;
    }
    return __syncthreads_or(failed) ? Outcome::kFailed : Outcome::kDone;
  }

  __device__ Outcome barrier(Publish publish) {
    arrive(publish);
    return wait();
  }

  __device__ Outcome finish() const {
    if (threadIdx.x == 0) {
      // Another operation on the same channel would have moved the epoch.
      if (kept_epoch_ != first_epoch_) {
        fail(work_, FailureReason::kOverlap, {epoch_, {}, work_.rank, 0});
      } else {
        work_.epochs[blockIdx.x] = epoch_;
      }
    }
    return Outcome::kDone;
  }

 protected:
  struct CountTable {
    std::uint32_t at[kMaxRanks][kMaxRanks];
  };
  // Of kernels that learn counts.
  static __device__ CountTable& table() {
    __shared__ CountTable table;
    return table;
  }

  // tell(thread, flag) by each of the first `tellers` threads.
  template <class Tell>
  __device__ void arrive_by(Publish publish, int tellers, Tell&& tell) {
    const int index = barriers_++;
    Protocol::before_barrier(work_.rank, index);
    if (Protocol::skip_barrier(index)) return;
    ++epoch_;
    if (publish != Publish::kEarlierKernels) __syncthreads();  // the whole block has come so far
    const int thread = static_cast<int>(threadIdx.x);
    if (ended_ || thread >= tellers) return;
    if (publish == Publish::kStores && Protocol::release(index)) fence_release_system();
    tell(thread, Flag{epoch_, check_word(work_.signature, epoch_)});
  }

  // Whether all ranks' addresses lie as far behind a multiple of `unit`.
  __device__ bool are_alike(const Pointers<kMaxRanks>& at, unsigned unit) const {
    std::uintptr_t differ = 0;
    TUTTI_UNROLL
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= work_.ranks) continue;
      differ |=
          reinterpret_cast<std::uintptr_t>(at.at[r]) ^ reinterpret_cast<std::uintptr_t>(at.at[0]);
    }
    return differ % unit == 0;
  }

  // The widest access that all buffers allow.
  __device__ int width() const { return width_; }

  __device__ ChannelMemory& channel(int rank) const {
    return *reinterpret_cast<ChannelMemory*>(work_.channels.at[rank]);
  }

  // One thread waits for one flag, which `peer` sets.
  __device__ Outcome wait_for(const Flag* flag, int peer, std::uint64_t epoch, bool acquire) const {
    for (Patience patience;;) {
      const Flag seen = acquire ? load_acquire_flag(flag) : load_relaxed_flag(flag);
      if (seen.epoch >= epoch && is_whole(seen)) {
        const bool other = seen.epoch == epoch && seen.check != check_word(work_.signature, epoch);
        if (!other) return Outcome::kDone;
        return fail(work_, FailureReason::kMismatch, {epoch, seen, peer, 0});
      }
      if (!patience.is_tried()) continue;
      const Outcome end = patience.look_up(work_, {epoch, seen, peer, 0});
      if (end != Outcome::kDone) return end;
    }
  }

  const KernelArgs& work_;
  std::uint64_t epoch_, first_epoch_;

 private:
  std::uint64_t kept_epoch_ = 0;  // what was kept when the last wait began
  int barriers_ = 0;
  int width_ = 0;
  bool outputs_alike_ = false;  // as far as their alignment goes
  bool late_;
  bool ended_;  // poisoned before it began: the first barrier says so
};

}  // namespace tutti
