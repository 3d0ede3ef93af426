// What the host's teams have in common, whatever their memory is: which tiles are a block's, where
// the buffers lie, what is sent to whom in which order, and what a failure record says.
#pragma once

#include <cstring>

#include "device/host_messages.hpp"
#include "device/packets.hpp"
#include "device/token_sum.hpp"

namespace tutti {

// How a tile is reached. On the host there is one way; tiles are long, so that the loops over them
// vectorise, and one rank's elements are added at a time.
struct HostAccess {
  static constexpr bool kLoadsAhead = false;
  static constexpr bool kIsWhole = false;
};

// `Team`, which derives from it, moves one tile: store, load_from, store_to; push to a rank, and
// take what a rank has pushed.
template <class Team, std::size_t kBytes>
class HostTiles {
 public:
  static constexpr int kMaxRanks = tutti::kMaxRanks;
  static constexpr bool kHasMulticast = false;
  static constexpr bool kBlockIsThread = true;  // which is to copy runs, not tiles
  static constexpr std::size_t kTileBytes = kBytes;
  static constexpr int kTileParts = kTileBytes / 16;
  template <class T>
  static constexpr int tile_elements() {
    return static_cast<int>(kTileBytes / sizeof(T));
  }

  // A tile's bytes, as many as it has, padded to whole words of packets.
  struct Words {
    alignas(16) std::byte at[kTileBytes];
  };
  struct Column {
    Words at[kMaxRanks];
  };

  HostTiles(const KernelArgs& work, int block) : work_(work), block_(block) {}

  int ranks() const { return work_.ranks; }
  int others() const { return work_.ranks - 1; }
  int block() const { return block_; }

  Buffers<kMaxRanks> buffers(std::size_t = 0) const {
    Buffers<kMaxRanks> buffers;
    for (int r = 0; r < work_.ranks; ++r) {
      buffers.inputs.at[r] = work_.stage_input ? work_.staging.at[r] : work_.inputs.at[r];
      buffers.outputs.at[r] = work_.outputs.at[r];
    }
    return buffers;
  }

  template <class T, class F>
  void for_each_tile(Range range, F&& f) const {
    deal_tiles<T>(range, block_, work_.blocks, f);
  }

  template <class T, class F>
  void for_each_stored_tile(Range range, const std::byte*, F&& f) const {
    for_each_tile<T>(range, f);
  }

  template <class T>
  void copy_between(Range range, const std::byte* from, std::byte* to) const {
    for_each_tile<T>(range, [&](HostAccess access, TileAt tile) {
      team().template store<T>(to, access, tile, team().template load<T>(from, access, tile));
    });
  }

  template <class T>
  void copy_alone(Range range, const std::byte* from, std::byte* to) const {
    deal_tiles<T>(range, 0, 1, [&](HostAccess access, TileAt tile) {
      team().template store<T>(to, access, tile, team().template load<T>(from, access, tile));
    });
  }

  template <class T>
  static T load_scalar(const std::byte* from) {
    return *reinterpret_cast<const T*>(from);
  }

  // --- counts ---

  template <class Load, class IsRight>
  Outcome learn_counts(Load&& load, IsRight&& is_right) {
    for (int from = 0; from < work_.ranks; ++from) {
      for (int to = 0; to < work_.ranks; ++to) {
        const std::uint32_t count = load(from, to);
        counted_[from][to] = count;
        const CountVerdict verdict = is_right(from, to, count);
        if (!verdict.is_right) return team().refuse(from, count, verdict);
      }
    }
    return Outcome::kDone;
  }
  std::uint32_t counted(int from, int to) const { return counted_[from][to]; }

  // Of a chunk that is all this block's.
  template <class T, class Load, class Use>
  void for_each_of_chunk(std::size_t count, Load&& load, Use&& use) const {
    deal_tiles<T>(Range{0, count}, 0, 1,
                  [&](HostAccess access, TileAt tile) { use(access, tile, load(access, tile)); });
  }

  template <class T, class F>
  void bulk_store_all(const Pointers<kMaxRanks>& to, Range range, F&& f) {
    deal_tiles<T>(Range{0, range.count}, 0, 1, [&](HostAccess access, TileAt tile) {
      const auto value = f(access, tile);
      const TileAt at{range.first + tile.first, tile.count};
      for (int r = 0; r < work_.ranks; ++r) team().template bulk_store<T>(to.at[r], at, value);
    });
  }

