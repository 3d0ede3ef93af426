// When the chunks of a gathered A arrive at one rank: measured, or modelled. Pure values, kept as
// JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matmul/gated.hpp"
#include "matmul/kernel/order.hpp"

namespace tutti {

inline constexpr std::uint64_t kMostArrivalNs = 10'000'000'000;

// Rows first .. last - 1 of A.
struct ChunkRows {
  std::size_t first = 0, last = 0;
  std::size_t count() const { return last - first; }
  friend bool operator==(const ChunkRows&, const ChunkRows&) = default;
};
// Of the chunk with this flag, in an A of `m` rows; the last chunks of a shard may be empty.
ChunkRows rows_of_chunk(const ArrivalPlan& plan, std::size_t m, int flag);
// The flag of the first k-group of the chunk that has this row.
int chunk_of_row(const ArrivalPlan& plan, std::size_t m, std::size_t row);
// How the shards but the own one are grouped.
ShardGroups groups_of(const ArrivalPlan& plan);
// kInvalidArgument: shards, groups, flags, the order or the own shard are out of range.
Status check_arrival_plan(const ArrivalPlan& plan);

// What has one flag: a chunk's k-group.
struct ArrivedChunk {
  int chunk = 0;   // the flag's index
  int source = 0;  // the shard that it is of
  std::uint64_t bytes = 0;
  std::uint64_t ns = 0;  // since the gather began, when the flag was seen
  friend bool operator==(const ArrivedChunk&, const ArrivedChunk&) = default;
};

// Shard after shard, own + 1, own + 2, ..., and of each chunk after chunk; or group after group of
// shards, and of each k-group after k-group. The default is what one copy engine pulls.
struct ArrivalModel {
  double start_us = 6;        // before the first operation
  double operation_us = 2.5;  // of each copy with its flag, besides the bytes
  double gigabytes_per_second = 359;
  double jitter = 0.05;  // each copy takes up to this part more or less; 0 to 1
  std::uint64_t seed = 1;
  int straggler = -1;       // the shard that comes late, and all after it; -1: none
  double straggler_us = 0;  // so much
  friend bool operator==(const ArrivalModel&, const ArrivalModel&) = default;
};

// Copy engines bring the shards of so many ranks, each of which reads from all others.
ArrivalModel copy_engine_model(int ranks);

// So many blocks of each rank's kernel pull the shards. There are no operations. The rate grows
// with the blocks, up to that of the link. With more than two ranks, its maximum is lower.
ArrivalModel pulled_arrival_model(int pullers, int ranks = 2);

// kInvalidArgument: a time, rate or part that is out of range, or no shard is the straggler.
Status check_arrival_model(const ArrivalModel& model, int shards);

struct ArrivalTrace {
  std::string machine;  // that was measured, or that the model is of
  int ranks = 1, own = 0, chunks_per_shard = 1;
  int k_groups = 1, shard_groups = 0;       // as ArrivalPlan has them
  std::uint64_t bytes_per_chunk = 0;        // of a whole one
  std::optional<ArrivalModel> model = {};   // empty: measured
  std::vector<ArrivedChunk> arrivals = {};  // by time; each chunk once that is not empty

  ArrivalPlan plan(ArrivalOrder order) const {
    return {.shards = ranks,
            .chunks = chunks_per_shard,
            .own = own,
            .order = order,
            .k_groups = k_groups,
            .shard_groups = shard_groups};
  }
  double last_us() const {
    return arrivals.empty() ? 0 : static_cast<double>(arrivals.back().ns) / 1e3;
  }
  friend bool operator==(const ArrivalTrace&, const ArrivalTrace&) = default;
};

// The rows of A, as they are gathered.
struct GatheredRows {
  std::size_t m = 0;
  std::size_t bytes_per_row = 0;
};

// kInvalidArgument: a plan or a model that cannot be.
Result<ArrivalTrace> modelled_arrival(const ArrivalPlan& plan, const GatheredRows& rows,
                                      const ArrivalModel& model, std::string_view machine);
// kInvalidArgument: the trace is of other chunks than those of `rows`, and says which.
Status check_arrival_of(const ArrivalTrace& trace, const GatheredRows& rows);
// For the replayer of a gated matmul.
std::vector<ReplayedArrival> replay_of(const ArrivalTrace& trace);

// JSON, a line for each chunk; schema tutti.arrival/1.
std::string to_json_text(const ArrivalTrace& trace);
// kInvalidArgument names `file`, and what is wrong in it.
Result<ArrivalTrace> arrival_trace_from_json_text(std::string_view text, std::string_view file);

}  // namespace tutti
