// Which algorithm runs an all_gather_matmul: what was measured of it, and the choice by that. Plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matmul/arrival_transport.hpp"
#include "pipelines/description.hpp"
#include "topology/topology.hpp"
#include "tutti/status.hpp"
#include "tutti/tuning.hpp"
#include "tutti/types.hpp"

namespace tutti {

class TuningTable;

inline constexpr std::string_view kAllGatherMatmul = "all_gather_matmul";

enum class AllGatherMatmulAlgorithm : std::uint8_t {
  kUnfused,
  kPipelinedShift,
  kPipelinedRing,
  kPipelinedTiles,
  kFused
};
inline constexpr AllGatherMatmulAlgorithm kAllGatherMatmulAlgorithms[] = {
    AllGatherMatmulAlgorithm::kUnfused, AllGatherMatmulAlgorithm::kPipelinedShift,
    AllGatherMatmulAlgorithm::kPipelinedRing, AllGatherMatmulAlgorithm::kPipelinedTiles,
    AllGatherMatmulAlgorithm::kFused};
// "unfused", "pipelined_shift", "pipelined_ring", "pipelined_tiles", "fused"
std::string_view to_string(AllGatherMatmulAlgorithm algorithm);
// Its name, or "all_gather_matmul/" and its name.
Result<AllGatherMatmulAlgorithm> parse_all_gather_matmul_algorithm(std::string_view text);
bool is_pipelined(AllGatherMatmulAlgorithm algorithm);

// `n`: of all products together.
struct AllGatherMatmulSize {
  std::size_t m = 0, n = 0, k = 0;
  friend bool operator==(const AllGatherMatmulSize&, const AllGatherMatmulSize&) = default;
};
std::string to_text(const AllGatherMatmulSize& size);  // "8192x3584x8192"

// An algorithm and its options.
struct AllGatherMatmulWay {
  AllGatherMatmulAlgorithm algorithm = AllGatherMatmulAlgorithm::kUnfused;
  // Of pipelines; else these stay as they are here.
  pipelines::Protocol protocol = pipelines::Protocol::kGet;
  int streams = 0;
  int tiles = 0;  // pipelined_tiles alone
  pipelines::Mover mover = pipelines::Mover::kCopyEngine;
  bool inter_stream_order = false;
  std::optional<ArrivalTransport> transport = {};  // of fused; none: what is predicted to be faster
  friend bool operator==(const AllGatherMatmulWay&, const AllGatherMatmulWay&) = default;
};
// "fused", "fused, pull", "pipelined_ring, put, 2 streams", "pipelined_tiles, get by kernel, 4
// streams in order, 8 tiles"
std::string to_text(const AllGatherMatmulWay& way);

// The fastest algorithm at one size, measured by public calls.
struct AllGatherMatmulEntry {
  Backend backend = Backend::kCuda;
  std::string gpu = {};  // "NVIDIA H200"; empty for the host backend
  int ranks = 0;
  std::size_t element_bytes = 0;
  AllGatherMatmulSize size = {};
  AllGatherMatmulWay way = {};
  double time_us = 0, unfused_us = 0;  // the same if unfused is the fastest
  // The fastest of the other algorithms, unfused apart; without a time: there was none.
  AllGatherMatmulAlgorithm runner_up = AllGatherMatmulAlgorithm::kUnfused;
  double runner_up_us = 0;
  std::string date = {}, driver = {};
  int samples = 0;
  friend bool operator==(const AllGatherMatmulEntry&, const AllGatherMatmulEntry&) = default;
};

// "measured on NVIDIA H200, 2 ranks, 8192x3584x8192: fused 708 us, unfused 956 us"
std::string to_text(const AllGatherMatmulEntry& entry);

// Whether both are of one machine, number of ranks, size of elements and size.
bool is_of_same_call(const AllGatherMatmulEntry& a, const AllGatherMatmulEntry& b);

// How far `entry` is from a call: the product of the three ratios of sizes, each at least 1. 0: it
// does not hold for the call, because it is of another machine or a ratio is above sqrt(2). So an
// entry holds for a factor of 2 in m, n and k each. Within it the number of a GPU's waves and the
// ratio of transfer to arithmetic change little; further away the fastest algorithm may be another
// one, and a wrong guess can lose to unfused.
double distance(const AllGatherMatmulEntry& entry, const Topology& topology,
                std::size_t element_bytes, const AllGatherMatmulSize& size);

// What is asked: equal on every rank.
struct AllGatherMatmulRequest {
  AllGatherMatmulSize size;
  DataType dtype = DataType::kBfloat16;
  std::string_view algorithm = {};  // forced by the call; empty: none
  std::string_view tune = {};       // the text of TUTTI_TUNE
  bool only_nccl = false;           // TUTTI_DISABLE=1
};

struct SelectedAllGatherMatmul {
  AllGatherMatmulWay way = {};  // of a forced algorithm without its options, which the call has
  PlanSource source = PlanSource::kModel;       // kModel: nothing decided for another than unfused
  const AllGatherMatmulEntry* entry = nullptr;  // of the table, if one holds for the call
  std::string why = {};

  AllGatherMatmulAlgorithm algorithm() const { return way.algorithm; }
  // A table named it, not a person.
  bool is_by_table() const {
    return source != PlanSource::kCall && source != PlanSource::kOverride &&
           source != PlanSource::kModel;
  }
};

// The call > TUTTI_TUNE > TUTTI_DISABLE > tables > unfused. Of the entries of the first source that
// has one which holds for the call, the nearest one decides; of equally near ones the first. A pure
// function of what is equal on every rank. kInvalidArgument: an unknown name.
Result<SelectedAllGatherMatmul> select(const AllGatherMatmulRequest& request,
                                       const Topology& topology, const TuningTable& table);

// Unfused in place of what a table names, where that cannot run the call.
SelectedAllGatherMatmul unfused_instead(const SelectedAllGatherMatmul& selected,
                                        std::string_view why_not);

// Of the items of TUTTI_TUNE those for all_gather_matmul: "all_gather_matmul:0-64M:@unfused". Sizes
// are those of the gathered A.
struct AllGatherMatmulOverride {
  std::size_t min_bytes = 0, max_bytes = 0;  // inclusive; "inf" is the largest size_t
  AllGatherMatmulAlgorithm algorithm = AllGatherMatmulAlgorithm::kUnfused;
  friend bool operator==(const AllGatherMatmulOverride&, const AllGatherMatmulOverride&) = default;
};
Result<std::vector<AllGatherMatmulOverride>> parse_all_gather_matmul_overrides(
    std::string_view text);

}  // namespace tutti
