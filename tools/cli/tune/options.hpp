// What `tutti tune` was asked for: as typed, and as checked.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/options.hpp"

namespace tutti::cli {

// The text of each option; empty: not given. Of `bench` what both commands have.
struct TuneArguments {
  BenchArguments bench;
  std::string seconds, without;
  bool resume = false;
};

struct TuneOptions {
  BenchOptions bench;  // how a sample is taken; `output` is the table that is written
  std::chrono::seconds seconds{60};
  bool resume = false;
  std::vector<std::string> without;  // candidates (to_text) that are left out
};

// As check_arguments(). `table`: what is written where no --output is given; its folder is made.
Result<TuneOptions> check_tune_arguments(const TuneArguments& arguments,
                                         const BenchMachine& machine, const std::string& table);

// The part of it that all kinds of tuning have: this command starts the ranks; their numbers, and
// the table, where they are not given.
Status use_tune_defaults(BenchArguments& bench, const BenchMachine& machine,
                         const std::string& table);

// What asks this command for the work of one rank.
std::vector<std::string> rank_words(const TuneOptions& options);

}  // namespace tutti::cli
