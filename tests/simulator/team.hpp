// The verbs in the simulation: a block is a fiber, memory is weak, and what an arrival publishes
// counts as on GPUs. See weak_memory.hpp for what is found, simulation.hpp for how it runs.
#pragma once

#include <algorithm>
#include <cstring>

#include "device/host_tiles.hpp"
#include "simulator/mutation.hpp"
#include "simulator/simulation.hpp"

namespace tutti {

// Small tiles: small messages have many.
class SimulatedTeam : public HostTiles<SimulatedTeam, 16> {
 public:
  static constexpr bool kFloatSumsOnly = true;  // see algorithms/instantiate.hpp
  static constexpr bool kCopiesLate = true;     // those of copy engines, now and then

  struct Environment {
    simulated::Simulation& simulation;
    const simulated::Mutation* mutation = nullptr;
    simulated::Trace* trace = nullptr;  // filled by what this block does
  };

  SimulatedTeam(const KernelArgs& work, int block, const Environment& environment);

  template <class T>
  Tile<T, tile_elements<T>()> load(const std::byte* from, HostAccess, TileAt tile) const {
    Tile<T, tile_elements<T>()> value;
    std::memset(static_cast<void*>(value.at), 0, sizeof value.at);
    load_bytes(reinterpret_cast<std::byte*>(value.at), from + tile.first * sizeof(T),
               tile.count * sizeof(T));
    return value;
  }

  template <class T>
  void store(std::byte* to, HostAccess, TileAt tile,
             const Tile<T, tile_elements<T>()>& value) const {
    store_bytes(to + tile.first * sizeof(T), reinterpret_cast<const std::byte*>(value.at),
                tile.count * sizeof(T));
  }

  template <class T>
  void copy_in(Range range, std::size_t origin) {
    if (left_out(simulated::Mutation::Kind::kNoCopyIn, copies_in_++)) return;
    for_each_tile<T>(range, [&](HostAccess access, TileAt tile) {
      const auto value = load<T>(work_.input, access, tile);
      store<T>(work_.staging.at[work_.rank], access, {tile.first - origin, tile.count}, value);
    });
  }

  template <class T>
  void copy_out(Range range, std::size_t origin) {
    if (left_out(simulated::Mutation::Kind::kNoCopyOut, copies_out_++)) return;
    for_each_tile<T>(range, [&](HostAccess access, TileAt tile) {
      const auto value =
          load<T>(work_.staging.at[work_.rank], access, {tile.first - origin, tile.count});
      store<T>(work_.output, access, tile, value);
    });
  }

  void publish_scalar(ScalarBits scalar);
  ScalarBits scalar_of(int rank) const;
  template <class F>
  void publish_counts(F&& count) {
    if (ended_ || left_out(simulated::Mutation::Kind::kNoCounts, counts_++)) return;
    for (int to = 0; to < work_.ranks; ++to) publish_count(to, count(to));
  }
  std::uint32_t published(int from, int to) const;
  Outcome refuse(int rank, std::uint64_t count, const CountVerdict& verdict) const {
    return fail(verdict.why, rank, verdict.right, Flag{count, 0});
  }

  void arrive(Publish publish);
  Outcome wait();
  Outcome barrier(Publish publish) {
    arrive(publish);
    return wait();
  }
  Outcome finish();

  // As late as may be: see weak_memory.hpp. What is no vector of 16 bytes is stored.
  template <class T>
  void bulk_copy(std::byte* to, const std::byte* from, std::size_t count) {
    const auto bits = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
    constexpr std::size_t kStep = tile_elements<T>();
    const std::size_t whole = bits % 16 == 0 ? count / kStep * kStep : 0;
    copy_bytes(to, from, whole * sizeof(T));
    for (std::size_t at = whole; at < count; at += kStep) {
      const TileAt tile{at, static_cast<int>(std::min(kStep, count - at))};
      store_to<T>(to, tile, load_from<T>(from, tile));
    }
  }
  Outcome bulk_wait();

  // host_packets.cpp. A fiber's kernel begins when the one before it has ended.
  void launch_wait() const {}
  void launch_trigger() const {}
  void ask_launch();
  Outcome open_packets();
  void announce();
  Outcome close_packets();

