// The verbs in the simulation: a block is a fiber, memory is weak, and what an arrival publishes
// counts as on GPUs. See weak_memory.hpp for what is found, simulation.hpp for how it runs.
#pragma once

#include <cstring>

#include "transport/host_simulated/mutation.hpp"
#include "transport/host_simulated/simulation.hpp"
#include "transport/host_tiles.hpp"

namespace tutti {

// Small tiles: small messages have many.
class HostTeam : public HostTiles<16> {
 public:
  struct Environment {
    simulated::Simulation& simulation;
    const simulated::Mutation* mutation = nullptr;
    simulated::Trace* trace = nullptr;  // filled by what this block does
  };

  HostTeam(const Work& work, int block, const Environment& environment);

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
  void store_all(const Pointers<kMaxRanks>& to, HostAccess access, TileAt tile,
                 const Tile<T, tile_elements<T>()>& value) const {
    for (int r = 0; r < work_.ranks; ++r) store<T>(to.at[r], access, tile, value);
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

  void publish_scalar(double scalar);
  double scalar_of(int rank) const;

  void arrive(Publish publish);
  Outcome wait();
  Outcome barrier(Publish publish) {
    arrive(publish);
    return wait();
  }
  Outcome finish();

 private:
  int fiber() const { return environment_.simulation.fiber_of(work_.rank, block_); }
  simulated::WeakMemory& memory() const { return environment_.simulation.memory(); }
  void load_bytes(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void store_bytes(std::byte* to, const std::byte* from, std::size_t bytes) const;

  bool left_out(simulated::Mutation::Kind kind, int at) const;
  bool left_out(simulated::Mutation::Kind kind, int at, int rank) const;
  Publish weakened(Publish publish, int at) const;
  Outcome wait_for(int rank, int barrier) const;
  void take_flags_back() const;
  Outcome fail(FailureReason reason, int missing, const Flag& seen) const;

  Environment environment_;
  std::uint64_t epoch_;
  int barriers_ = 0, copies_in_ = 0, copies_out_ = 0, scalars_ = 0;
  bool ended_;  // poisoned before it began
};

}  // namespace tutti
