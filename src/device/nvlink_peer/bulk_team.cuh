// The verbs of bulk copies on GPUs. The last warp of a block, the mover, has its first lane pass
// what is copied through slots in shared memory, a few loads and stores under way at once. All
// other warps add up, into two more slots; thread 0 has them stored. Neither waits for the other
// before bulk_wait(). Of what is fetched the same lane has chunks brought that the other warps use.
//
// Where addresses do not allow it, and on GPUs before Hopper, all warps but the mover copy.
#pragma once

#include "device/nvlink_peer/bulk_fetches.cuh"
#include "device/nvlink_peer/bulk_moves.cuh"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {

template <class Protocol = ProductionProtocol>
class BulkTeam : public NvlinkTeam<Protocol> {
  using Base = NvlinkTeam<Protocol>;
  using Base::work_;

 public:
  using Base::kMaxRanks;
  static constexpr int kWarp = 32;

  // All threads of the block, two warps at least, with kBulkBytes of dynamic shared memory; `moves`
  // is in shared memory, and so is what a body needs that fetches.
  __device__ BulkTeam(const KernelArgs& work, BulkMoves& moves, BulkFetches* fetches = nullptr)
      : Base(work), moves_(moves), fetches_(fetches) {
    if constexpr (kHasBulkCopies) {
      if (!issues_moves()) return;
      moves.open();
      if (fetches != nullptr) fetches->open(work.ranks, adders() / kWarp);
    }
  }

  template <class T>
  __device__ void bulk_copy(std::byte* to, const std::byte* from, std::size_t count) {
    const auto bits = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
    const bool in_bulk = kHasBulkCopies && width_of(bits) == 16;
    constexpr std::size_t kStep = Base::template tile_elements<T>();
    const std::size_t whole = in_bulk ? count / kStep * kStep : 0;
    if (!is_mover()) {
      copy_tiles<T>(to, from, Range{whole, count - whole});
    } else if constexpr (kHasBulkCopies) {
      if (issues_moves()) moves_.move(work_, to, from, whole * sizeof(T));
    }
  }

  template <class T, class F>
  __device__ void bulk_store_all(const Pointers<kMaxRanks>& to, Range range, F&& f) {
    if (is_mover()) return;
    constexpr std::size_t kStep = Base::template tile_elements<T>();
    std::size_t whole = 0;
    if constexpr (kHasBulkCopies) {
      if (this->width() == 16) whole = range.count / kStep * kStep;
      store_slots<T>(to, Range{range.first, whole}, f);
    }
    const NarrowAccess access{this->width()};
    TUTTI_NO_UNROLL
    for (std::size_t at = whole + threadIdx.x * kStep; at < range.count; at += adders() * kStep) {
      const std::size_t left = range.count - at;
      const TileAt tile{at, static_cast<int>(left < kStep ? left : kStep)};
      const auto value = f(access, tile);
      this->template store_all<T>(to, access, TileAt{range.first + at, tile.count}, value);
    }
  }

  // The slots are free: moves have been waited for, and so have stores.
  template <class T, class Use>
  __device__ Outcome bulk_fetch(const Pointers<kMaxRanks>& from, Range range, Use&& use) {
    return fetch<T>(from, range, false, use);
  }
  template <class T, class Use>
  __device__ Outcome bulk_fetch_to(const std::byte* to, const Pointers<kMaxRanks>& from,
                                   Range range, Use&& use) {
    return fetch<T>(from, range, width_of(reinterpret_cast<std::uintptr_t>(to)) == 16, use);
  }

  __device__ Outcome bulk_wait() {
    bool failed = false;
    if constexpr (kHasBulkCopies) {
      if (threadIdx.x == 0) wait_bulk_stores();
      if (issues_moves()) {
        const std::uint64_t late_ns = moves_.end(work_);
        failed = late_ns != 0;
        if (failed) fail(work_, FailureReason::kTimeout, {this->epoch_, {}, work_.rank, late_ns});
      }
    }
    return __syncthreads_or(failed) ? Outcome::kFailed : Outcome::kDone;
  }

 private:
  static __device__ unsigned adders() { return blockDim.x - kWarp; }
  static __device__ bool is_mover() { return threadIdx.x >= adders(); }
  static __device__ bool issues_moves() { return threadIdx.x == adders(); }

