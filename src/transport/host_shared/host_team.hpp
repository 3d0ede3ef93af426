// The verbs on a machine without a GPU: ranks are threads or processes over shared memory, a block
// is one thread. Waits spin briefly, then yield, so that many ranks make progress on few cores.
#pragma once

#include <atomic>
#include <cstring>

#include "transport/host_tiles.hpp"

namespace tutti {

// What a test may take away from the protocol, to see that its absence is found. Barriers are
// numbered from 0 in the order in which one operation of one block passes them.
struct Weakening {
  unsigned skip_barrier = 0;  // bit k: barrier k is left out
  unsigned no_release = 0;    // bit k: barrier k signals without release
  unsigned no_acquire = 0;    // bit k: barrier k waits without acquire
  void (*before_barrier)(int rank, int barrier) = nullptr;  // for delays
};

class HostTeam : public HostTiles<1024> {
 public:
  // `waits_for`, if any, is a word for whoever looks at this rank from outside: while a wait is
  // long enough to yield, bit r says that rank r has not come. It stays as it is when the wait
  // fails.
  HostTeam(const Work& work, int block, const Weakening* weakening = nullptr,
           std::uint64_t* waits_for = nullptr)
      : HostTiles(work, block),
        weakening_(weakening),
        waits_for_(waits_for),
        epoch_(work.epochs[block]) {}

  template <class T>
  TileInPlace<T> load(const std::byte* from, HostAccess, TileAt tile) const {
    return {reinterpret_cast<const T*>(from) + tile.first, tile.count};
  }

  template <class T>
  void store(std::byte* to, HostAccess, TileAt tile,
             const Tile<T, tile_elements<T>()>& value) const {
    std::memcpy(to + tile.first * sizeof(T), value.at, tile.count * sizeof(T));
  }

  template <class T>
  void store_all(const Pointers<kMaxRanks>& to, HostAccess access, TileAt tile,
                 const Tile<T, tile_elements<T>()>& value) const {
    for (int r = 0; r < work_.ranks; ++r) store<T>(to.at[r], access, tile, value);
  }

  template <class T>
  void copy_in(Range range, std::size_t origin) const {
    std::byte* staging = work_.staging.at[work_.rank];
    for_each_tile<T>(range, [&](HostAccess, TileAt tile) {
      std::memcpy(staging + (tile.first - origin) * sizeof(T), work_.input + tile.first * sizeof(T),
                  tile.count * sizeof(T));
    });
  }

  template <class T>
  void copy_out(Range range, std::size_t origin) const {
    const std::byte* staging = work_.staging.at[work_.rank];
    for_each_tile<T>(range, [&](HostAccess, TileAt tile) {
      std::memcpy(work_.output + tile.first * sizeof(T),
                  staging + (tile.first - origin) * sizeof(T), tile.count * sizeof(T));
    });
  }

  void publish_scalar(double scalar) const { channel(work_.rank).scalars[block_] = scalar; }
  double scalar_of(int rank) const { return channel(rank).scalars[block_]; }

  void arrive(Publish);  // always releases: the language has no weaker way
  Outcome wait();
  Outcome barrier(Publish publish) {
    arrive(publish);
    return wait();
  }
  Outcome finish();

 private:
  bool weakened(unsigned Weakening::*mask, int barrier) const {
    return weakening_ != nullptr && ((weakening_->*mask) >> barrier & 1u) != 0;
  }
  void signal(int rank, std::memory_order order) const;
  Outcome wait_for(int rank, std::memory_order order) const;
  void take_flags_back() const;
  std::uint64_t missing_ranks() const;
  void tell(std::uint64_t missing) const;
  Outcome fail(FailureReason reason, int missing, const Flag& seen, std::uint64_t waited_ns) const;
  bool poisoned() const;

  const Weakening* weakening_;
  std::uint64_t* waits_for_;
  std::uint64_t epoch_;
  int barriers_ = 0;
};

}  // namespace tutti
