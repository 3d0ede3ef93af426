#include "tune/all_gather_matmul/command.hpp"

#include <fmt/format.h>

#include <set>

#include "base/knobs.hpp"
#include "bench/launcher.hpp"
#include "exit_code.hpp"
#include "machine.hpp"
#include "tell.hpp"
#include "tune/all_gather_matmul/worker.hpp"
#include "tune/table_file.hpp"

namespace tutti::cli {
namespace {

int refuse(const Status& status) {
  tell_line(stderr, "tutti tune {}: {}", kAllGatherMatmul, status.message());
  return kUsage;
}

// A group for each number of ranks.
class SizesSweep {
 public:
  SizesSweep(const TuneAllGatherMatmulOptions& options, Environment environment,
             const TuningEntries& table)
      : options_(options), environment_(std::move(environment)), table_(table) {}

  int run() {
    for (const int ranks : options_.bench.ranks) {
      if (interrupted_by_ == 0) measure(ranks);
    }
    tell_line(stdout, "{}: {} sizes measured", options_.bench.output, measured_);
    if (interrupted_by_ == 0) return failed_ ? kFailure : kSuccess;
    tell_line(stderr, "# interrupted; --resume goes on");
    constexpr int kSignalled = 128;  // as shells have it
    return kSignalled + interrupted_by_;
  }

 private:
  AllGatherMatmulEntry entry_for(int ranks, const MatmulExtents& extents) const {
    const bool cuda = options_.bench.backend == Backend::kCuda;
    return {.backend = options_.bench.backend,
            .gpu = cuda ? environment_.gpu : "",
            .ranks = ranks,
            .element_bytes = size_of(options_.bench.dtype),
            .size = {extents.m, extents.n, extents.k},
            .date = environment_.date.substr(0, environment_.date.find('T')),
            .driver = environment_.driver};
  }

  void measure(int ranks) {
    TuneAllGatherMatmulOptions options = options_;
    options.bench.ranks = {ranks};
    std::erase_if(options.shapes, [&](const MatmulExtents& extents) {
      return options_.resume && is_measured(table_.all_gather_matmul, entry_for(ranks, extents));
    });
    if (options.shapes.empty()) return;
    std::string trying;  // by rank 0
    const auto on_report = [&](int rank, const Report& report) {
      if (const auto* dropped = std::get_if<Dropped>(&report)) take(options, rank, *dropped);
      if (rank != 0) return;
      if (const auto* each = std::get_if<Trying>(&report)) {
        trying = fmt::format(", {}, {}", text_of(options, each->size), each->candidate);
      } else if (const auto* skipped = std::get_if<Skipped>(&report)) {
        const std::string text =
            fmt::format("{} ranks: {}: {}", ranks, skipped->algorithm, skipped->why);
        if (told_.insert(text).second) tell_line(stderr, "# {}", text);
      } else if (const auto* tuned = std::get_if<TunedAllGatherMatmul>(&report)) {
        take(options, *tuned);
      }
    };
    const auto end = run_group({.ranks = ranks,
                                .launch = options.bench.launch,
                                .options = options.bench.communicator(),
                                .words = rank_words(options),
                                .work = tune_all_gather_matmul_work(options)},
                               on_report);
    if (!end.is_ok())
      return fail(fmt::format("FAILED with {} ranks: {}", ranks, end.status().to_string()));
    interrupted_by_ = end->interrupted_by;
    if (interrupted_by_ != 0 || end->failures.empty()) return;
    fail(fmt::format("FAILED with {} ranks{}: {}", ranks, trying, fmt::join(end->failures, "; ")));
  }

  static std::string text_of(const TuneAllGatherMatmulOptions& options, std::size_t which) {
    const MatmulExtents& extents = options.shapes[which];
    return to_text(AllGatherMatmulSize{extents.m, extents.n, extents.k});
  }

  void take(const TuneAllGatherMatmulOptions& options, int rank, const Dropped& dropped) {
    fail(fmt::format("WRONG RESULT with {} ranks, {}, {}: rank {}, {}; dropped",
                     options.bench.ranks.front(), text_of(options, dropped.size), dropped.candidate,
                     rank, dropped.why));
  }

  void take(const TuneAllGatherMatmulOptions& options, const TunedAllGatherMatmul& tuned) {
    AllGatherMatmulEntry entry = entry_for(options.bench.ranks.front(), options.shapes[tuned.size]);
    entry.way = tuned.best.way;
    entry.time_us = tuned.best.time_us;
    entry.unfused_us = tuned.best.unfused_us;
    entry.runner_up = tuned.best.runner_up;
    entry.runner_up_us = tuned.best.runner_up_us;
    entry.samples = tuned.best.samples;
    const Status written = add_to_table(options_.bench.output, entry);
    if (!written.is_ok()) return fail(written.to_string());
    ++measured_;
    tell_line(stderr, "{}", to_text(entry));
  }

  void fail(const std::string& text) {
    failed_ = true;
    tell_line(stderr, "# {}", text);
  }

  const TuneAllGatherMatmulOptions& options_;
  const Environment environment_;
  const TuningEntries& table_;
  std::set<std::string> told_;
  int measured_ = 0, interrupted_by_ = 0;
  bool failed_ = false;
};

}  // namespace

int run_tune_all_gather_matmul(const TuneAllGatherMatmulArguments& arguments,
                               const std::string& command_line) {
  const auto options = check_tune_all_gather_matmul_arguments(
      arguments, bench_machine(), Knobs::process().path("TUTTI_TUNING_CACHE"));
  if (!options.is_ok()) return refuse(options.status());
  const BenchOptions& bench = options->bench;
  if (bench.worker_fd >= 0) {
    return run_rank_process(bench.worker_fd, bench.communicator(),
                            tune_all_gather_matmul_work(*options));
  }
  const auto table = read_table(bench.output);
  if (!table.is_ok()) return refuse(table.status());
  return SizesSweep(*options, describe_environment(bench.backend, command_line), *table).run();
}

}  // namespace tutti::cli
