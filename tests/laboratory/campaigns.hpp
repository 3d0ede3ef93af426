// What the laboratory does with experiments: random and exhaustive schedules, and the search for
// what is wrong with a protocol that had something taken away.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "laboratory/experiment.hpp"

namespace tutti::laboratory {

struct Finding {
  std::uint64_t seed = 0;       // of a random schedule
  std::uint64_t schedules = 0;  // how many were run, this one included
  simulated::Violation violation;

  bool found() const { return violation.breach != simulated::Breach::kNone; }
};

// Up to `schedules` random ones with consecutive seeds from `seed` on; stops at the first
// violation.
Finding run_random(const Setup& setup, std::uint64_t seed, std::uint64_t schedules,
                   const Experiment::Options& options = {});

// All schedules, up to `limit`. `complete` says whether that was all of them.
struct Exhausted {
  Finding finding;
  std::uint64_t redundant = 0;  // begun, and given up since they led nowhere new
  bool complete = false;
};
Exhausted run_exhaustive(const Setup& setup, std::uint64_t limit,
                         const Experiment::Options& options = {});

// What this schedule does, step by step, and how it ends.
std::vector<std::string> story_of(const Setup& setup, std::uint64_t seed,
                                  Experiment::Options options = {});

// One way of weakening one row, and what came of it.
struct MutationResult {
  Setup setup;  // the one that found it, else the last that was tried
  simulated::Mutation mutation;
  Finding finding;
};
// Every mutation of every row, in each of the setups that are meant for it.
std::vector<MutationResult> run_mutations(std::uint64_t schedules);
// The results as lines of a Markdown table.
std::vector<std::string> table_of(const std::vector<MutationResult>& results);

// Ranks that stop, and ranks that run different operations: what must come of it, checked for one
// schedule each. A text says what did not hold; empty if all did.
std::string run_stop(const Setup& setup, Stop stop, std::uint64_t seed,
                     const simulated::Mutation* mutation = nullptr);
std::string run_mismatch(const Setup& setup, std::uint64_t seed,
                         const simulated::Mutation* mutation = nullptr);

// Calls job(0) .. job(count - 1) on all cores.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& job);

}  // namespace tutti::laboratory
