// The verbs on a machine without a GPU: ranks are threads or processes over shared memory, a block
// is one thread. Waits spin briefly, then yield, so that many ranks make progress on few cores, and
// sleep once they are long (tutti/device/impl/host_wait.hpp).
#pragma once

#include <atomic>
#include <cstring>

#include "device/host_tiles.hpp"

namespace tutti {

// What a test may take away from the protocol, to see that its absence is found. Barriers are
// numbered from 0 in the order in which one operation of one block passes them.
struct ProtocolMutation {
  unsigned skip_barrier = 0;  // bit k: barrier k is left out
  unsigned no_release = 0;    // bit k: barrier k signals without release
  unsigned no_acquire = 0;    // bit k: barrier k waits without acquire
  void (*before_barrier)(int rank, int barrier) = nullptr;  // for delays
  void (*after_poll)(int rank) = nullptr;  // between one in vain and a look at what ends the wait

  // Of packets, whose parts of an operation are numbered from 0.
  unsigned no_poll = 0;   // bit k: what lies in part k's slots is taken as it is
  unsigned no_clear = 0;  // bit k: part k's slots stay as they are

  // Of a ring. Bit k: chunks in direction k; bit 0: credits. Of messages: bit 0 of each.
  unsigned no_chunk_wait = 0, no_chunk_release = 0, no_chunk_acquire = 0;
  unsigned no_credit_wait = 0, no_credit_release = 0, no_credit_acquire = 0;
};

// By the C library. Where the compiler knows that there are few, it copies by `rep
// movsq`, which takes two to three times as long.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  asm("" : "+r"(bytes));  // any number, for all that it knows
  std::memcpy(to, from, bytes);
}

class HostTeam : public HostTiles<HostTeam, 1024> {
 public:
  static constexpr bool kCopiesLate = false;  // those of copy engines, now and then

  // `waits_for`, if any, is a word for whoever looks at this rank from outside: while a wait is
  // long enough to yield, bit r says that rank r has not come. It stays as it is when the wait
  // fails.
  HostTeam(const KernelArgs& work, int block, const ProtocolMutation* weakening = nullptr,
           std::uint64_t* waits_for = nullptr)
      : HostTiles(work, block),
        weakening_(weakening),
        waits_for_(waits_for),
        epoch_(work.epochs[block]),
        first_epoch_(epoch_) {}

  template <class T>
  TileInPlace<T> load(const std::byte* from, HostAccess, TileAt tile) const {
    return {reinterpret_cast<const T*>(from) + tile.first, tile.count};
  }

  template <class T>
  void store(std::byte* to, HostAccess, TileAt tile,
             const Tile<T, tile_elements<T>()>& value) const {
    copy_bytes(to + tile.first * sizeof(T), value.at, tile.count * sizeof(T));
  }
  template <class T>
  void store(std::byte* to, HostAccess, TileAt tile, const TileInPlace<T>& value) const {
    copy_bytes(to + tile.first * sizeof(T), value.at, tile.count * sizeof(T));
  }

  // Runs as long as a block has them.
  template <class T>
  void copy_between(Range range, const std::byte* from, std::byte* to) const {
    if (work_.blocks == 1) return copy_alone<T>(range, from, to);
    for_each_tile<T>(range, [&](HostAccess, TileAt tile) {
      copy_alone<T>({tile.first, static_cast<std::size_t>(tile.count)}, from, to);
    });
  }
  template <class T>
  void copy_alone(Range range, const std::byte* from, std::byte* to) const {
    if (range.count == 0) return;  // else null, maybe
    const std::size_t first = range.first * sizeof(T);
    copy_bytes(to + first, from + first, range.count * sizeof(T));
  }

  template <class T>
  void copy_in(Range range, std::size_t origin) const {
    std::byte* const staging = work_.staging.at[work_.rank] + (range.first - origin) * sizeof(T);
    copy_between<T>({0, range.count}, work_.input + range.first * sizeof(T), staging);
  }

  template <class T>
  void copy_out(Range range, std::size_t origin) const {
    const std::byte* const staging =
        work_.staging.at[work_.rank] + (range.first - origin) * sizeof(T);
    copy_between<T>({0, range.count}, staging, work_.output + range.first * sizeof(T));
  }

