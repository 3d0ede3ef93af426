// The verbs of a ring on GPUs. Warps go through the body each for itself, none waits for another:
// all but the last move tiles, and poll for what they need. The last one, the messenger, tells
// neighbours what the others have done: its fence waits until their stores have arrived, a trip
// over the link and back, while they go on to the next chunk. They wait before a further one: a
// fence waits for all stores that the SM has queued for the link, so a long queue delays each flag.
#pragma once

#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {

template <class Protocol = ProductionProtocol>
class RingTeam : public NvlinkTeam<Protocol> {
  using Base = NvlinkTeam<Protocol>;
  using Base::work_;

 public:
  static constexpr int kWarp = 32;
  // How many passes each warp has come to; of the messenger, the last pass that it has told of. In
  // shared memory; written by that warp alone.
  struct Progress {
    std::uint32_t passes[kMaxThreads / kWarp];
  };

  // All threads of the block, two warps at least.
  __device__ RingTeam(const KernelArgs& work, Progress& progress)
      : Base(work), progress_(progress) {
    if (is_first_lane()) progress.passes[warp()] = 0;
  }

  // The barrier before it has made every warp see the progress of none.
  __device__ void open_ring(std::size_t piece) {
    std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(work_.input) |
                          reinterpret_cast<std::uintptr_t>(work_.output) | piece;
    if (!goes_through_slots(work_) && work_.ranks > 1) {
      bits |= reinterpret_cast<std::uintptr_t>(output_at(kForward)) |
              reinterpret_cast<std::uintptr_t>(output_at(kReverse));
    }
    width_ = width_of(bits);
  }

  // Outputs start with the next rank's; this rank's own is the last.
  __device__ std::byte* output_at(Direction direction) const {
    const bool late = work_.late != nullptr;
    const PeerPointers& outputs = late ? work_.late->outputs : work_.outputs;
    return outputs.at[direction == kForward ? 0 : work_.ranks - 2];
  }

  __device__ Outcome slot_to(Direction direction, std::byte*& at) const {
    constexpr std::uint64_t kSlots = RingSlots::kPerBlock;
    const std::uint64_t chunk = sent_[direction];
    const int to = neighbour(direction);
    at = slot(to, direction, chunk);
    if (is_messenger() || direction == kReverse || chunk < kSlots) return Outcome::kDone;
    return await(ring(work_.rank).credits, to, chunk - kSlots + 1);
  }

  __device__ Outcome slot_from(Direction direction, std::byte*& at) const {
    const std::uint64_t chunk = taken_[direction];
    at = slot(work_.rank, direction, chunk);
    if (is_messenger() || !Protocol::waits_for_chunks()) return Outcome::kDone;
    return await(ring(work_.rank).chunks[direction], neighbour(other(direction)), chunk + 1);
  }