  template <class T, class Use>
  Outcome bulk_fetch(const Pointers<kMaxRanks>& from, Range range, Use&& use) const {
    deal_tiles<T>(Range{0, range.count}, 0, 1, [&](HostAccess access, TileAt tile) {
      use(access, tile, [&](int rank) {
        const TileAt at{range.first + tile.first, tile.count};
        return team().template load<T>(from.at[rank], access, at);
      });
    });
    return Outcome::kDone;
  }

  template <class T, class Use>
  Outcome bulk_fetch_to(const std::byte*, const Pointers<kMaxRanks>& from, Range range,
                        Use&& use) const {
    return bulk_fetch<T>(from, range, use);
  }

  // --- messages: a lane is one thread, which sends and takes in turns ---

  int lane() const { return block_; }
  std::byte* slot_at_taker(const Message& message, std::uint64_t chunk) const {
    return work_.messages->slot(message.in_packets, message.peer, work_.rank, block_, chunk);
  }
  const std::byte* own_slot(const Message& message, std::uint64_t chunk) const {
    return work_.messages->slot(message.in_packets, work_.rank, message.peer, block_, chunk);
  }

  std::byte* output_at(Direction direction) const {
    return work_.outputs.at[direction == kForward ? 0 : work_.ranks - 2];
  }

  Slice first_slice() const { return static_cast<Slice>(block_); }

  template <class F>
  Outcome for_each_slice(Slice slices, F&& f) const {
    const auto stride = static_cast<Slice>(work_.blocks);
    for (Slice k = first_slice(); k < slices; k += stride) {
      if (f(k) != Outcome::kDone) return Outcome::kFailed;
    }
    return Outcome::kDone;
  }

  template <class T>
  Words load_from(const std::byte* from, TileAt tile) const {
    return team().template load_from<T>(from, HostAccess{}, tile);
  }
  template <class T>
  void store_to(std::byte* to, TileAt tile, const Words& words) const {
    team().template store_to<T>(to, HostAccess{}, tile, words);
  }

  // --- tokens: a block is one thread, which has all tiles of its tokens ---

  template <class T, class F>
  Outcome with_token_access(const KernelArgs&, F&& f) const {
    return f(HostAccess{});
  }
  Slice first_token() const { return static_cast<Slice>(block_); }
  Slice first_of_token() const { return 0; }
  Slice next_token(Slice token) const { return token + static_cast<Slice>(work_.blocks); }
  Slice next_of_token(Slice k) const { return k + 1; }
  template <class F>
  Outcome for_each_token(Slice tokens, F&& f) const {
    return for_each_slice(tokens, f);
  }
  template <class F>
  void for_each_of_token(Slice tiles, F&& f) const {
    for (Slice k = 0; k < tiles; ++k) f(k);
  }
  bool holds(Slice k) const { return k < kHostHeldTiles; }
  void hold(Slice k, const Words& words) { held_[0][k] = words; }
  template <class F>
  void hold_beside(Slice tiles, F&& load) {
    for (Slice k = 0; k < tiles && holds(k); ++k) held_[1][k] = load(k);
  }
  const Words& held(Slice k) const { return held_[0][k]; }
  const Words& held_beside(Slice k) const { return held_[1][k]; }
  template <class F>
  Outcome sum_of_token(Slice tiles, F&& f, float& sum) const {
    TokenSum all;
    for (Slice k = 0; k < tiles; ++k) {
      float parts[kTileParts];
      if (f(k, parts) != Outcome::kDone) return Outcome::kFailed;
      for (const float part : parts) all.add(part);
    }
    sum = all.total();
    return Outcome::kDone;
  }

  template <class Load, class Beside, class F>
  Outcome sum_of_loaded(Slice tiles, Load&& load, Beside&&, F&& f, float& sum) const {
    return sum_of_token(
        tiles,
        [&](Slice k, float(&parts)[kTileParts]) {
          f(k, load(k), parts);
          return Outcome::kDone;
        },
        sum);
  }
  template <class Load, class Beside, class F>
  void for_each_loaded(Slice tiles, Load&& load, Beside&& beside, F&& f) const {
    for (Slice k = 0; k < tiles; ++k) f(k, load(k), beside(k));
  }

