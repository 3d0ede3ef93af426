// Where the ranks' shards lie in symmetric memory, in the calls of one pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti {

// The same on all ranks.
struct ShardPlace {
  std::uint32_t segment = 0;  // its id
  std::size_t offset = 0;
  friend bool operator==(const ShardPlace&, const ShardPlace&) = default;
};

// The places that all ranks have compared. A rank cannot forget one when its memory is freed: ranks
// free it at different times. So places are forgotten by counts of calls, which all ranks have
// alike: the 65th place takes that of one at which the last 1024 calls did not read, if there is
// one. If fewer places than that are used in turn, each is compared at most once.
class ShardPlaces {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr std::uint64_t kCallsUntilForgotten = 1024;

  bool knows(const ShardPlace& place) const;
  // It is known, or can be added.
  bool admits(const ShardPlace& place) const;
  // Of a call of all ranks. Null: it copies its shard. The place is admitted.
  void count_call(const ShardPlace* place);

 private:
  struct Known {
    ShardPlace place;
    std::uint64_t call = 0;  // the latest one that read there
  };
  bool is_forgotten(const Known& known) const {
    return calls_ - known.call >= kCallsUntilForgotten;
  }

  std::uint64_t calls_ = 0;
  std::vector<Known> known_;  // the one that was read last comes last
};

}  // namespace tutti
