// The launcher's side of a sweep: a group for each number of ranks, and another where one fails.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/launcher.hpp"
#include "bench/record.hpp"
#include "planning/table.hpp"
#include "tune/forecast.hpp"
#include "tune/options.hpp"

namespace tutti::cli {

// What is measured with one number of ranks.
struct SweepPart {
  int ranks = 0;
  std::vector<std::size_t> bytes;
};

class Sweep {
 public:
  // Both must outlive it. `table`: what the file has; with --resume it need not be measured again.
  Sweep(const TuneOptions& options, const Environment& environment,
        const std::vector<TuningEntry>& table);

  // Measures, and writes the table after each size. Returns the exit code.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  // A group that ends, and what it was about to run last, as rank 0 told.
  struct Attempt {
    std::optional<Trying> trying = {};
    std::vector<std::size_t> finished = {};  // bytes
    Supervision end = {};
  };

  TuningEntry entry_for(int ranks, std::size_t bytes) const;
  double expected(int ranks, std::size_t bytes) const;
  void announce() const;
  void run_part(SweepPart part);
  TuneOptions options_for(const SweepPart& part, Clock::time_point begin) const;
  Result<Attempt> attempt(const SweepPart& part, const TuneOptions& options);
  void leave_out(SweepPart& part, std::size_t bytes, const std::string& candidate,
                 const std::string& why);
  void take(const SweepPart& part, const Dropped& dropped);
  void take(const SweepPart& part, const Tuned& tuned);
  void fail(const std::string& text);

  const TuneOptions& options_;
  const Environment& environment_;
  std::vector<SweepPart> parts_;
  std::vector<std::string> without_;  // candidates with which a group has failed
  std::set<std::string> told_ = {};   // once, not by every rank or at every size
  Clock::time_point begin_ = Clock::now();
  Forecast forecast_{0};
  int measured_ = 0;
  bool failed_ = false;
  int interrupted_by_ = 0;
};

}  // namespace tutti::cli
