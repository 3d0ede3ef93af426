// Results as they are kept: schema tutti.bench/1.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/group.hpp"
#include "bench/matmul/row.hpp"
#include "bench/options.hpp"
#include "bench/overlap/row.hpp"
#include "bench/statistics.hpp"

namespace tutti::cli {

inline constexpr std::string_view kNoOp = "none";  // Row::op of what reduces nothing
inline constexpr std::string_view kOverlapName =
    "overlap";  // Row::collective, where it is two things
inline constexpr std::string_view kMatmulBenchName = "matmul";  // Row::collective, where it is none
inline constexpr std::string_view kAllGatherMatmulName = "all_gather_matmul";  // likewise

struct Calibration {
  double kernel_gap_us = 0;    // between empty kernels in a graph; 0: not measured
  double hop_us = 0;           // one way between two GPUs; 0: not measured
  double copy_gbps = 0;        // one thread's memcpy on the host; 0: not measured
  std::size_t copy_bytes = 0;  // that it copied at a time
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

struct Environment {
  std::string host, gpu = {};
  int gpus = 0;
  std::string driver, cuda, nccl = {};  // versions; empty: not there
  std::string torch = {};               // that measured, in place of tutti; empty: tutti did
  std::string vllm = {};                // whose all-reduce was measured; empty: none
  bool multicast = false;               // whether NVLink multicast could be used
  std::string why_no_multicast = {};    // empty: it could, or that was not kept
  std::string date, command;
  Calibration calibration = {};
  std::string link = {};  // of `tutti model`, which computed the times: JSON; empty: measured
  friend bool operator==(const Environment&, const Environment&) = default;
};

struct Row {
  std::string collective, algorithm, backend;
  int ranks = 0;
  std::string dtype, op;
  std::size_t bytes = 0, count = 0;
  int hidden = 0;  // elements per row of the tensor; 0: no tensor was asked for
  int root = 0;    // where the collective has one
  bool in_place = false;
  std::string buffers, mode;
  int graph_operations = 0;
  bool chained = false;
  std::string cache, launch;
  int blocks = 0, threads = 0;
  std::size_t chunk_bytes = 0;
  Statistics time_us = {};
  std::vector<double> per_rank_p50_us = {};
  double copy_us = 0;
  double sent_bytes = 0;  // by the host that sent most, per sample; 0: not measured
  double cpu_share = 0;   // of all cores of the busiest host meanwhile; 0: not measured
  double algbw_gbps = 0, busbw_gbps = 0;
  std::optional<std::uint64_t> wrong = {};  // elements over all ranks; empty: not checked
  bool chosen = false;
  bool emulated = false;                   // by a loop over the peers, for want of multicast
  std::optional<OverlapRow> overlap = {};  // of rows of kOverlapName
  std::optional<MatmulRow> matmul = {};    // of kMatmulBenchName and kAllGatherMatmulName
  friend bool operator==(const Row&, const Row&) = default;
};

struct Record {
  std::string tutti;        // version
  std::string commit = {};  // of the build; empty: not kept
  Environment environment;
  std::vector<Row> rows = {};
  friend bool operator==(const Record&, const Record&) = default;
};

// Rows of a part of what a group of ranks measured, in the order of measuring; the slowest rank of
// each sample counts. kMismatch where ranks did not measure the same.
Result<std::vector<Row>> rows_of(const GroupOutcome& outcome, const BenchOptions& options,
                                 Range range);

// Whether two rows are of the same matmul, or both of none. Rows of kMatmulBenchName: of the same
// kind of matmul, with any extents.
bool same_matmul(const Row& a, const Row& b);
// Whether two rows measure the same thing, so that the newer replaces the older.
bool same_key(const Row& a, const Row& b);

// kInvalidArgument where the two are not of one kind of machine, driver and version of tutti.
Status check_same_machine(const Record& old_record, const Record& new_record);
// `added` with all rows of `old_record` in front, those that were measured again replaced. Its
// command and commit become those that made the rows, each once.
Record merge(const Record& old_record, Record added);

std::string to_json_text(const Record& record);
// kInvalidArgument names `file` and what is wrong in it.
Result<Record> record_from_json_text(std::string_view text, std::string_view file);

}  // namespace tutti::cli
