// What `tutti bench all_gather_matmul` with several ranks was asked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/all_gather_matmul/options.hpp"
#include "tutti/all_gather_matmul.hpp"

namespace tutti::cli {

inline constexpr std::string_view kUnfusedRow = "unfused", kNcclUnfusedRow = "nccl_unfused";
bool is_alone(std::string_view row);  // of the matmul
bool is_pipeline(std::string_view algorithm);

struct GatherMatmulOptions {
  MatmulBenchOptions matmul;  // its ranks are those of `bench`
  MatmulArguments texts;      // of its shapes, as typed: for the ranks' processes
  std::vector<std::string> algorithms;
  std::string protocol = "get";
  int streams = 4, tiles = 8;
  MoverOptions mover;
  std::string transport = "auto";  // of fused
  int calls = 4;                   // of a sample, at least

  // Its `protocol` is this one's.
  AllGatherMatmulPipeline pipeline() const {
    return {.protocol = protocol,
            .mover = to_string(mover.mover),
            .streams = streams,
            .tiles = tiles,
            .inter_stream_order = mover.inter_stream_order};
  }
  // Likewise its transport.
  AllGatherMatmulFused fused() const { return {.transport = transport}; }
  // "put by kernel, 8 tiles, 4 streams in order": what rows of an algorithm differ by; of fused
  // "pull", if it was asked for; else empty.
  std::string pipeline_text(std::string_view algorithm) const;
};

// Whether several ranks are asked for, by an option or by a launcher that started this process.
bool has_ranks(const AllGatherMatmulArguments& arguments, const BenchMachine& machine);

// Fills in what was not given. The first invalid value is kInvalidArgument.
Result<GatherMatmulOptions> check_gather_matmul_arguments(const AllGatherMatmulArguments& arguments,
                                                          const BenchMachine& machine);

// What asks this command for the work of one rank.
std::vector<std::string> to_arguments(const GatherMatmulOptions& options);

}  // namespace tutti::cli
