// What the host's teams have in common, whatever their memory is: which tiles are a block's, where
// the buffers lie, and what a failure record says.
#pragma once

#include "transport/team.hpp"

namespace tutti {

// How a tile is reached. On the host there is one way; tiles are long, so that the loops over them
// vectorise, and one rank's elements are added at a time.
struct HostAccess {
  static constexpr bool kLoadsAhead = false;
};

template <std::size_t kBytes>
class HostTiles {
 public:
  static constexpr int kMaxRanks = tutti::kMaxRanks;
  static constexpr std::size_t kTileBytes = kBytes;
  template <class T>
  static constexpr int tile_elements() {
    return static_cast<int>(kTileBytes / sizeof(T));
  }

  HostTiles(const Work& work, int block) : work_(work), block_(block) {}

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

 protected:
  ChannelMemory& channel(int rank) const {
    return *reinterpret_cast<ChannelMemory*>(work_.channels.at[rank]);
  }

  // Flag::check of this operation at `epoch`.
  std::uint64_t check_word(std::uint64_t epoch) const {
    return std::uint64_t{work_.signature} << 32 | static_cast<std::uint32_t>(epoch);
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

  const Work& work_;
  int block_;
};

}  // namespace tutti
