#include "tune/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "exit_code.hpp"
#include "tell.hpp"
#include "topology/host.hpp"
#include "tune/candidates.hpp"
#include "tune/table_file.hpp"
#include "tune/worker.hpp"

namespace tutti::cli {
namespace {

constexpr int kMostFailures = 4;  // of groups with one number of ranks

std::string id_of(Collective collective, const std::string& algorithm) {
  return fmt::format("{}/{}", to_string(collective), algorithm);
}

// Those of rows that cannot run are counted, too.
std::size_t count_candidates(const TuneOptions& options, int ranks, std::size_t bytes) {
  std::size_t count = 0;
  for (const std::string& name : options.bench.algorithms) {
    const auto row = find_algorithm(options.bench.collective, name);
    const Extent extent{bytes, ranks, options.bench.token_bytes()};
    if (row.is_ok()) count += candidates_for(**row, extent, options.bench.backend).size();
  }
  return count;
}

}  // namespace

Sweep::Sweep(const TuneOptions& options, const Environment& environment,
             const std::vector<TuningEntry>& table)
    : options_(options), environment_(environment), without_(options.without) {
  double all = 0;
  for (const int ranks : options.bench.ranks) {
    SweepPart part{ranks, options.bench.bytes};
    std::erase_if(part.bytes, [&](std::size_t bytes) {
      return options.resume && is_measured(table, entry_for(ranks, bytes));
    });
    if (part.bytes.empty()) continue;
    double seconds = 0;
    for (const std::size_t bytes : part.bytes) seconds += expected(ranks, bytes);
    all += expected_start(options.bench.backend) +
           std::min(seconds, static_cast<double>(options.seconds.count()));
    parts_.push_back(std::move(part));
  }
  forecast_ = Forecast(all);
}

double Sweep::expected(int ranks, std::size_t bytes) const {
  return expected_size(bytes, count_candidates(options_, ranks, bytes));
}

TuningEntry Sweep::entry_for(int ranks, std::size_t bytes) const {
  const bool cuda = options_.bench.backend == Backend::kCuda;
  TuningEntry entry;
  entry.collective = options_.bench.collective;
  entry.backend = options_.bench.backend;
  entry.gpu = cuda ? environment_.gpu : "";
  entry.ranks = ranks;
  entry.cores = cuda ? 0 : cores_of_host();
  entry.plain = options_.bench.wanted_buffers() == BufferKind::kPlain;
  entry.min_bytes = range_begin(bytes, options_.bench.bytes);
  entry.max_bytes = bytes;
  entry.date = environment_.date.substr(0, environment_.date.find('T'));
  entry.driver = environment_.driver;
  return entry;
}

void Sweep::announce() const {
  std::size_t sizes = 0, candidates = 0;
  for (const SweepPart& part : parts_) {
    sizes += part.bytes.size();
    for (const std::size_t bytes : part.bytes) {
      candidates += count_candidates(options_, part.ranks, bytes);
    }
  }
  tell_line(stderr, "numbers of ranks: {}, sizes: {}, candidates: {}; about {}", parts_.size(),
            sizes, candidates, duration_text(forecast_.left(0)));
}

int Sweep::run() {
  announce();
  for (const SweepPart& part : parts_) {
    if (interrupted_by_ == 0) run_part(part);
  }
  tell_line(stdout, "{}: {} sizes measured", options_.bench.output, measured_);
  if (interrupted_by_ == 0) return failed_ ? kFailure : kSuccess;
  tell_line(stderr, "# interrupted; --resume goes on");
  constexpr int kSignalled = 128;  // as shells have it
  return kSignalled + interrupted_by_;
}

void Sweep::fail(const std::string& text) {
  failed_ = true;
  tell_line(stderr, "# {}", text);
}

// Until all sizes are measured, or groups fail for what cannot be left out.
void Sweep::run_part(SweepPart part) {
  const auto begin = Clock::now();
  forecast_.finish(expected_start(options_.bench.backend));
  for (int failures = 1; !part.bytes.empty(); ++failures) {
    const TuneOptions options = options_for(part, begin);
    const auto tried = attempt(part, options);
    if (!tried.is_ok()) {
      return fail(fmt::format("FAILED with {} ranks: {}", part.ranks, tried.status().to_string()));
    }
    interrupted_by_ = tried->end.interrupted_by;
    if (interrupted_by_ != 0) return;
    std::erase_if(part.bytes, [&](std::size_t bytes) {
      return std::ranges::count(tried->finished, bytes) > 0;
    });
    const std::string why = fmt::format("{}", fmt::join(tried->end.failures, "; "));
    if (why.empty()) {
      for (const std::size_t bytes : part.bytes) {
        fail(fmt::format("{} ranks, {}: no candidate is left", part.ranks, format_bytes(bytes)));
      }
      return;
    }
    if (!tried->trying || failures == kMostFailures) {
      return fail(fmt::format("FAILED with {} ranks: {}", part.ranks, why));
    }
    leave_out(part, options.bench.bytes[tried->trying->size], tried->trying->candidate, why);
  }
}

// The next group does without what the last one failed at.
void Sweep::leave_out(SweepPart& part, std::size_t bytes, const std::string& candidate,
                      const std::string& why) {
  const bool one = !candidate.empty();
  fail(fmt::format("FAILED with {} ranks, {}{}, which is left out: {}", part.ranks,
                   format_bytes(bytes), one ? ", " + candidate : "", why));
  if (one) {
    without_.push_back(candidate);
  } else {
    std::erase(part.bytes, bytes);
  }
}

TuneOptions Sweep::options_for(const SweepPart& part, Clock::time_point begin) const {
  TuneOptions options = options_;
  options.bench.ranks = {part.ranks};
  options.bench.bytes = part.bytes;
  options.without = without_;
  const auto passed = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin);
  options.seconds = std::max(options.seconds - passed, std::chrono::seconds(1));
  return options;
}