  void publish_scalar(ScalarBits scalar) const { channel(work_.rank).scalars[block_] = scalar; }
  ScalarBits scalar_of(int rank) const { return channel(rank).scalars[block_]; }
  template <class F>
  void publish_counts(F&& count) const {
    if (poisoned()) return;
    for (int to = 0; to < work_.ranks; ++to) channel(work_.rank).counts[block_][to] = count(to);
  }
  std::uint32_t published(int from, int to) const { return channel(from).counts[block_][to]; }
  Outcome refuse(int rank, std::uint64_t count, const CountVerdict& verdict) const {
    return fail(verdict.why, rank, verdict.right, Flag{count, 0}, 0);
  }

  void arrive(Publish);  // always releases: the language has no weaker way
  Outcome wait();
  Outcome barrier(Publish publish) {
    arrive(publish);
    return wait();
  }
  Outcome finish();

  // Bulk copies are made at once.
  template <class T>
  void bulk_copy(std::byte* to, const std::byte* from, std::size_t count) const {
    if (count > 0) std::memcpy(to, from, count * sizeof(T));  // else null, maybe
  }
  Outcome bulk_wait() const { return Outcome::kDone; }

  // host_ring.cpp
  void open_ring(std::size_t) const {}
  Outcome slot_to(Direction direction, std::byte*& at) const;
  Outcome slot_from(Direction direction, std::byte*& at) const;
  Outcome pass(unsigned moves);

  // host_messages.cpp
  void open_messages(const Messages& messages);
  Outcome next_move(MessageMove& move);
  void copy_chunk(std::byte* to, const std::byte* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
  }
  // Short messages are chunks like others: their flag says that they are there. A mark for each
  // word would make both cores write to, and poll, each line of the message.
  void push_marked(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t) const {
    copy_chunk(to, from, bytes);
  }
  Outcome take_marked(std::byte* to, const std::byte* from, std::size_t bytes, MarkedFrom) const {
    copy_chunk(to, from, bytes);
    return Outcome::kDone;
  }
  Outcome pass(const MessageMove& move, Outcome carried);
  Outcome close_messages() const;

  // host_packets.cpp. A launch is this thread's call: before and behind it there is nothing to wait
  // for.
  void launch_wait() const {}
  void launch_trigger() const {}
  void ask_launch();
  Outcome open_packets();
  void announce();
  Outcome close_packets() const;

  using HostTiles::load_from, HostTiles::store_to;
  template <class T>
  Words load_from(const std::byte* from, HostAccess, TileAt tile) const {
    Words words;
    const auto bytes = static_cast<std::size_t>(tile.count) * sizeof(T);
    if (bytes > 0) copy_bytes(words.at, from + tile.first * sizeof(T), bytes);  // else null, maybe
    std::memset(words.at + bytes, 0, (8 - bytes % 8) % 8);
    return words;
  }
  template <class T>
  void store_to(std::byte* to, HostAccess, TileAt tile, const Words& words) const {
    copy_bytes(to + tile.first * sizeof(T), words.at, tile.count * sizeof(T));
  }

 private:
  friend HostTiles;  // push, take, bulk_store

  template <class T>
  void bulk_store(std::byte* to, TileAt tile, const Tile<T, tile_elements<T>()>& value) const {
    store<T>(to, HostAccess{}, tile, value);
  }

  // A tile lies in its place as it is. Only its first word is packets, which are stored last and
  // tell the taker that all of it is there: a core that polls words between its peer's stores to
  // the same cache lines makes both fetch these lines again and again. The whole place is emptied,
  // since another operation has first words elsewhere. Release, and acquire: of the rest of the
  // tile. That a place was emptied before it is filled again, the announcements say.
  static std::uint64_t load_packet(std::uint64_t& word) {
    return std::atomic_ref(word).load(std::memory_order_acquire);
  }
  static void store_packet(std::uint64_t& word, std::uint64_t packet) {
    std::atomic_ref(word).store(packet, std::memory_order_release);
  }

  // Of a tile of so many elements, in whole words: what follows its first word.
  template <class T>
  static constexpr std::size_t bytes_after_first(int count) {
    return (static_cast<std::size_t>(count) * sizeof(T) + 7) / 8 * 8 - 8;
  }

