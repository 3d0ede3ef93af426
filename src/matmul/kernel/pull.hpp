// What a warp that brings A does, part by part: which rows and columns of which shard. Host and
// device.
#pragma once

#include "matmul/kernel/gate.hpp"
#include "matmul/kernel/kernels.hpp"

namespace tutti {

// A puller's warps, each of which has its own parts: while one waits for loads or for its count,
// the loads of the others are on their way.
inline constexpr int kPullWarps = kOwnMatmulThreads / 32;

// What pullers are told.
struct ArrivalPull {
  const std::byte* shard[kMostArrivalShards] = {};  // where each one's rows begin
  std::byte* to = nullptr;                          // A
  std::int64_t shard_pitch = 0, pitch = 0;          // bytes from row to row
  std::uint32_t* counters = nullptr;                // of rows that have been brought
  ShardGroups groups;
  int pullers = 0;
  int columns = 0;  // of A
};

// One or more rows, in the columns of one k-group.
struct PullPart {
  int shard = 0, k_group = 0;
  int row = 0, rows = 0;  // of A
  int shard_rows = 0;     // that the shard has
};

// A warp's parts: group after group of shards, and in each k-group after k-group. The rows of all
// shards of a group are shared out among all warps as if they lay one after another: a warp has
// few parts, so that it counts rarely. At least two shards.
class PullWalk {
 public:
  TUTTI_ORDER_INLINE PullWalk(const ArrivalChunks& chunks, const ArrivalPull& pull, int warp)
      : chunks_(chunks), pull_(pull), warp_(warp) {}

  TUTTI_ORDER_INLINE bool next(PullPart& part) {
    while (at_ == end_) {
      if (!next_k_group()) return false;
    }
    int rows = rows_at(position_);
    while (at_ >= first_ + rows) {
      first_ += rows;
      rows = rows_at(++position_);
    }
    const int shard = shard_at(position_), end = first_ + rows < end_ ? first_ + rows : end_;
    part = {shard, k_group_, shard * chunks_.shard_rows + at_ - first_, end - at_, rows};
    at_ = end;
    return true;
  }

 private:
  TUTTI_ORDER_INLINE int shard_at(int position) const {
    const int shard = chunks_.own + position;
    return shard < pull_.groups.shards ? shard : shard - pull_.groups.shards;
  }
  TUTTI_ORDER_INLINE int rows_at(int position) const {
    const int left = chunks_.m - shard_at(position) * chunks_.shard_rows;
    return left < 0 ? 0 : left < chunks_.shard_rows ? left : chunks_.shard_rows;
  }

  // K-groups without columns have no parts.
  TUTTI_ORDER_INLINE bool next_k_group() {
    const ShardGroups& groups = pull_.groups;
    ++k_group_;
    if (group_ < 0 || k_group_ == chunks_.k_groups || k_group_ * chunks_.k_group >= pull_.columns) {
      if (++group_ == groups.groups) return false;
      k_group_ = 0;
      std::int64_t rows = 0;
      for (int at = groups.first(group_); at < groups.first(group_ + 1); ++at) rows += rows_at(at);
      const int warps = pull_.pullers * kPullWarps;
      begin_ = static_cast<int>(rows * warp_ / warps);
      end_ = static_cast<int>(rows * (warp_ + 1) / warps);
    }
    position_ = groups.first(group_);
    first_ = 0;
    at_ = begin_;
    return true;
  }

  const ArrivalChunks& chunks_;
  const ArrivalPull& pull_;
  int warp_;
  int group_ = -1, k_group_ = 0;
  int begin_ = 0, end_ = 0;       // the warp's rows, among those of the group
  int at_ = 0;                    // the next one
  int position_ = 0, first_ = 0;  // a shard's, and its first row among those of the group
};

}  // namespace tutti
