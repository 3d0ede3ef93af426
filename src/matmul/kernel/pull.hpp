// What a block that brings A does, step by step: which rows and columns of which shard. Host and
// device.
#pragma once

#include "matmul/kernel/gate.hpp"

namespace tutti {

// A puller's shared memory: so many steps are on their way at a time.
inline constexpr int kPullStages = 6;
inline constexpr int kPullStageBytes = static_cast<int>(kMostPulledRowBytes);
inline constexpr int kMostPullRows = 32;  // of a step: each thread of a warp copies one

// What pullers are told.
struct ArrivalPull {
  const std::byte* shard[kMostArrivalShards] = {};  // where each one's rows begin
  std::byte* to = nullptr;                          // A
  std::int64_t shard_pitch = 0, pitch = 0;          // bytes from row to row
  std::uint32_t* counters = nullptr;                // how many pullers have brought their parts
  ShardGroups groups;
  int pullers = 0;
  int columns = 0;  // of A
};

struct PullStep {
  int shard = 0, k_group = 0;
  int row = 0, rows = 0;  // of A; a part may have none
  bool last = false;      // of this puller's part of the shard's k-group
};

// A puller's steps: group after group of shards, in each k-group after k-group of all its shards.
// Of each it has a part of the rows, all parts about as large. At least two shards.
class PullWalk {
 public:
  TUTTI_ORDER_INLINE PullWalk(const ArrivalChunks& chunks, const ArrivalPull& pull, int puller)
      : chunks_(chunks), pull_(pull), puller_(puller) {
    const int fit = kPullStageBytes / (chunks.k_group * 2);
    rows_at_once_ = fit < kMostPullRows ? fit : kMostPullRows;
  }

  TUTTI_ORDER_INLINE bool next(PullStep& step) {
    if (ended_ && !next_part()) return false;
    const int left = end_ - row_;
    const int rows = left < rows_at_once_ ? left : rows_at_once_;
    ended_ = rows == left;
    step = {shard_, k_group_, row_, rows, ended_};
    row_ += rows;
    return true;
  }

 private:
  // Shards without rows and k-groups without columns have no parts.
  TUTTI_ORDER_INLINE bool next_part() {
    const ShardGroups& groups = pull_.groups;
    do {
      if (++position_ == groups.first(group_ + 1)) {
        ++k_group_;
        if (k_group_ == chunks_.k_groups || k_group_ * chunks_.k_group >= pull_.columns) {
          k_group_ = 0;
          ++group_;
        }
        if (group_ == groups.groups) return false;
        position_ = groups.first(group_);
      }
      shard_ = (chunks_.own + position_) % groups.shards;
    } while (shard_ * chunks_.shard_rows >= chunks_.m);
    const int begin = shard_ * chunks_.shard_rows, below = chunks_.m - begin;
    const std::int64_t rows = below < chunks_.shard_rows ? below : chunks_.shard_rows;
    row_ = begin + static_cast<int>(rows * puller_ / pull_.pullers);
    end_ = begin + static_cast<int>(rows * (puller_ + 1) / pull_.pullers);
    return true;
  }

  const ArrivalChunks& chunks_;
  const ArrivalPull& pull_;
  int puller_;
  int rows_at_once_ = 0;
  int group_ = 0, position_ = 0, k_group_ = 0;
  int shard_ = 0, row_ = 0, end_ = 0;
  bool ended_ = true;
};

}  // namespace tutti