  template <class T>
  Words load_tile(TileAt tile) const {
    return load_from<T>(work_.input, tile);
  }
  template <class T>
  void store_tile(TileAt tile, const Words& words) const {
    store_to<T>(work_.output, tile, words);
  }

  template <class T>
  bool is_whole_tile(const Pointers<kMaxRanks>& from, HostAccess, TileAt tile) const {
    std::uintptr_t bits = static_cast<std::uintptr_t>(tile.count) * sizeof(T);
    for (int r = 0; r < work_.ranks; ++r) {
      bits |= reinterpret_cast<std::uintptr_t>(from.at[r]) + tile.first * sizeof(T);
    }
    return bits % 16 == 0;
  }

  // `value`: what load() gives, or a Tile.
  template <class T, class Value>
  void store_all(const Pointers<kMaxRanks>& to, HostAccess access, TileAt tile,
                 const Value& value) const {
    for (int r = 0; r < work_.ranks; ++r) team().template store<T>(to.at[r], access, tile, value);
  }

  // To the others as store_all() does, but to this rank's output even if that is staged.
  template <class T, class Value>
  void store_own_apart(const Pointers<kMaxRanks>& to, HostAccess access, TileAt tile, TileAt own,
                       const Value& value) const {
    team().template store<T>(work_.output, access, own, value);
    for (int step = 0; step < others(); ++step) {
      team().template store<T>(to.at[step], access, tile, value);
    }
  }

  template <class T, class Shares>
  Column load_column(const Shares& shares, Slice slice) const {
    Column column;
    for (int step = 0; step < others(); ++step) {
      column.at[step] = team().template load_tile<T>(shares.tile(rank_after(step), slice));
    }
    return column;
  }
  template <class T, class Shares>
  void store_column(const Shares& shares, Slice slice, const Column& column) const {
    for (int r = 0; r < work_.ranks; ++r) {
      if (r != work_.rank) team().template store_tile<T>(shares.tile(r, slice), column.at[r]);
    }
  }
  void place_own(Column& column, const Words& own) const { column.at[work_.rank] = own; }

  template <class T>
  void push_all(PacketAt at, int count, const Words& words) const {
    for (int step = 0; step < others(); ++step) team().template push<T>(step, at, count, words);
  }
  template <class T, class Count>
  void push_column(PacketAt at, Count&& count, const Column& column) const {
    for (int step = 0; step < others(); ++step) {
      team().template push<T>(step, at, count(rank_after(step)), column.at[step]);
    }
  }
  template <class T>
  void push_to(int rank, PacketAt at, int count, const Words& words) const {
    const int step = (rank - work_.rank + work_.ranks - 1) % work_.ranks;
    team().template push<T>(step, at, count, words);
  }
  template <class T>
  Outcome poll_from(int source, PacketAt at, int count, Words& words) const {
    return team().template take<T>(source, at, count, words);
  }
  template <class T, class Count>
  Outcome poll(PacketAt at, Count&& count, Column& column) const {
    for (int r = 0; r < work_.ranks; ++r) {
      if (r == work_.rank) continue;
      const Outcome taken = team().template take<T>(r, at, count(r), column.at[r]);
      if (taken != Outcome::kDone) return Outcome::kFailed;
    }
    return Outcome::kDone;
  }

  template <class T, class Count>
  void push_some(PacketAt at, Count&& count, const Column& column) const {
    push_column<T>(at, count, column);
  }
  template <class T, class Count>
  Outcome poll_some(PacketAt at, Count&& count, Column& column) const {
    return poll<T>(at, count, column);
  }
  static Words word_of(std::uint64_t number) {
    Words words;
    std::memcpy(words.at, &number, sizeof number);
    return words;
  }
  static std::uint64_t number_of(const Words& words) {
    std::uint64_t number;
    std::memcpy(&number, words.at, sizeof number);
    return number;
  }
  bool is_last_slice() const { return block_ + 1 == work_.blocks; }

  template <class T>
  TileInPlace<T> part_of(const Column& column, int rank, int count) const {
    return {reinterpret_cast<const T*>(column.at[rank].at), count};
  }

  template <class T>
  static Tile<T, tile_elements<T>()> tile_of(const Words& words) {
    Tile<T, tile_elements<T>()> tile;
    std::memcpy(tile.at, words.at, sizeof words.at);
    return tile;
  }
  template <class T>
  static Words words_of(const Tile<T, tile_elements<T>()>& tile) {
    Words words;
    std::memcpy(words.at, tile.at, sizeof words.at);
    return words;
  }

