// all_gather_matmul/fused in host memory: each rank is a thread or a process that puts its rows
// into the memory of all others, and multiplies the rows of others as they come. Chunks, flags,
// waits and the order of rows are those of the GPU's kernel (matmul/gated.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fused/arriving.hpp"
#include "fused/host_patience.hpp"
#include "fused/host_pipeline.hpp"
#include "matmul/gated.hpp"

namespace tutti::fused {

// Rows of A are counted by int.
inline constexpr std::size_t kMostFusedRows = std::size_t{1} << 30;

// Equal on every rank.
struct FusedRows {
  std::size_t m = 0, row_bytes = 0;  // of A; at most kMostFusedRows
  int ranks = 1;                     // at most kMostArrivalShards
};

// In how many chunks a shard is put. Each has rows for one multiplication of the host's matmul, as
// long as there are flags for them.
int host_chunks_of_shard(const FusedRows& rows);

// The gate of tiles that have all columns. The own shard is read from where the caller has it.
ArrivalGate arriving_gate(const ArrivalPlan& plan, std::size_t m, int tile_rows);

// What is the same in all calls of a rank.
class HostFused {
 public:
  HostFused(const FusedRows& rows, int rank);

  // Of each rank, in memory that all ranks address: flags, then the gathered A.
  std::size_t memory_bytes() const { return a_offset_ + rows_.m * rows_.row_bytes; }

  struct Call {
    std::vector<std::byte*> memory = {};  // by rank
    std::uint32_t epoch = 0;  // that of the call before, + 1; all flags of the first call hold 0
    const std::byte* shard = nullptr;
    std::byte* gathered = nullptr;  // null: it is no output
    const HostMultiply& multiply;
    const HostPatience& patience;
  };
  // Errors: those of HostWaiting::failure(), which name the rank, the chunk and the epoch. Then the
  // ranks' flags no longer agree, and there must be no other call.
  Status run(const Call& call) const;

 private:
  FusedRows rows_;
  ArrivalGate gate_;
  int tile_rows_ = 1;
  std::size_t ended_offset_ = 0, a_offset_ = 0;  // in the memory, which begins with the flags
};

}  // namespace tutti::fused
