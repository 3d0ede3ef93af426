#include "bench/worker.hpp"

#include "base/try.hpp"
#include "bench/sampler.hpp"
#include "bench/trace.hpp"

namespace tutti::cli {
namespace {

struct Entry {
  Measurement measurement;
  std::unique_ptr<Trial> trial;
};

class RankBench {
 public:
  RankBench(Communicator& communicator, const BenchOptions& options, const Reporter& reporter)
      : options_(options),
        report_(reporter),
        ranks_(communicator.size()),
        sampler_(communicator, options, reporter) {}

  Status run() {
    TUTTI_TRY(sampler_.open());
    TUTTI_TRY(sweep(false));
    return options_.in_place ? sweep(true) : Status::ok();
  }

 private:
  Status sweep(bool in_place) {
    for (std::size_t size = 0; size < options_.bytes.size(); ++size) {
      TUTTI_TRY(measure(size, in_place));
    }
    return Status::ok();
  }
  Status measure(std::size_t size, bool in_place);
  Result<std::vector<Entry>> choose_entries(std::size_t size, bool in_place);
  Status take_samples(std::span<Entry> entries);

  const BenchOptions& options_;
  const Reporter& report_;
  int ranks_;
  Sampler sampler_;
};

// The algorithms that can run, the same on every rank.
Result<std::vector<Entry>> RankBench::choose_entries(std::size_t size, bool in_place) {
  TUTTI_ASSIGN(const std::vector<Runnable> rows, sampler_.runnable());
  std::vector<Entry> entries;
  entries.reserve(rows.size());
  for (const Runnable& row : rows) {
    entries.push_back({.measurement = {.size = size,
                                       .algorithm = row.algorithm,
                                       .in_place = in_place,
                                       .chosen = row.chosen,
                                       .plain = sampler_.lacks_symmetric(),
                                       .plan = row.plan},
                       .trial = nullptr});
  }
  return entries;
}

Status RankBench::measure(std::size_t size, bool in_place) {
  sampler_.begin(options_.message_bytes(size, ranks_), in_place);
  TUTTI_ASSIGN(auto entries, choose_entries(size, in_place));
  for (Entry& entry : entries) {
    const Plan& plan = entry.measurement.plan;
    TUTTI_ASSIGN(entry.trial, sampler_.prepare({.algorithm = entry.measurement.algorithm,
                                                .blocks = plan.blocks,
                                                .threads = plan.threads,
                                                .chunk_bytes = plan.chunk_bytes,
                                                .by_itself = plan.alone}));
  }
  if (!entries.empty()) TUTTI_TRY(take_samples(entries));
  if (!entries.empty()) entries.back().measurement.last = true;
  for (auto& [measurement, trial] : entries) {
    const Contender& contender = trial->contender;
    measurement.sent_bytes = static_cast<double>(contender.use.sent_bytes) /
                             static_cast<double>(contender.samples_us.size());
    measurement.cpu_share = contender.use.cpu_share();
    measurement.samples_us = std::move(trial->contender.samples_us);
    if (trial->unstaged) measurement.unstaged_us = std::move(trial->unstaged->samples_us);
    measurement.wrong = trial->wrong;
    measurement.first_wrong = trial->first_wrong;
    TUTTI_TRY(report_(measurement));
  }
  return Status::ok();
}

Status RankBench::take_samples(std::span<Entry> entries) {
  std::vector<Contender*> all;
  for (const Entry& entry : entries) {
    all.push_back(&entry.trial->contender);
    if (entry.trial->unstaged) all.push_back(entry.trial->unstaged.get());
  }
  const auto checked_round = [&] {
    for (const Entry& entry : entries) TUTTI_TRY(sampler_.sample_checked(*entry.trial));
    return Status::ok();
  };
  TUTTI_TRY(sampler_.fill_inputs(0));
  TUTTI_TRY(sampler_.sample(all, options_.warmup));
  for (Contender* contender : all) {
    contender->samples_us.clear();
    contender->use = {};
  }
  if (!options_.check) return sampler_.sample(all, options_.iterations);
  TUTTI_TRY(checked_round());
  if (options_.iterations == 1) return Status::ok();
  TUTTI_TRY(sampler_.sample(all, options_.iterations - 2));
  TUTTI_TRY(sampler_.fill_inputs(1));  // fresh: what is left over cannot pass
  return checked_round();
}

}  // namespace

RankWork bench_work(const BenchOptions& options) {
  return [&options](Communicator& communicator, const Reporter& reporter) {
    RankBench bench(communicator, options, reporter);
    const Status status = bench.run();
    if (!options.trace.empty()) {
      auto operations = recorded_operations(communicator);
      if (operations.is_ok()) TUTTI_TRY(reporter(Operations{std::move(*operations)}));
    }
    if (!status.is_ok()) give_up(communicator, status);
    return status;
  };
}

}  // namespace tutti::cli