 protected:
  // Packet memory of the rank `step` places on, and this rank's own.
  PacketMemory& packet_memory(int step) const {
    return *reinterpret_cast<PacketMemory*>(work_.packets.memory.at[step]);
  }
  PacketMemory& own_packet_memory() const { return packet_memory(work_.ranks - 1); }
  int rank_after(int step) const { return (work_.rank + 1 + step) % work_.ranks; }

  // The first word of a tile, in the slot of rank `source` at rank `owner`.
  template <class T>
  std::uint64_t* packets_at(int owner, std::uint64_t launch, int source, PacketAt at) const {
    const PacketArea& area = work_.packets;
    const auto slot = static_cast<std::size_t>(at.part) * others() + slot_of(source, owner);
    const int step = (owner - work_.rank + work_.ranks - 1) % work_.ranks;
    auto* const generation = reinterpret_cast<std::byte*>(&packet_memory(step) + 1) +
                             launch % kPacketGenerations * area.generation_bytes;
    return reinterpret_cast<std::uint64_t*>(generation + slot * area.slot_bytes +
                                            at.slice * kTileBytes * PacketCode<T>::kPackets);
  }

  ChannelMemory& channel(int rank) const {
    return *reinterpret_cast<ChannelMemory*>(work_.channels.at[rank]);
  }

  // Where this rank's chunks go, and where those come from that go the same way.
  int receiver(Direction direction) const {
    const int step = direction == kForward ? 1 : work_.ranks - 1;
    return (work_.rank + step) % work_.ranks;
  }
  int sender(Direction direction) const {
    return receiver(direction == kForward ? kReverse : kForward);
  }
  RingFlags& ring(int rank) const { return channel(rank).rings[block_]; }
  // What this rank tells its neighbours.
  template <class F>
  void for_each_ring_flag(F&& f) const {
    for (const Direction way : {kForward, kReverse}) f(ring(receiver(way)).chunks[way]);
    f(ring(sender(kForward)).credits);
  }
  std::byte* slot(int owner, Direction direction, std::uint64_t chunk) const {
    return work_.staging.at[owner] + work_.ring.offset(block_, direction, chunk);
  }

  // Flag::check of this operation at `epoch`, and of any.
  std::uint64_t check_word(std::uint64_t epoch) const { return check_word(work_.signature, epoch); }
  static std::uint64_t check_word(std::uint32_t signature, std::uint64_t epoch) {
    return std::uint64_t{signature} << 32 | static_cast<std::uint32_t>(epoch);
  }

  // All of the failure record but its state.
  void describe(FailureReason reason, int missing, std::uint64_t expected_epoch,
                const Flag& seen) const {
    FailureRecord& record = *work_.failure;
    record.sequence = work_.sequence;
    record.expected_epoch = expected_epoch;
    record.seen_epoch = seen.epoch;
    record.expected_signature = work_.signature;
    record.seen_signature = static_cast<std::uint32_t>(seen.check >> 32);
    record.waiting_rank = work_.rank;
    record.missing_rank = missing;
    record.block = block_;
    record.reason = static_cast<std::uint32_t>(reason);
  }

  const KernelArgs& work_;
  int block_;
  MessageBook book_;

 private:
  static constexpr Slice kHostHeldTiles = 2;  // few: most tokens have more

  // Tile `block` of the range, and every `blocks`-th behind it.
  template <class T, class F>
  static void deal_tiles(Range range, int block, int blocks, F&& f) {
    constexpr std::size_t kStep = tile_elements<T>();
    const std::size_t stride = kStep * static_cast<std::size_t>(blocks);
    for (std::size_t at = kStep * block; at < range.count; at += stride) {
      const std::size_t left = range.count - at;
      f(HostAccess{}, TileAt{range.first + at, static_cast<int>(left < kStep ? left : kStep)});
    }
  }

  const Team& team() const { return static_cast<const Team&>(*this); }
  Team& team() { return static_cast<Team&>(*this); }

  Words held_[2][kHostHeldTiles];
  std::uint32_t counted_[tutti::kMaxRanks][tutti::kMaxRanks];
};

}  // namespace tutti
