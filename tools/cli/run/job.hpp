// Stays with the ranks of a job until all have ended: prints what they print, and decides what the
// job ends with.
#pragma once

#include <chrono>

#include "bench/interrupts.hpp"
#include "run/rank_group.hpp"

namespace tutti::cli {

struct JobOptions {
  int ranks = 1;
  bool prefix = true;             // [RANK] before each line
  std::chrono::seconds grace{5};  // between SIGTERM and SIGKILL
};

// The exit code: that of the first rank that fails, 128 + signal where one killed it or ended the
// launcher, kFailure where a host is lost first; 0 if nothing fails. The first failure ends all.
int run_job(RankGroup& ranks, const JobOptions& options, const Interrupts& interrupts);

}  // namespace tutti::cli