  // To the rank `step` + 1 places on.
  template <class T>
  void push(int step, PacketAt at, int count, const Words& words) const {
    using Code = PacketCode<T>;
    if (count == 0) return;
    std::uint64_t* const to = packets_at<T>(rank_after(step), launch_, work_.rank, at);
    std::uint64_t first, packets[Code::kPackets];
    std::memcpy(&first, words.at, 8);
    Code::encode(first, packets);
    copy_bytes(to + Code::kPackets, words.at + 8, bytes_after_first<T>(count));
    for (int p = Code::kPackets; p-- > 0;) store_packet(to[p], packets[p]);
  }

  // Waits for the tile of rank `source`, takes it and empties its place.
  template <class T>
  Outcome take(int source, PacketAt at, int count, Words& words) const {
    using Code = PacketCode<T>;
    if (count == 0) return Outcome::kDone;
    std::uint64_t* const from = packets_at<T>(work_.rank, launch_, source, at);
    const bool waits = !weakened(&ProtocolMutation::no_poll, at.part);
    if (waits && load_packet(from[0]) == 0 && wait_for_packet(source, from[0]) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    std::uint64_t packets[Code::kPackets];
    for (int p = 0; p < Code::kPackets; ++p) packets[p] = load_packet(from[p]);
    const std::uint64_t first = Code::decode(packets);
    const std::size_t rest = bytes_after_first<T>(count);
    std::memcpy(words.at, &first, 8);
    copy_bytes(words.at + 8, from + Code::kPackets, rest);
    if (weakened(&ProtocolMutation::no_clear, at.part)) return Outcome::kDone;
    for (int p = 0; p < Code::kPackets; ++p) store_packet(from[p], 0);
    std::memset(from + Code::kPackets, 0, rest);
    return Outcome::kDone;
  }

  bool weakened(unsigned ProtocolMutation::*mask, int index) const {
    return weakening_ != nullptr && ((weakening_->*mask) >> index & 1u) != 0;
  }
  void signal(Flag& flag, std::uint64_t epoch, std::memory_order order) const;
  static void store_epoch(Flag& flag, std::uint64_t epoch, bool release);
  // `flags`: what this rank's block has been told by every rank.
  Outcome wait_for(Flag* flags, int rank, std::uint64_t epoch, std::memory_order order) const;
  // `missing()`: for whom it waits, as bits.
  template <class Missing>
  Outcome wait_for(Flag& flag, int rank, std::uint64_t epoch, std::memory_order order,
                   Missing&& missing) const;
  Outcome wait_for_ring(Flag& flag, int rank, std::uint64_t epoch, bool acquire) const;
  void take_flags_back() const;
  Outcome wait_for_packet(int source, std::uint64_t& packet) const;
  void tell_credits(int peer, std::uint64_t taken) const;
  void post_turns();
  bool find_post(const Message& message, std::uint64_t chunk, std::byte*& place) const;
  bool is_ready(const Message& message, std::uint64_t chunk);
  Flag& awaited_flag(const Message& message, std::uint64_t chunk) const;
  Outcome move_found(const MessageMove& move) const;
  Outcome post_found(const Message& message, const MessageMove& move) const;
  // Polls until `come()`. Now and then `look()` tells for whom, and gives what to report in the
  // end.
  template <class Come, class Look>
  Outcome wait_until(int rank, std::uint64_t expected, Come&& come, Look&& look) const;
  bool is_other_operation(const Flag& seen, std::uint64_t epoch) const;
  std::uint64_t missing_ranks(Flag* flags, std::uint64_t epoch) const;
  void tell(std::uint64_t missing) const;
  Outcome fail(FailureReason reason, int missing, std::uint64_t expected, const Flag& seen,
               std::uint64_t waited_ns) const;
  std::uint32_t notices(std::memory_order order) const;
  bool poisoned() const;
  bool has_left(int rank) const;

  const ProtocolMutation* weakening_;
  std::uint64_t* waits_for_;
  std::uint64_t epoch_, first_epoch_;
  int barriers_ = 0;
  std::uint64_t sent_[2] = {}, taken_[2] = {};  // chunks around a ring, by direction
  std::uint64_t launch_ = 0;                    // which launch on the packet area this is
  bool open_ = false;                           // not where the rank is poisoned
};

}  // namespace tutti
