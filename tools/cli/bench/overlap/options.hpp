// What `tutti bench overlap` was asked for: as typed, and as checked.
#pragma once

#include <string>
#include <vector>

#include "bench/options.hpp"
#include "bench/overlap/phase.hpp"
#include "drivers/matmul.hpp"

namespace tutti::cli {

// The text of each option; empty: not given. Of `bench` what both commands have.
struct OverlapArguments {
  BenchArguments bench;
  std::string m, n, k, ag_mb, modes, compute, pause;
  bool tf32 = false, dependent = false, clocks = false;
};

// What is beside the all_gather.
enum class Compute : std::uint8_t {
  kMatmul,
  kArithmetic,  // as many multiplications on all multiprocessors, without any memory
};
std::string_view to_string(Compute compute);  // "matmul", "arithmetic"

struct OverlapOptions {
  BenchOptions bench;  // of the all_gather; how large it is follows from what is below
  MatmulShape matmul;
  std::size_t ag_mb = 0;   // MiB that each rank puts in; 0: the gather is of what is multiplied
  bool dependent = false;  // each rank has m / ranks rows of A; they are gathered, then multiplied
  std::vector<Phase> phases;
  Compute compute = Compute::kMatmul;
  int pause_ms = 0;     // before each sample, in which GPUs have nothing to do
  bool clocks = false;  // those of multiprocessors are measured

  // What each of so many ranks puts in.
  std::size_t part_bytes(int ranks) const;
};

// Fills in what was not given. The first thing that cannot be right is kInvalidArgument.
Result<OverlapOptions> check_overlap_arguments(const OverlapArguments& arguments,
                                               const BenchMachine& machine);

// What asks this command for the work of one rank.
std::vector<std::string> to_arguments(const OverlapOptions& options);

}  // namespace tutti::cli
