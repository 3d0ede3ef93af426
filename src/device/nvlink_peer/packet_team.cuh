// The verbs of packets on GPUs (device/packets.hpp): a block of threads, over peers that are
// mapped into this GPU's address space. A thread waits for nobody but the senders of its own tiles;
// the block meets once, when it learns which launch this is.
#pragma once

#include "device/nvlink_peer/token_verbs.cuh"
#include "device/nvlink_peer/waits.cuh"
#include "device/packets.hpp"

namespace tutti {

// What a thread waits for: packets of rank `source`.
struct PacketWait {
  std::uint64_t launch;
  int source;
  unsigned polls;
  std::uint64_t waited_ns;
};

// The slow part of a wait for packets: has somebody called it off, will they never come, or is it
// over? Out of line, as look_up().
__device__ __noinline__ inline Outcome look_for_packets(const KernelArgs& work, PacketWait wait) {
  const auto* const own =
      reinterpret_cast<const PacketMemory*>(work.packets.memory.at[work.ranks - 1]);
  const bool at_host = is_turn_at_host(wait.polls);
  const bool left = at_host && has_left(work, wait.source);
  const std::uint64_t epoch = wait.launch + 1;
  Waiting waiting{epoch, load_relaxed_flag(&own->flags[blockIdx.x][wait.source]), wait.source,
                  wait.waited_ns};
  const Flag& seen = waiting.seen;
  // Who had begun the launch before it left, has pushed all of it.
  if (left && seen.epoch < epoch) return fail(work, FailureReason::kLeft, waiting);
  if (seen.epoch == epoch && is_whole(seen) && seen.check != check_word(work.signature, epoch)) {
    return fail(work, FailureReason::kMismatch, waiting);
  }
  if (seen.epoch >= epoch) waiting.seen.epoch = wait.launch;  // begun, but not all has come
  if (shows_overlap(load_relaxed_gpu(work.packets.launches), wait.launch)) {
    waiting.missing = work.rank;
    return fail(work, FailureReason::kOverlap, waiting);
  }
  return look_up(work, at_host, waiting);
}

// For exactly kRanks ranks, or for any number of them (0), which takes more registers and tests.
template <int kRanks = 0, class Protocol = ProductionProtocol>
class PacketTeam : public TokenVerbs<Cluster> {
 public:
  static constexpr int kMaxRanks = kRanks != 0 ? kRanks : kMaxCudaRanks;
  static constexpr int kMaxOthers = kMaxRanks - 1;
  struct Column {
    Words at[kMaxRanks];
  };

  __device__ explicit PacketTeam(const KernelArgs& work) : work_(work) {}

  __device__ int ranks() const { return kRanks != 0 ? kRanks : work_.ranks; }
  __device__ int others() const { return ranks() - 1; }

