// When rows of A that arrive in chunks may be read: which flags they need, and how one thread waits
// for them. Host and device: what differs between them is in `Words`, which says how words in
// memory are read and written, and what time it is.
//
// A chunk's flag holds the epoch of the last call whose data is there. It is open once
// int32_t(flag - epoch) >= 0, so that epochs may wrap.
#pragma once

#include <cstdint>

#include "matmul/gated.hpp"
#include "matmul/kernel/work.hpp"

namespace tutti {

// How A is cut, as ArrivalPlan says.
struct ArrivalChunks {
  int m = 0;
  int shard_rows = 0, chunk_rows = 0;  // of full ones, at least 1
  int chunks = 1, own = 0;
  int k_groups = 1;
  int k_group = 0;  // columns of a full one

  struct Chunk {
    int flag;  // of its first k-group; -1: rows of the own shard, which need none
    int end;   // the first row that is not the chunk's (the own shard's)
  };
  // What a row below m belongs to.
  TUTTI_ORDER_INLINE Chunk at(int row) const {
    const int shard = row / shard_rows, within = row - shard * shard_rows;
    int left = shard_rows - within;
    int flag = -1;
    if (shard != own) {
      const int chunk = within / chunk_rows, next = chunk_rows - (within - chunk * chunk_rows);
      left = next < left ? next : left;
      flag = (shard * chunks + chunk) * k_groups;
    }
    return {flag, left < m - row ? row + left : m};
  }
};

// What waits need besides.
struct ArrivalWaits {
  std::uint32_t* flags = nullptr;
  const std::uint32_t* abort = nullptr;  // or null
  GateFailure* failure = nullptr;
  std::uint64_t timeout_ns = 0;
  std::uint32_t epoch = 0;

  TUTTI_ORDER_INLINE bool opens(std::uint32_t flag) const {
    return static_cast<std::int32_t>(flag - epoch) >= 0;
  }
};

// What the thread that waits remembers.
class GateState {
 public:
  bool failed = false;  // nothing waits any more

  TUTTI_ORDER_INLINE bool is_open(int flag) const {
    return ((flag < 64 ? low_ : high_) >> (flag & 63) & 1) != 0;
  }
  TUTTI_ORDER_INLINE void open(int flag) {
    const std::uint64_t bit = std::uint64_t{1} << (flag & 63);
    low_ |= flag < 64 ? bit : 0;
    high_ |= flag < 64 ? 0 : bit;
  }

 private:
  std::uint64_t low_ = 0, high_ = 0;  // a bit per flag
};
static_assert(kMostArrivalFlags <= 128);

// The thread that gives up first says why. The others have read the same words, or soon will.
template <class Words>
TUTTI_ORDER_INLINE void report_wait(Words& words, const ArrivalWaits& waits, int flag,
                                    std::uint32_t seen, std::uint32_t reason) {
  GateFailure& failure = *waits.failure;
  if (!words.claim(&failure.claimed)) return;
  words.store(reinterpret_cast<std::uint32_t*>(&failure.chunk), static_cast<std::uint32_t>(flag));
  words.store(&failure.epoch, waits.epoch);
  words.store(&failure.seen, seen);
  words.release(&failure.failed, reason);
}

// False: the deadline has passed, or somebody else has failed. The record of the failure and the
// word of the group may be host memory, across PCIe: they are read rarely.
template <class Words>
TUTTI_ORDER_INLINE bool poll_flag(Words& words, const ArrivalWaits& waits, int flag) {
  constexpr unsigned kPollsPerLook = 256;
  constexpr std::uint32_t kDeadline = 1, kGroup = 2;
  const std::uint64_t begin = words.now();
  for (unsigned polls = 1;; ++polls) {
    const std::uint32_t seen = words.relaxed(waits.flags + flag);
    if (waits.opens(seen)) return true;
    if (words.now() - begin > waits.timeout_ns) {
      report_wait(words, waits, flag, seen, kDeadline);
      return false;
    }
    if (polls % kPollsPerLook == 0) {
      if (words.relaxed(&waits.failure->failed) != 0) return false;
      if (waits.abort != nullptr && words.relaxed(waits.abort) != 0) {
        report_wait(words, waits, flag, seen, kGroup);
        return false;
      }
    }
    words.pause();
  }
}

// The first look acquires: most chunks are there by then, and this is the only access. Who has to
// poll does so without order, and acquires once at the end.
template <class Words>
TUTTI_ORDER_INLINE bool wait_for_chunk(Words& words, const ArrivalWaits& waits, int flag) {
  if (!waits.opens(words.acquire(waits.flags + flag))) {
    if (!poll_flag(words, waits, flag)) return false;
    words.acquire(waits.flags + flag);
  }
  return true;
}

// Until this k-group of all chunks that have some of these rows is open, unless a wait fails.
template <class Words, class Chunks>
TUTTI_ORDER_INLINE void wait_for_rows(Words& words, const Chunks& chunks, const ArrivalWaits& waits,
                                      GateState& state, GroupOfRows rows) {
  for (int row = rows.begin; row < rows.end && !state.failed;) {
    const auto chunk = chunks.at(row);
    const int flag = chunk.flag + rows.k_group;
    if (chunk.flag >= 0 && !state.is_open(flag)) {
      state.failed = !wait_for_chunk(words, waits, flag);
      state.open(flag);
    }
    row = chunk.end;
  }
}

}  // namespace tutti
