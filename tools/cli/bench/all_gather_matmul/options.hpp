// What `tutti bench all_gather_matmul` was asked for: as typed, and as checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/all_gather_matmul/mover_options.hpp"
#include "bench/matmul/options.hpp"
#include "matmul/arrival_trace.hpp"

namespace tutti::cli {

// Rows of the matmul of an A that is there.
inline constexpr std::string_view kOwnAloneRow = "own_matmul_only",
                                  kCublasLtAloneRow = "cublaslt_matmul_only",
                                  kHostAloneRow = "host_matmul_only";
inline constexpr std::string_view kArrivalAloneRow = "arrival_only";  // copies without a matmul

inline constexpr int kMostCalls = 64;  // of a sample, as asked for

// The text of each option; empty: not given. Of `matmul` what both benchmarks have.
struct AllGatherMatmulArguments {
  MatmulArguments matmul;
  std::string ranks, chunks, k_groups, pullers, arrival;
  // Of several ranks. --backend, --launch and the like are in `matmul`.
  std::string gpus, protocol, streams, tiles, transport, calls;
  MoverTexts mover;
};

enum class ArrivalKind : std::uint8_t { kOpen, kModel, kTrace, kPull, kHost };

struct AllGatherMatmulOptions {
  MatmulBenchOptions matmul;         // of its algorithms, none
  std::vector<ArrivalOrder> orders;  // of tiles, one after the other
  int ranks = 8, chunks = 1;         // emulated
  int k_groups = 1;                  // above 1: in the rotated order alone
  int pullers = 0;                   // SMs that the gated kernel leaves to them
  int own = 0;                       // the shard that is there beforehand
  ArrivalKind arrival = ArrivalKind::kOpen;
  int calls = 4;  // of a sample, at least; where a trace or open flags arrive, a graph
  std::string arrival_text = "open";       // as typed
  std::optional<ArrivalTrace> trace = {};  // of kTrace: fits all shapes
};

// "fused_rotated": what rows are called.
std::string_view row_of_order(ArrivalOrder order);

// Fills in what was not given. The first invalid value is kInvalidArgument.
Result<AllGatherMatmulOptions> check_all_gather_matmul_arguments(
    const AllGatherMatmulArguments& arguments, const BenchMachine& machine);

}  // namespace tutti::cli
