// A matmul whose A arrives while the kernel runs: in chunks of rows, or of rows and columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "drivers/cuda.hpp"
#include "matmul/problem.hpp"
#include "matmul/tiles.hpp"

namespace tutti {

// In which order the tiles of a gated matmul come.
enum class ArrivalOrder : std::uint8_t {
  kPlain,     // that of the matmul without a gate
  kRotated,   // the own shard, then shard by shard in the order of arrival (own + 1, own + 2, ...)
  kFrontier,  // the own shard, then groups of shards that grow, so that B is read less often
};
std::string_view to_string(ArrivalOrder order);  // "plain", "rotated", "frontier"
Result<ArrivalOrder> parse_arrival_order(std::string_view text);

// The rows of A are cut into `shards` of ceil(m / shards) rows, and each into `chunks` of
// ceil(rows of a shard / chunks), where all shards count as full. The last ones are smaller or
// empty. The columns are cut into `k_groups` of ceil(stages of K / k_groups) stages, of
// kMatmulTileK columns each; the last ones are smaller or empty. A tile waits for a k-group when
// its products get there. K-group g of chunk j of shard s has the flag (s * chunks + j) * k_groups
// + g; nobody waits for that of an empty one. At most kMostArrivalShards shards, and
// kMostArrivalFlags flags.
inline constexpr int kMostArrivalShards = 16, kMostArrivalFlags = 128;
struct ArrivalPlan {
  int shards = 1, chunks = 1;
  int own = 0;  // the shard that is there before the kernel begins: it has no flags
  ArrivalOrder order = ArrivalOrder::kRotated;
  int k_groups = 1;
  // kRotated: the other shards are in so many groups of about as many shards. A group arrives
  // k-group by k-group, and its rows are swept together. 0: each shard is a group.
  int shard_groups = 0;

  int flags_of_shard() const { return chunks * k_groups; }
  int flags() const { return shards * flags_of_shard(); }
  friend bool operator==(const ArrivalPlan&, const ArrivalPlan&) = default;
};

// Columns of K in a full k-group.
constexpr std::size_t k_group_columns(const ArrivalPlan& plan, std::size_t k) {
  const auto groups = static_cast<std::size_t>(plan.k_groups);
  const std::size_t stages = (k + kMatmulTileK - 1) / kMatmulTileK;
  return (stages + groups - 1) / groups * kMatmulTileK;
}

// What a wait that has failed leaves, in memory that the host can read. `failed` is written last.
struct GateFailure {
  std::uint32_t failed = 0;  // 1: the deadline has passed; 2: the group has failed
  std::int32_t chunk = -1;   // the flag's index; that behind the last flag: of the go word
  std::uint32_t epoch = 0, seen = 0;
  std::uint32_t claimed = 0;  // the kernel's own: who reports is decided by it
};

// A chunk's flag is set `ns` after the kernel has begun, by a warp of the kernel itself.
struct ReplayedArrival {
  std::uint64_t ns = 0;
  std::int32_t chunk = 0;
};

// Blocks of the kernel bring the shards: they read those of the other ranks, store them to A, and
// set the flags. A flag's index is counted as above. They begin when the word behind the last flag
// is open: what the other ranks have is then ready to be read, and stays so until the kernel ends.
struct PulledArrival {
  int pullers = 0;  // blocks, a multiple of a cluster's; 0: others bring A
  const void* shard[kMostArrivalShards] = {};  // each [rows, k]; the own one is not read
  std::size_t lda = 0;                         // of all of these
  void* to = nullptr;                          // the call's A
  // A word per flag: zero before the first call, and again after each that has not failed. A
  // k-group's rows are counted there as they come.
  std::uint32_t* counters = nullptr;
};

struct Arrival {
  ArrivalPlan plan;
  // [rows of the own shard, k], row-major: read in place of those rows of A; null: A has them.
  const void* own_a = nullptr;
  std::size_t own_lda = 0;
  // As the plan counts them, and with pullers one more. A flag is open once
  // int32_t(flag - epoch) >= 0.
  std::uint32_t* flags = nullptr;
  std::uint32_t epoch = 0;
  std::uint64_t timeout_ns = 0;          // of each wait; 0 is invalid
  const std::uint32_t* abort = nullptr;  // a word that is not 0 once the group has failed; or null
  GateFailure* failure = nullptr;        // zero before
  const ReplayedArrival* replay =
      nullptr;  // in device memory, in order of time; null: others set flags
  int replayed = 0;
  PulledArrival pull = {};
};

struct GatedMatmul {
  const CheckedMatmul& call;
  const MatmulTiling& tiling;
  const Arrival& arrival;
};

// As load_own_matmul() and run_own_matmul(), with the same requirements; C has the same bits. After
// a failed wait the kernel ends without waiting further, and C is undefined. kInvalidArgument: an
// arrival that contradicts itself, has no flags, record or deadline, or an own or pulled shard that
// TMA does not take. Of `multiprocessors` the pullers take theirs.
Status load_gated_matmul(CudaDriver& cuda, const MatmulProblem& problem,
                         const MatmulTiling& tiling);
Status run_gated_matmul(CudaDriver& cuda, const GatedMatmul& matmul, int multiprocessors,
                        Stream stream);

}  // namespace tutti
