// What `tutti bench put` and `tutti bench get` were asked for: as typed, and as checked.
#pragma once

#include <string>
#include <vector>

#include "bench/options.hpp"
#include "operation/one_sided_call.hpp"

namespace tutti::cli {

// The text of each option; empty: not given. Of `bench` what all commands have.
struct OneSidedArguments {
  OneSided kind = OneSided::kPut;  // or kGet
  BenchArguments bench;
};

struct OneSidedOptions {
  OneSided kind = OneSided::kPut;
  BenchOptions bench;  // its algorithms are the names of movers
  std::vector<Mover> movers;
};

std::string_view to_string(Mover mover);  // "kernel"; on the host the thread that calls

// Fills in what was not given. The first thing that cannot be right is kInvalidArgument.
Result<OneSidedOptions> check_one_sided_arguments(const OneSidedArguments& arguments,
                                                  const BenchMachine& machine);

// What asks this command for the work of one rank.
std::vector<std::string> to_arguments(const OneSidedOptions& options);

}  // namespace tutti::cli
