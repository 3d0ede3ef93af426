// What one rank tells the launcher, as values and as the JSON that travels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bench/configuration.hpp"
#include "bench/overlap/phase.hpp"
#include "group/recorder/snapshot.hpp"
#include "planning/all_gather_matmul.hpp"
#include "tutti/status.hpp"
#include "tutti/tuning.hpp"

namespace tutti::cli {

// One algorithm at one size, as one rank saw it.
struct Measurement {
  std::size_t size = 0;   // index into BenchOptions::bytes
  std::string algorithm;  // "one_shot"
  bool in_place = false;
  bool chosen = false;  // what auto takes here
  bool last = false;    // no other follows of this size and placement
  bool plain = false;   // the buffers, since the group has no symmetric memory
  Plan plan;
  std::vector<double> samples_us = {};
  // The same on symmetric buffers, sample by sample between the others; empty where nothing is
  // staged.
  std::vector<double> unstaged_us = {};
  double sent_bytes = 0;                    // by this host, per sample; 0: not measured
  double cpu_share = 0;                     // of all cores meanwhile; 0: not measured
  std::optional<std::uint64_t> wrong = {};  // elements; empty: not checked
  std::string first_wrong = {};             // for people
};

// One phase of `tutti bench overlap`, as one rank saw it.
struct OverlapMeasurement {
  Phase phase = Phase::kMatmul;
  std::string algorithm;  // of the all_gather; empty: the matmul alone
  bool chosen = false;    // what auto takes here
  Plan plan;
  std::string library;                  // that multiplied; empty: the all_gather alone
  std::vector<double> samples_us = {};  // from the common start until all has ended
  std::vector<double> matmul_us = {};   // of its own within each; empty where there is none
  std::vector<double> gather_us = {};
  std::vector<double> megahertz = {};       // of the multiprocessors meanwhile; empty: not measured
  std::optional<std::uint64_t> wrong = {};  // elements; empty: not checked
  std::string first_wrong = {};             // for people
};

// One row of `tutti bench all_gather_matmul` with one setting, as one rank saw it.
struct GatherMatmulMeasurement {
  std::size_t setting = 0;  // index into settings_of(MatmulBenchOptions)
  std::string algorithm, config, library = {};
  bool last = false;  // no other follows of this setting
  std::vector<double> samples_us = {};
  double host_us = 0;                       // for a call; 0: not measured
  double megahertz = 0;                     // of the multiprocessors; 0: not measured
  std::optional<std::uint64_t> wrong = {};  // elements; empty: not checked
  std::string first_wrong = {};             // for people
};

// An algorithm that cannot run here, and why.
struct Skipped {
  std::string algorithm, why;
};

// What `tutti tune` is about to run at `size`; no candidate: several in turn. So the launcher knows
// what was running when a group fails.
struct Trying {
  std::size_t size = 0;
  std::string candidate = {};
};

// A candidate that this rank has seen give a wrong result.
struct Dropped {
  std::size_t size = 0;
  std::string candidate, why;
};

// What is best at `size`.
struct Tuned {
  std::size_t size = 0;
  Configuration best = {};
  double time_us = 0;
  int samples = 0;
  std::string runner_up = {};  // another algorithm; empty: there is none
  double runner_up_us = 0;
};

// The same of all_gather_matmul: of `best`, way, times, runner-up and samples.
struct TunedAllGatherMatmul {
  std::size_t size = 0;
  AllGatherMatmulEntry best = {};
};

struct Failure {
  StatusCode code = StatusCode::kInternal;
  std::string text;
};

// What the rank's flight recorder holds at the end; only where a trace is wanted.
struct Operations {
  std::vector<RecordedOperation> operations = {};
};

struct Alive {};  // between two samples: slow, but not stuck
struct Done {};

using Report =
    std::variant<Measurement, OverlapMeasurement, GatherMatmulMeasurement, Skipped, Trying, Dropped,
                 Tuned, TunedAllGatherMatmul, Failure, Operations, Alive, Done>;

std::string to_json_text(const Report& report);
// kMismatch where `text` is no report.
Result<Report> report_from_json_text(std::string_view text);

}  // namespace tutti::cli
