// The verbs in the simulation: a block is a fiber, memory is weak, and what an arrival publishes
// counts as on GPUs. See weak_memory.hpp for what is found, simulation.hpp for how it runs.
#pragma once

#include <cstring>

#include "transport/host_simulated/mutation.hpp"
#include "transport/host_simulated/simulation.hpp"
#include "transport/team.hpp"

namespace tutti {

struct HostAccess {
  static constexpr bool kLoadsAhead = false;
};

class HostTeam {
 public:
  static constexpr int kMaxRanks = tutti::kMaxRanks;
  static constexpr std::size_t kTileBytes = 16;  // small messages have many tiles
  template <class T>
  static constexpr int tile_elements() {
    return static_cast<int>(kTileBytes / sizeof(T));
  }

  struct Environment {
    simulated::Simulation& simulation;
    const simulated::Mutation* mutation = nullptr;
    simulated::Trace* trace = nullptr;  // filled by what this block does
  };

  HostTeam(const Work& work, int block, const Environment& environment);

  int ranks() const { return work_.ranks; }

  Buffers<kMaxRanks> buffers() const {
    Buffers<kMaxRanks> buffers;
    for (int r = 0; r < work_.ranks; ++r) {
      buffers.inputs.at[r] = work_.stage_input ? work_.staging.at[r] : work_.inputs.at[r];
      buffers.outputs.at[r] = work_.outputs.at[r];
    }
    return buffers;
  }

  template <class T, class F>
  void for_each_tile(Range range, F&& f) const {
    constexpr std::size_t kStep = tile_elements<T>();
    const std::size_t stride = kStep * static_cast<std::size_t>(work_.blocks);
    for (std::size_t at = kStep * block_; at < range.count; at += stride) {
      const std::size_t left = range.count - at;
      f(HostAccess{}, TileAt{range.first + at, static_cast<int>(left < kStep ? left : kStep)});
    }
  }

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
  ChannelMemory& channel(int rank) const {
    return *reinterpret_cast<ChannelMemory*>(work_.channels.at[rank]);
  }
  int fiber() const { return environment_.simulation.fiber_of(work_.rank, block_); }
  simulated::WeakMemory& memory() const { return environment_.simulation.memory(); }
  void load_bytes(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void store_bytes(std::byte* to, const std::byte* from, std::size_t bytes) const;

  bool left_out(simulated::Mutation::Kind kind, int at) const;
  bool left_out(simulated::Mutation::Kind kind, int at, int rank) const;
  Publish weakened(Publish publish, int at) const;
  Outcome wait_for(int rank, int barrier) const;
  Outcome fail(FailureReason reason, int missing, const Flag& seen) const;

  const Work& work_;
  int block_;
  Environment environment_;
  std::uint64_t epoch_;
  int barriers_ = 0, copies_in_ = 0, copies_out_ = 0, scalars_ = 0;
  bool ended_;  // poisoned before it began
};

}  // namespace tutti