  // host_messages.cpp
  void open_messages(const Messages& messages);
  Outcome next_move(MessageMove& move);
  void copy_chunk(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void push_marked(std::byte* to, const std::byte* from, std::size_t bytes,
                   std::uint32_t mark) const;
  Outcome take_marked(std::byte* to, const std::byte* from, std::size_t bytes,
                      MarkedFrom source) const;
  Outcome pass(const MessageMove& move, Outcome carried);
  Outcome close_messages() const;

  // host_ring.cpp
  void open_ring(std::size_t) const {}
  Outcome slot_to(Direction direction, std::byte*& at) const;
  Outcome slot_from(Direction direction, std::byte*& at) const;
  Outcome pass(unsigned moves);

  using HostTiles::load_from, HostTiles::store_to;
  template <class T>
  Words load_from(const std::byte* from, HostAccess, TileAt tile) const {
    Words words{};
    load_bytes(words.at, from + tile.first * sizeof(T), tile.count * sizeof(T));
    return words;
  }
  template <class T>
  void store_to(std::byte* to, HostAccess, TileAt tile, const Words& words) const {
    store_bytes(to + tile.first * sizeof(T), words.at, tile.count * sizeof(T));
  }

 private:
  friend HostTiles;  // push, take, bulk_store

  template <class T>
  void bulk_store(std::byte* to, TileAt tile, const Tile<T, tile_elements<T>()>& value) {
    const auto* const from = reinterpret_cast<const std::byte*>(value.at);
    std::byte* const at = to + tile.first * sizeof(T);
    const std::size_t bytes = tile.count * sizeof(T);
    const bool whole = (reinterpret_cast<std::uintptr_t>(at) | bytes) % 16 == 0;
    whole ? send_bytes(at, from, bytes) : store_bytes(at, from, bytes);
  }

  // That a tile of so many elements takes.
  template <class T>
  static constexpr std::size_t packets_of(int count) {
    return (static_cast<std::size_t>(count) * sizeof(T) + 7) / 8 * PacketCode<T>::kPackets;
  }

  // To the rank `step` + 1 places on.
  template <class T>
  void push(int step, PacketAt at, int count, const Words& words) const {
    using Code = PacketCode<T>;
    note_part(at.part);
    if (left_out(simulated::Mutation::Kind::kNoPush, at.part, rank_after(step))) return;
    std::uint64_t* const to = packets_at<T>(rank_after(step), generation_, work_.rank, at);
    for (std::size_t w = 0; w < packets_of<T>(count); w += Code::kPackets) {
      std::uint64_t data, packets[Code::kPackets];
      std::memcpy(&data, words.at + w / Code::kPackets * 8, 8);
      Code::encode(data, packets);
      if (~data == 0 && left_out(simulated::Mutation::Kind::kEmptySent, 0)) packets[0] = 0;
      for (int p = 0; p < Code::kPackets; ++p) send_packet(to + w + p, packets[p]);
    }
  }

  // Waits for the tile of rank `source`, takes it and empties its place.
  template <class T>
  Outcome take(int source, PacketAt at, int count, Words& words) const {
    using Code = PacketCode<T>;
    note_part(at.part);
    std::uint64_t* const from = packets_at<T>(work_.rank, generation_, source, at);
    const std::size_t all = packets_of<T>(count);
    for (std::size_t w = 0; w < all; w += Code::kPackets) {
      std::uint64_t packets[Code::kPackets];
      for (int p = 0; p < Code::kPackets; ++p) {
        const bool last = w + p + 1 == all;
        if (take_packet(source, from + w + p, {at.part, last}, packets[p]) != Outcome::kDone) {
          return Outcome::kFailed;
        }
      }
      const std::uint64_t data = Code::decode(packets);
      std::memcpy(words.at + w / Code::kPackets * 8, &data, 8);
    }
    return Outcome::kDone;
  }

  // Which packet, for what a test takes away.
  struct Place {
    int part;
    bool is_last;
  };
  void publish_count(int to, std::uint32_t count);
  void note_part(int part) const;
  void send_packet(std::uint64_t* to, std::uint64_t packet) const;
  Outcome take_packet(int source, std::uint64_t* from, Place place, std::uint64_t& packet) const;
  Outcome wait_for_packet(int source, const std::uint64_t* packet) const;
  Outcome wait_for_announcement(int rank) const;
  int fiber() const { return environment_.simulation.fiber_of(work_.rank, block_); }
  simulated::WeakMemory& memory() const { return environment_.simulation.memory(); }
  void load_bytes(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void store_bytes(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes);  // in bulk
  void send_bytes(std::byte* to, const std::byte* from, std::size_t bytes);  // likewise

  bool left_out(simulated::Mutation::Kind kind, int at) const;
  bool left_out(simulated::Mutation::Kind kind, int at, int rank) const;
  Publish weakened(Publish publish, int at) const;
  struct Wait {
    const Flag* flag;
    int rank;  // whose store it is
    std::uint64_t epoch;
    std::uint64_t enough = 0;  // what the wait is content with; 0: the epoch
    bool acquires = true;
  };
  Outcome wait_for(const Wait& wait) const;
  void tell(Flag& flag, std::uint64_t epoch) const;
  void note_pass(unsigned moves) const;
  void tell_taken(int peer, std::uint64_t taken) const;
  const Flag* awaited_flag(const Message& message, std::uint64_t chunk) const;
  void post_turns();
  bool find_post(const Message& message, std::uint64_t chunk, std::byte*& place) const;
  bool is_ready(const Message& message, std::uint64_t chunk);
  void take_flags_back() const;
  Outcome fail(FailureReason reason, int missing, std::uint64_t expected, const Flag& seen) const;

  Environment environment_;
  std::uint64_t epoch_;
  std::uint64_t launch_ = 0;
  std::uint64_t generation_ = 0;  // the launch, as far as it chooses the slots
  int barriers_ = 0, copies_in_ = 0, copies_out_ = 0, scalars_ = 0, counts_ = 0, bulk_waits_ = 0;
  std::uint64_t sent_[2] = {}, taken_[2] = {};  // chunks, by direction
  bool ended_;                                  // poisoned before it began
  bool copies_in_bulk_ = false;
};

}  // namespace tutti
