// What `tutti bench` was asked for: as typed, and as checked.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "bootstrap/bootstrap.hpp"
#include "tutti/communicator.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti::cli {

enum class Mode : std::uint8_t { kGraph, kEager };
enum class BufferKind : std::uint8_t { kSymmetric, kRegistered, kPlain };
enum class Cache : std::uint8_t { kHot, kCold };
enum class Format : std::uint8_t { kTable, kMarkdown, kCsv, kJson };
enum class LaunchKind : std::uint8_t { kProcesses, kThreads };

inline constexpr std::string_view kAutoName =
    "auto";  // among algorithms: the one that a call takes
inline constexpr std::string_view kNcclName = "nccl";  // what it is compared with

std::string_view to_string(Mode mode);           // "graph", "eager"
std::string_view to_string(BufferKind buffers);  // "symmetric", "registered", "plain"
std::string_view to_string(Cache cache);         // "hot", "cold"
std::string_view to_string(Format format);       // "table", "markdown", "csv", "json"
std::string_view to_string(LaunchKind launch);   // "processes", "threads"

// The text of each option; empty: not given.
struct BenchArguments {
  std::string collective;
  std::string backend, ranks, min_bytes, max_bytes, factor, step, bytes, rows, hidden, root, dtype,
      op;
  std::string algorithms, sm_budget, buffers, mode, graph_operations, cudagraph, cache, iterations,
      warmup, check;
  std::string format, output, trace, launch, timeout_ms, inject, worker_fd;
  bool in_place = false, chained = false, append = false, repro = false, split_rows = false;
};

// A defect that a rank makes on purpose, so that tests can see it found. Not listed in the help.
struct Injection {
  enum class Kind : std::uint8_t { kNone, kFlip, kCrash, kHang } kind = Kind::kNone;
  int rank = -1;
  std::string algorithm = {};  // the only one that has it; empty: all
  bool hits(int which, std::string_view name) const {
    return rank == which && (algorithm.empty() || algorithm == name);
  }
  friend bool operator==(const Injection&, const Injection&) = default;
};

struct BenchOptions {
  Collective collective = Collective::kAllReduce;
  Backend backend = Backend::kHost;  // never kAuto
  std::vector<int> ranks;            // a group after the other
  std::vector<std::size_t> bytes;    // messages, before message_bytes() rounds them
  int hidden = 0;                    // elements per row, where messages are rows; else 0
  int root = 0;                      // where the collective has one
  bool split_rows = false;           // each rank gets its columns of every row
  std::size_t token_bytes() const { return static_cast<std::size_t>(hidden) * size_of(dtype); }
  // Bytes of message number `size` for `group` ranks, rounded down to whole elements of each rank's
  // piece. If the size is a multiple of 16 bytes, so is each piece, as in nccl-tests.
  std::size_t message_bytes(std::size_t size, int group) const {
    const auto parts = static_cast<std::size_t>(has_pieces(collective) ? group : 1);
    const bool vectors = bytes[size] % 16 == 0 && bytes[size] >= 16 * parts && !split_rows;
    return bytes[size] - bytes[size] % ((vectors ? 16 : size_of(dtype)) * parts);
  }
  bool has_rows() const { return normalises() || split_rows; }
  bool normalises() const { return collective == Collective::kAllReduceResidualRmsNorm; }
  DataType dtype = DataType::kFloat32;
  OpKind op = OpKind::kSum;
  std::vector<std::string> algorithms;  // names without the collective, or kAutoName
  std::optional<int> sm_budget = {};    // as in CallOptions
  // Empty: symmetric, or plain where the group has no symmetric memory, as between nodes.
  std::optional<BufferKind> buffers = {};
  BufferKind wanted_buffers() const { return buffers.value_or(BufferKind::kSymmetric); }
  Mode mode = Mode::kEager;
  int graph_operations = 10;
  bool chained = false, in_place = false;
  Cache cache = Cache::kHot;
  int iterations = 50, warmup = 5;
  bool check = true;
  Format format = Format::kTable;
  std::string output, trace;
  bool append = false, repro = false;
  LaunchKind launch = LaunchKind::kProcesses;
  std::chrono::milliseconds timeout{10000};
  Injection inject;
  int worker_fd = -1;  // of a rank's process: where its measurements go
  // That started this process as one of the ranks; empty: this command starts the ranks.
  std::string launcher = {};
  bool speaks = true;  // this process prints and writes; of a launcher's, rank 0 alone

  // How many operations one sample divides its time by.
  int operations() const { return backend == Backend::kCuda || chained ? graph_operations : 1; }
  CommunicatorOptions communicator() const { return {.backend = backend, .timeout = timeout}; }
  friend bool operator==(const BenchOptions&, const BenchOptions&) = default;
};

// What an argument is checked against.
struct BenchMachine {
  int gpus = 0;
  std::string why_no_gpu;
  std::chrono::milliseconds timeout{10000};  // where --timeout-ms is not given
  bool records = true;                       // what the ranks do: TUTTI_RECORDER
  bool multicast = false;                    // this build and all GPUs have it, and may use it
  bool takes_ranks_apart = false;            // TUTTI_TOPOLOGY makes several nodes of it
  // What a launcher's variables say of this process. kUnavailable: no launcher started it.
  Result<LaunchEnvironment> launch = Status(StatusCode::kUnavailable, "no launcher");
};

// Fills in what was not given. The first thing that cannot be right is kInvalidArgument.
Result<BenchOptions> check_arguments(const BenchArguments& arguments, const BenchMachine& machine);

// The words after "tutti bench" that give `options` again, complete: for the ranks' processes and
// for --repro. Where results are printed and written is left out.
std::vector<std::string> to_arguments(const BenchOptions& options);
// Those of them that other commands share (arguments.hpp): of what ranks are run and how, and all
// that with sizes.
std::vector<std::string> group_words(const BenchOptions& options);
std::vector<std::string> sweep_words(const BenchOptions& options);

}  // namespace tutti::cli