  __device__ void launch_wait() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  }
  __device__ void launch_trigger() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  }

  // --- launches ---

  __device__ void ask_launch() {
    found_ = load_relaxed_gpu(work_.packets.launches);
    poisoned_ = load_relaxed_gpu(&work_.control->poison) != 0;
  }

  __device__ Outcome open_packets() {
    if (poisoned_) return Outcome::kFailed;
    Protocol::before_push();
    launch_ = LaunchWord::launch_of(found_);
    std::byte* const own = work_.packets.memory.at[ranks() - 1];
    own_ = own + generation();
    announcements_ = reinterpret_cast<const PacketMemory*>(own)->flags[blockIdx.x];
    return Outcome::kDone;
  }

  __device__ void announce() {
    const int step = static_cast<int>(threadIdx.x);
    if (step < ranks() && !poisoned_) {
      auto* const peer = reinterpret_cast<PacketMemory*>(work_.packets.memory.at[step]);
      store_flag(&peer->flags[blockIdx.x][work_.rank],
                 Flag{launch_ + 1, check_word(work_.signature, launch_ + 1)});
    }
    __syncthreads();  // all of the block have read the word
    if (step == 0 && !poisoned_) {
      const std::uint64_t before =
          atomicAdd(reinterpret_cast<unsigned long long*>(work_.packets.launches),
                    LaunchWord::share_of(static_cast<int>(blockIdx.x), work_.blocks));
      alone_ = LaunchWord::launch_of(before) == launch_;
    }
  }

  __device__ Outcome close_packets() {
    const int source = static_cast<int>(threadIdx.x);
    if (source >= ranks()) return Outcome::kDone;
    std::uint32_t start = 0;
    for (unsigned polls = 0; !announced_; ++polls) {
      if (is_time_to_look(polls, start)) {
        const Outcome end = look_for_packets(work_, {launch_, source, polls, waited_since(start)});
        if (end != Outcome::kDone) return end;
      }
      keep(look_aside());
    }
    const Flag seen = other_ ? load_relaxed_flag(announcements_ + source) : Flag{};
    if (other_) return fail(work_, FailureReason::kMismatch, {launch_ + 1, seen, source, 0});
    if (alone_) return Outcome::kDone;
    return fail(work_, FailureReason::kOverlap, {launch_ + 1, {}, work_.rank, 0});
  }

  // --- tiles ---

  __device__ Slice first_slice() const { return blockIdx.x * blockDim.x + threadIdx.x; }
  template <class F>
  __device__ Outcome for_each_slice(Slice slices, F&& f) const {
    const Slice stride = gridDim.x * blockDim.x;
    TUTTI_NO_UNROLL
    for (Slice k = first_slice(); k < slices; k += stride) {
      if (f(k) != Outcome::kDone) return Outcome::kFailed;
    }
    return Outcome::kDone;
  }

  template <class T>
  __device__ Words load_tile(TileAt tile) const {
    return load_from<T>(work_.input, tile);
  }
  template <class T>
  __device__ void store_tile(TileAt tile, const Words& words) const {
    store_to<T>(work_.output, tile, words);
  }

  // In the order of sending: the next rank's share first. Without the own one.
  template <class T, class Shares>
  __device__ Column load_column(const Shares& shares, Slice slice) const {
    Column column;
    const bool wide = width_of(reinterpret_cast<std::uintptr_t>(work_.input)) == 16 &&
                      shares.tile(ranks() - 1, slice).count == tile_elements<T>();
    if (wide) {
      TUTTI_UNROLL
      for (int step = 0; step < kMaxOthers; ++step) {
        if (step >= others()) break;
        const std::size_t first = shares.tile(rank_after(step), slice).first;
        column.at[step] = __builtin_bit_cast(Words, load_vector(work_.input + first * sizeof(T)));
      }
    } else {
      TUTTI_UNROLL
      for (int step = 0; step < kMaxOthers; ++step) {
        if (step >= others()) break;
        column.at[step] = load_tile<T>(shares.tile(rank_after(step), slice));
      }
    }
    return column;
  }
  // In the order of ranks; without the own one.
  template <class T, class Shares>
  __device__ void store_column(const Shares& shares, Slice slice, const Column& column) const {
    TUTTI_UNROLL
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < ranks() && r != work_.rank) store_tile<T>(shares.tile(r, slice), column.at[r]);
    }
  }

  __device__ void place_own(Column& column, const Words& own) const {
    TUTTI_UNROLL
    for (int r = 0; r < kMaxRanks; ++r) column.at[r] = chosen(r == work_.rank, own, column.at[r]);
  }

  template <class T>
  __device__ Tile<T, tile_elements<T>()> part_of(const Column& column, int rank, int) const {
    return __builtin_bit_cast(Tile<T, tile_elements<T>()>, column.at[rank]);
  }

  // --- packets: whole tiles, whatever their count ---

  template <class T>
  __device__ void push_all(PacketAt at, int, const Words& words) const {
    TUTTI_UNROLL
    for (int step = 0; step < kMaxOthers; ++step) {
      if (step < others()) push<T>(step, at, words);
    }
  }
  template <class T, class Count>
  __device__ void push_column(PacketAt at, Count&&, const Column& column) const {
    TUTTI_UNROLL
    for (int step = 0; step < kMaxOthers; ++step) {
      if (step < others()) push<T>(step, at, column.at[step]);
    }
  }

  template <class T>
  __device__ void push_to(int rank, PacketAt at, int, const Words& words) const {
    const int step = rank - work_.rank - 1;
    push<T>(step < 0 ? step + ranks() : step, at, words);
  }

  template <class T, class Count>
  __device__ void push_some(PacketAt at, Count&& count, const Column& column) const {
    TUTTI_UNROLL
    for (int step = 0; step < kMaxOthers; ++step) {
      if (step < others() && count(rank_after(step)) > 0) push<T>(step, at, column.at[step]);
    }
  }

  static __device__ Words word_of(std::uint64_t number) { return {number, 0}; }
  static __device__ std::uint64_t number_of(const Words& words) { return words.at[0]; }
  __device__ Outcome refuse(int rank, std::uint64_t count, const CountVerdict& verdict) const {
    return fail(work_, verdict.why, {verdict.right, Flag{count, 0}, rank, 0});
  }
  __device__ bool is_last_slice() const { return first_slice() + 1 == gridDim.x * blockDim.x; }

  template <class T, class Count>
  __device__ Outcome poll(PacketAt at, Count&&, Column& column) {
    return poll_expected<T>(at, ~0u, column);
  }
  template <class T, class Count>
  __device__ Outcome poll_some(PacketAt at, Count&& count, Column& column) {
    unsigned expected = 0;  // of the others, in the order of ranks
    for (int i = 0; i < others(); ++i) {
      if (count(i < work_.rank ? i : i + 1) > 0) expected |= 1u << i;
    }
    return poll_expected<T>(at, expected, column);
  }

  template <class T>
  __device__ Outcome poll_from(int source, PacketAt at, int, Words& words) {
    using Code = PacketCode<T>;
    constexpr int kPackets = 2 * Code::kPackets;
    std::uint64_t packets[kPackets];
    std::byte* const from =
        own_ + offset<T>(at) + slot_of(source, work_.rank) * work_.packets.slot_bytes;
    std::uint32_t start = 0;
    Aside aside;
    for (unsigned polls = 0;; ++polls) {
      TUTTI_UNROLL
      for (int p = 0; p < kPackets; p += 2) load_packets(from + 8 * p, packets + p);
      aside = look_aside();
      end_all_loads(work_);
      if (least_presence<Code>(packets) != 0 || !Protocol::polls()) break;
      if (!is_time_to_look(polls, start)) continue;
      const Outcome end = look_for_packets(work_, {launch_, source, polls, waited_since(start)});
      if (end != Outcome::kDone) return end;
    }
    keep(aside);
    if (Protocol::empties()) clear<kPackets>(from);
    words = decoded<Code>(packets);
    return Outcome::kDone;
  }

 private:
  // Of the others that have a tile there, as bits.
  template <class T>
  __device__ Outcome poll_expected(PacketAt at, unsigned expected, Column& column) {
    using Code = PacketCode<T>;
    std::uint64_t packets[kMaxOthers][2 * Code::kPackets];
    std::byte* const from = own_ + offset<T>(at);
    std::uint32_t start = 0;
    Aside aside;
    for (unsigned polls = 0;; ++polls) {
      load_all(from, packets);
      aside = look_aside();
      end_all_loads(work_);
      if (all_there<Code>(packets, expected) || !Protocol::polls()) break;
      if (!is_time_to_look(polls, start)) continue;
      const int missing = first_missing(packets, expected);
      const Outcome end = look_for_packets(work_, {launch_, missing, polls, waited_since(start)});
      if (end != Outcome::kDone) return end;
    }
    keep(aside);
    if (Protocol::empties()) clear_all<2 * Code::kPackets>(from);
    TUTTI_UNROLL
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= ranks()) break;
      // Others follow each other in rank order: rank r is the r-th of them, or the one before.
      const Words at_it = decoded<Code>(packets[r < kMaxOthers ? r : r - 1]);
      const Words before = decoded<Code>(packets[r > 0 ? r - 1 : 0]);
      column.at[r] = chosen(r < work_.rank, at_it, before);
    }
    return Outcome::kDone;
  }

  // What comes beside the packets, polled together with them: the announcement of one peer, and
  // whether another operation is on the area.
  struct Aside {
    Flag announcement;
    std::uint64_t launches;
  };
  __device__ Aside look_aside() const {
    Aside aside{};
    if (threadIdx.x < ranks()) {
      aside.announcement = load_relaxed_flag(announcements_ + threadIdx.x);
      aside.launches = load_relaxed_gpu(work_.packets.launches);
    }
    return aside;
  }
  // Bits take fewer registers than what they are read from.
  __device__ void keep(const Aside& aside) {
    const Flag& seen = aside.announcement;
    const std::uint64_t epoch = launch_ + 1;
    announced_ = seen.epoch >= epoch && is_whole(seen);
    other_ = seen.epoch == epoch && seen.check != check_word(work_.signature, epoch);
    if (shows_overlap(aside.launches, launch_)) alone_ = false;
  }

  // The first polls read no clock.
  static __device__ bool is_time_to_look(unsigned polls, std::uint32_t& start) {
    if (polls < kPollsBeforeClock || polls % kPollsPerClock != 0) return false;
    if (start == 0) start = clock();
    return true;
  }
  // In units of 65536 ns: one register instead of two, for waits of up to three days.
  static constexpr int kClockBits = 16;
  static __device__ std::uint32_t clock() {
    return static_cast<std::uint32_t>(global_timer_ns() >> kClockBits);
  }
  static __device__ std::uint64_t waited_since(std::uint32_t start) {
    return static_cast<std::uint64_t>(clock() - start) << kClockBits;
  }

  __device__ int rank_after(int step) const {
    const int rank = work_.rank + 1 + step;
    return rank < ranks() ? rank : rank - ranks();
  }

  // Of packet memory.
  __device__ std::size_t generation() const {
    return sizeof(PacketMemory) + launch_ % kPacketGenerations * work_.packets.generation_bytes;
  }
  // Within a generation, of the first slot in that part.
  template <class T>
  __device__ std::size_t offset(PacketAt at) const {
    return static_cast<std::size_t>(at.part) * others() * work_.packets.slot_bytes +
           static_cast<std::size_t>(at.slice) * 16 * PacketCode<T>::kPackets;
  }

  template <class T>
  __device__ void push(int step, PacketAt at, const Words& words) const {
    using Code = PacketCode<T>;
    std::uint64_t packets[2 * Code::kPackets];
    Code::encode(words.at[0], packets);
    Code::encode(words.at[1], packets + Code::kPackets);
    std::byte* const to = work_.packets.memory.at[step] + generation() + offset<T>(at) +
                          slot_of(work_.rank, rank_after(step)) * work_.packets.slot_bytes;
    TUTTI_UNROLL
    for (int p = 0; p < 2 * Code::kPackets; p += 2) store_packets(to + 8 * p, packets + p);
  }

  template <int kPackets>
  __device__ void load_all(const std::byte* from, std::uint64_t (&packets)[kMaxOthers][kPackets]) {
    TUTTI_UNROLL
    for (int i = 0; i < kMaxOthers; ++i) {
      if (i >= others()) break;
      const std::byte* const slot = from + static_cast<std::size_t>(i) * work_.packets.slot_bytes;
      TUTTI_UNROLL
      for (int p = 0; p < kPackets; p += 2) load_packets(slot + 8 * p, packets[i] + p);
    }
  }

  template <class Code, int kPackets>
  __device__ bool all_there(const std::uint64_t (&packets)[kMaxOthers][kPackets],
                            unsigned expected) const {
    std::uint32_t least = ~0u;
    TUTTI_UNROLL
    for (int i = 0; i < kMaxOthers; ++i) {
      if (i >= others()) break;
      if ((expected >> i & 1u) != 0) least = min(least, least_presence<Code>(packets[i]));
    }
    return least != 0;
  }
  template <class Code, int kPackets>
  static __device__ std::uint32_t least_presence(const std::uint64_t (&packets)[kPackets]) {
    std::uint32_t least = ~0u;
    TUTTI_UNROLL
    for (int p = 0; p < kPackets; ++p) least = min(least, Code::presence(packets[p]));
    return least;
  }

  // The first rank whose packets are not all there.
  template <int kPackets>
  __device__ int first_missing(const std::uint64_t (&packets)[kMaxOthers][kPackets],
                               unsigned expected) const {
    int missing = others();
    TUTTI_UNROLL
    for (int i = kMaxOthers - 1; i >= 0; --i) {
      bool there = true;
      TUTTI_UNROLL
      for (int p = 0; p < kPackets; ++p) there = there && packets[i][p] != 0;
      if (i < others() && !there && (expected >> i & 1u) != 0) missing = i;
    }
    return missing < work_.rank ? missing : missing + 1;
  }

  template <int kPackets>
  __device__ void clear_all(std::byte* from) const {
    TUTTI_UNROLL
    for (int i = 0; i < kMaxOthers; ++i) {
      if (i >= others()) break;
      clear<kPackets>(from + static_cast<std::size_t>(i) * work_.packets.slot_bytes);
    }
  }
  template <int kPackets>
  static __device__ void clear(std::byte* slot) {
    constexpr std::uint64_t kEmpty[2] = {0, 0};
    TUTTI_UNROLL
    for (int p = 0; p < kPackets; p += 2) store_packets(slot + 8 * p, kEmpty);
  }

  // Word by word, so that neither has to have an address.
  static __device__ Words chosen(bool first, const Words& a, const Words& b) {
    return {first ? a.at[0] : b.at[0], first ? a.at[1] : b.at[1]};
  }

  template <class Code>
  static __device__ Words decoded(const std::uint64_t* packets) {
    return {Code::decode(packets), Code::decode(packets + Code::kPackets)};
  }

  const KernelArgs& work_;
  std::uint64_t found_ = 0;  // the launch word at the beginning
  bool poisoned_ = false;    // likewise
  std::uint64_t launch_ = 0;
  bool alone_ = true;                    // of the first thread: when it counted the block
  std::byte* own_ = nullptr;             // this rank's generation
  const Flag* announcements_ = nullptr;  // to this block, by rank
  // As last seen beside packets: the announcement of one peer, and whether it is of another
  // operation.
  bool announced_ = false, other_ = false;
};

}  // namespace tutti