  template <class T, class Load, class Use>
  __device__ void for_each_of_chunk(std::size_t count, Load&& load, Use&& use) const {
    if (is_messenger()) return;
    constexpr unsigned kStep = Base::template tile_elements<T>();
    using Part = decltype(load(WideAccess{}, TileAt{}));
    constexpr bool kAddsBytes = sizeof(T) == 1 && sizeof(Part) > 16;
    constexpr int kAhead = kAddsBytes ? 2 : 4;  // as many as find registers
    const unsigned movers = blockDim.x - kWarp;
    const unsigned whole = width_ == 16 ? static_cast<unsigned>(count / kStep) : 0;
    const auto tile_at = [](unsigned tile) { return TileAt{std::size_t{tile} * kStep, kStep}; };
    using Words = Tile<std::uint32_t, sizeof(Part) / 4>;  // which stay whole registers
    TUTTI_NO_UNROLL
    for (unsigned tile = threadIdx.x; tile < whole; tile += kAhead * movers) {
      Words part[kAhead];
      TUTTI_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        part[i] = {};  // see reduce_ahead()
        const unsigned at = tile + i * movers;
        if (at < whole) part[i] = __builtin_bit_cast(Words, load(WideAccess{}, tile_at(at)));
      }
      this->end_of_loads();
      TUTTI_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const unsigned at = tile + i * movers;
        if (at < whole) use(WideAccess{}, tile_at(at), __builtin_bit_cast(Part, part[i]));
      }
    }
    const std::size_t done = std::size_t{whole} * kStep;
    Base::template deal_tiles<T>(
        Range{done, count - done}, TileCut{width_}, threadIdx.x, movers,
        [&](auto access, TileAt tile) { use(access, tile, load(access, tile)); });
  }

  __device__ Outcome pass(unsigned moves) {
    TUTTI_UNROLL
    for (int d = 0; d < 2; ++d) {
      const auto direction = static_cast<Direction>(d);
      if ((moves & sent(direction)) != 0) ++sent_[d];
      if ((moves & taken(direction)) != 0) ++taken_[d];
    }
    ++passes_;
    if (is_messenger()) return tell(moves);
    __syncwarp();
    // Release: the messenger that sees it has seen what this warp's lanes did before.
    if (is_first_lane()) store_release_block(&progress_.passes[warp()], passes_);
    if ((moves & kSends) == 0) return Outcome::kDone;
    // One chunk may be on its way while the next is stored, and no more.
    const std::uint32_t before = last_sent_;
    last_sent_ = passes_;
    return await_messenger(before);
  }

  __device__ Outcome finish() const {
    if (threadIdx.x != 0) return Outcome::kDone;
    // Who else ran on the channel began with the same epoch: one of the two finds another.
    const std::uint64_t first = this->first_epoch_;
    // The first of a chain takes no chunks, and the last one sends none.
    const std::uint64_t passed = max(sent_[kForward], taken_[kForward]);
    const std::uint64_t last = this->epoch_ + passed;
    if (compare_and_swap(&work_.epochs[blockIdx.x], first, last) == first) return Outcome::kDone;
    return fail(work_, FailureReason::kOverlap, {last, {}, work_.rank, 0});
  }

 private:
  static __device__ int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  static __device__ bool is_first_lane() { return threadIdx.x % kWarp == 0; }
  static __device__ int warps() { return static_cast<int>(blockDim.x) / kWarp; }
  static __device__ bool is_messenger() { return warp() == warps() - 1; }
  static __device__ Direction other(Direction direction) {
    return direction == kForward ? kReverse : kForward;
  }

  static constexpr unsigned kSends = sent(kForward) | sent(kReverse);

  __device__ int neighbour(Direction direction) const {
    const int rank = work_.rank + (direction == kForward ? 1 : -1);
    return rank < 0 ? work_.ranks - 1 : rank == work_.ranks ? 0 : rank;
  }
  __device__ RingFlags& ring(int rank) const { return this->channel(rank).rings[blockIdx.x]; }
  __device__ std::byte* slot(int owner, Direction direction, std::uint64_t chunk) const {
    return work_.staging.at[owner] +
           work_.ring.offset(static_cast<int>(blockIdx.x), direction, chunk);
  }

  // By a warp, for so many chunks of this operation.
  __device__ Outcome await(const Flag& flag, int peer, std::uint64_t chunks) const {
    Outcome outcome = Outcome::kDone;
    if (is_first_lane()) outcome = this->wait_for(&flag, peer, this->epoch_ + chunks, true);
    __syncwarp();  // the acquire of all lanes: a shuffle orders no memory
    return __shfl_sync(~0u, static_cast<int>(outcome), 0) == static_cast<int>(Outcome::kDone)
               ? Outcome::kDone
               : Outcome::kFailed;
  }

  // By the messenger. Where all warps have gone on meanwhile, the next pass tells of what was sent
  // in this one, too: one fence for both.
  __device__ Outcome tell(unsigned moves) {
    untold_ |= moves & kSends;
    const bool frees = goes_through_slots(work_) && (moves & taken(kForward)) != 0;
    bool have_gone_on = false;
    if (untold_ != 0 || frees) {
      if (await_warps(have_gone_on) != Outcome::kDone) return Outcome::kFailed;
    }
    const int next = neighbour(kForward), before = neighbour(kReverse);
    // Loads are over once their values have been stored: there is nothing to release.
    if (frees && is_first_lane()) count(ring(before).credits, taken_[kForward]);
    if (have_gone_on) return Outcome::kDone;
    if (is_first_lane() && untold_ != 0) {
      if (Protocol::releases_chunks()) fence_release_system();
      if ((untold_ & sent(kForward)) != 0) count(ring(next).chunks[kForward], sent_[kForward]);
      if ((untold_ & sent(kReverse)) != 0) count(ring(before).chunks[kReverse], sent_[kReverse]);
    }
    untold_ = 0;
    if (is_first_lane()) store_release_block(&progress_.passes[warp()], passes_);
    return Outcome::kDone;
  }
  __device__ void count(Flag& flag, std::uint64_t chunks) const {
    const std::uint64_t epoch = this->epoch_ + chunks;
    store_flag(&flag, Flag{epoch, check_word(work_.signature, epoch)});
  }

  // Until all warps have come to this pass, each of which keeps the deadline; or one has failed.
  __device__ Outcome await_warps(bool& have_gone_on) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const bool watches = lane < warps() - 1;
    for (unsigned polls = 1;; ++polls) {
      const std::uint32_t passes =
          watches ? load_acquire_block(&progress_.passes[lane]) : passes_ + 1;
      if (__all_sync(~0u, passes >= passes_)) {
        have_gone_on = __all_sync(~0u, passes > passes_);
        // No vote orders memory: by this the first lane's fence covers what each lane has seen.
        __syncwarp();
        return Outcome::kDone;
      }
      if (polls % kPollsPerClock != 0) continue;
      const std::uint32_t poison = load_relaxed_gpu(&work_.control->poison);
      if (poison == 0) continue;
      // Once more: what was told since another warp gave up.
      if (is_first_lane()) take_flags_back(work_, Control::reason_of(poison));
      return Outcome::kFailed;
    }
  }

  // By the other warps, until the messenger has told of this pass. That ends: the messenger waits
  // for warps alone, and warps wait for neighbours up to the deadline.
  __device__ Outcome await_messenger(std::uint32_t pass) const {
    const std::uint32_t* const told = &progress_.passes[warps() - 1];
    for (unsigned polls = 1;; ++polls) {
      if (__all_sync(~0u, load_acquire_block(told) >= pass)) return Outcome::kDone;
      if (polls % kPollsPerClock != 0) continue;
      if (__any_sync(~0u, load_relaxed_gpu(&work_.control->poison) != 0)) return Outcome::kFailed;
    }
  }

  Progress& progress_;
  std::uint32_t passes_ = 0;
  std::uint32_t last_sent_ = 0;  // the last pass that sent something
  unsigned untold_ = 0;          // by the messenger: sends that it has not told of
  std::uint64_t sent_[2] = {}, taken_[2] = {};
  int width_ = 0;
};

}  // namespace tutti