// What ends a rank is what that rank is trying, and no rank is ahead of it: all report the same
// steps, so what a group failed at is the last step that any of them reported.
Result<Sweep::Attempt> Sweep::attempt(const SweepPart& part, const TuneOptions& options) {
  Attempt attempt;
  std::vector<int> steps(static_cast<std::size_t>(part.ranks));
  int furthest = 0;
  const auto on_report = [&](int rank, const Report& report) {
    if (const auto* dropped = std::get_if<Dropped>(&report)) take(part, *dropped);
    if (const auto* trying = std::get_if<Trying>(&report)) {
      const int step = ++steps[static_cast<std::size_t>(rank)];
      if (step > furthest) attempt.trying = *trying;
      furthest = std::max(furthest, step);
    }
    if (rank != 0) return;
    if (const auto* skipped = std::get_if<Skipped>(&report)) {
      const std::string text =
          fmt::format("{} ranks: {}: {}", part.ranks, skipped->algorithm, skipped->why);
      if (told_.insert(text).second) tell_line(stderr, "# {}", text);
    } else if (const auto* tuned = std::get_if<Tuned>(&report)) {
      take(part, *tuned);
      attempt.finished.push_back(part.bytes[tuned->size]);
    }
  };
  TUTTI_ASSIGN(attempt.end, run_group({.ranks = part.ranks,
                                       .launch = options.bench.launch,
                                       .options = options.bench.communicator(),
                                       .words = rank_words(options),
                                       .work = tune_work(options)},
                                      on_report));
  return attempt;
}

void Sweep::take(const SweepPart& part, const Dropped& dropped) {
  const std::string what = fmt::format("{} ranks, {}, {}", part.ranks,
                                       format_bytes(part.bytes[dropped.size]), dropped.candidate);
  if (told_.insert(what).second) {
    fail(fmt::format("WRONG RESULT with {}: {}; dropped", what, dropped.why));
  }
}

void Sweep::take(const SweepPart& part, const Tuned& tuned) {
  const std::size_t bytes = part.bytes[tuned.size];
  TuningEntry entry = entry_for(part.ranks, bytes);
  entry.algorithm = id_of(entry.collective, tuned.best.algorithm);
  entry.blocks = tuned.best.blocks;
  entry.threads = tuned.best.threads;
  entry.chunk_bytes = tuned.best.chunk_bytes;
  entry.time_us = tuned.time_us;
  entry.samples = tuned.samples;
  if (!tuned.runner_up.empty()) entry.runner_up = id_of(entry.collective, tuned.runner_up);
  entry.runner_up_us = tuned.runner_up_us;
  const Status written = add_to_table(options_.bench.output, entry);
  if (!written.is_ok()) return fail(written.to_string());
  ++measured_;
  forecast_.finish(expected(part.ranks, bytes));
  const std::chrono::duration<double> elapsed = Clock::now() - begin_;
  tell_line(stderr, "{} ranks, {}: {}, {:.2f} us{}; {} left", part.ranks, format_bytes(bytes),
            to_text(tuned.best), tuned.time_us,
            tuned.runner_up.empty()
                ? ""
                : fmt::format(" ({} {:.2f})", tuned.runner_up, tuned.runner_up_us),
            duration_text(forecast_.left(elapsed.count())));
}

}  // namespace tutti::cli