  // Links carry whole lines: what begins in the middle of one is fetched from the line's start.
  static constexpr unsigned kLine = 128;
  static __device__ unsigned behind_line(const std::byte* at) {
    return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) % kLine);
  }

  // `stored`: whole tiles can be stored by vectors.
  template <class T, class Use>
  __device__ Outcome fetch(const Pointers<kMaxRanks>& from, Range range, bool stored, Use&& use) {
    constexpr std::size_t kStep = Base::template tile_elements<T>();
    const bool alike = this->are_alike(from, kLine);
    const unsigned behind = alike ? behind_line(from.of(0) + range.first * sizeof(T)) : 0;
    // Nothing is fetched that lies behind the range: the vector that it ends in is not.
    const std::size_t left_out = behind % 16 == 0 ? 0 : kStep;
    const bool in_bulk =
        kHasBulkCopies && range.count > left_out && (this->width() == 16 || (stored && alike));
    const std::size_t whole = in_bulk ? (range.count - left_out) / kStep * kStep : 0;
    std::uint64_t late_ns = 0;
    if constexpr (kHasBulkCopies) {
      late_ns = fetch_whole<T>(from, Range{range.first, whole}, behind, use);
    }
    if (!is_mover()) {
      const NarrowAccess access{this->width()};
      TUTTI_NO_UNROLL
      for (std::size_t at = whole + threadIdx.x * kStep; at < range.count; at += adders() * kStep) {
        const std::size_t left = range.count - at;
        const TileAt tile{at, static_cast<int>(left < kStep ? left : kStep)};
        use(access, tile, [&](int rank) {
          const TileAt there{range.first + at, tile.count};
          return this->template load<T>(from.of(rank), access, there);
        });
      }
    }
    if (late_ns != 0) fail(work_, FailureReason::kTimeout, {this->epoch_, {}, work_.rank, late_ns});
    return __syncthreads_or(late_ns != 0) ? Outcome::kFailed : Outcome::kDone;
  }

  // Whole tiles: the mover has chunk after chunk of every rank brought, with the whole vectors that
  // it begins and ends in; the others use them. If not 0, somebody has waited for so long, and too
  // long.
  template <class T, class Use>
  __device__ std::uint64_t fetch_whole(const Pointers<kMaxRanks>& from, Range range,
                                       unsigned behind, Use&& use) {
    const std::size_t bytes = range.count * sizeof(T);
    const std::size_t offset = range.first * sizeof(T);
    const unsigned room = behind == 0 ? 0 : kLine;
    const std::size_t step = BulkFetches::chunk_bytes(work_.ranks) - room;
    if (issues_moves()) fence_proxy_async_global();  // as BulkMoves::move()
    std::uint64_t late_ns = 0;
    TUTTI_NO_UNROLL
    for (std::size_t at = 0; at < bytes && late_ns == 0; at += step, ++fetched_) {
      const auto length = static_cast<std::uint32_t>(bytes - at < step ? bytes - at : step);
      if (is_mover()) {
        if (!issues_moves()) continue;
        late_ns = fetches_->begin(work_, fetched_, [&](int rank) {
          return BulkPart{from.of(rank) + offset + at - behind, (behind + length + 15) / 16 * 16};
        });
        continue;
      }
      late_ns = fetches_->await(work_, fetched_);
      if (late_ns == 0) use_chunk<T>(at / sizeof(T), length, behind, use);
      fetches_->give_back(fetched_);
    }
    return late_ns;
  }

  template <class T, class Use>
  __device__ void use_chunk(std::size_t first, unsigned bytes, unsigned behind, Use&& use) const {
    constexpr std::size_t kStep = Base::template tile_elements<T>();
    using Part = Tile<T, static_cast<int>(kStep)>;
    const uint4* const parts = BulkFetches::parts(fetched_) + behind / 16;
    const unsigned stride = BulkFetches::chunk_bytes(work_.ranks) / 16, tiles = bytes / 16;
    const unsigned shift = behind % 16;
    TUTTI_NO_UNROLL
    for (unsigned k = threadIdx.x; k < tiles; k += adders()) {
      const TileAt tile{first + k * kStep, static_cast<int>(kStep)};
      use(WideAccess{}, tile, [=](int rank) {
        const uint4* const part = parts + static_cast<unsigned>(rank) * stride + k;
        return __builtin_bit_cast(Part, shift == 0 ? *part : shifted(part[0], part[1], shift));
      });
    }
  }

  template <class T>
  __device__ void copy_tiles(std::byte* to, const std::byte* from, Range range) const {
    constexpr std::size_t kStep = Base::template tile_elements<T>();
    TUTTI_NO_UNROLL
    for (std::size_t at = threadIdx.x * kStep; at < range.count; at += adders() * kStep) {
      const std::size_t left = range.count - at;
      const TileAt tile{range.first + at, static_cast<int>(left < kStep ? left : kStep)};
      this->template store_to<T>(to, tile, this->template load_from<T>(from, tile));
    }
  }

  // Whole tiles. What they become goes from a slot to all ranks, and the next ones into the other.
  template <class T, class F>
  __device__ void store_slots(const Pointers<kMaxRanks>& to, Range range, F&& f) {
    constexpr std::size_t kStep = Base::template tile_elements<T>();
    constexpr std::size_t kHolds = kBulkSlotBytes / sizeof(T);
    TUTTI_NO_UNROLL
    for (std::size_t first = 0; first < range.count; first += kHolds) {
      const std::size_t left = range.count - first;
      const auto tiles = static_cast<unsigned>((left < kHolds ? left : kHolds) / kStep);
      uint4* const sums = bulk_slot(kBulkMoves + sums_++ % kBulkSums);
      // What it held has been read by its stores: by all but the last ones.
      if (threadIdx.x == 0) wait_bulk_reads<kBulkSums - 1>();
      meet_adders();
      TUTTI_NO_UNROLL
      for (unsigned k = threadIdx.x; k < tiles; k += adders()) {
        const TileAt tile{first + k * kStep, static_cast<int>(kStep)};
        sums[k] = __builtin_bit_cast(uint4, f(WideAccess{}, tile));
      }
      // Each thread's stores to the slot are before the bulk stores that read it; and its loads are
      // before those that overwrite, in place, what it loaded.
      fence_proxy_async_shared();
      fence_proxy_async_global();
      meet_adders();
      if (threadIdx.x == 0) store_slot(to, (range.first + first) * sizeof(T), sums, tiles * 16);
    }
  }

  __device__ void store_slot(const Pointers<kMaxRanks>& to, std::size_t offset, const uint4* sums,
                             unsigned bytes) const {
    TUTTI_UNROLL
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < work_.ranks) bulk_store(to.at[r] + offset, sums, bytes);
    }
    end_bulk_group();
  }

  // All warps but the mover's.
  static __device__ void meet_adders() {
    asm volatile("bar.sync 1, %0;" ::"r"(adders()) : "memory");
  }

  BulkMoves& moves_;
  BulkFetches* fetches_;
  unsigned sums_ = 0;     // slots of them
  unsigned fetched_ = 0;  // chunks
};

}  // namespace tutti
