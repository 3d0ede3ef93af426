#include "laboratory/campaigns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace tutti::laboratory {

Finding run_random(const Setup& setup, std::uint64_t seed, std::uint64_t schedules,
                   const Experiment::Options& options) {
  Experiment experiment(setup);
  Finding finding;
  for (std::uint64_t i = 0; i < schedules && !finding.found(); ++i) {
    simulated::RandomSchedule schedule(seed + i, setup.ranks);
    experiment.run(schedule, options);
    finding = {seed + i, i + 1, experiment.violation()};
  }
  return finding;
}

Exhausted run_exhaustive(const Setup& setup, std::uint64_t limit,
                         const Experiment::Options& options) {
  Experiment experiment(setup);
  simulated::ExhaustiveSchedule schedule;
  Exhausted all;
  do {
    if (!experiment.run(schedule, options)) {
      ++all.redundant;
    } else {
      all.finding = {0, all.finding.schedules + 1, experiment.violation()};
    }
    if (all.finding.found()) return all;
    if (all.finding.schedules + all.redundant >= limit) return all;
  } while (schedule.advance());
  all.complete = true;
  return all;
}

std::vector<std::string> story_of(const Setup& setup, std::uint64_t seed,
                                  Experiment::Options options) {
  std::vector<std::string> story;
  options.story = &story;
  Experiment experiment(setup);
  simulated::RandomSchedule schedule(seed, setup.ranks);
  experiment.run(schedule, options);
  const simulated::Violation& violation = experiment.violation();
  story.push_back(violation.breach == simulated::Breach::kNone ? "all is well" : violation.text);
  return story;
}

namespace {

// Where a mutation must show: with three ranks, so that the third can be ahead of what the other
// two have agreed on, and with every way of passing buffers.
std::vector<Setup> setups_for_mutations(const Algorithm& row) {
  std::vector<Setup> all;
  for (const Buffers buffers : kAllBuffers) {
    if (!runs(row, buffers)) continue;
    const bool scales = row.takes(DataType::kFloat32, OpKind::kPreMulSum);
    Setup setup{&row,
                test::ranks_for(row, 3),
                1,
                127,
                scales ? 3 : 4,
                buffers,
                scales ? OpKind::kPreMulSum : OpKind::kSum};
    all.push_back(setup);
    setup.counts_on_device = true;
    if (has_device_counts(setup)) all.push_back(setup);
  }
  return all;
}

// Of an operation, at whichever rank: one may do what others do not.
std::vector<simulated::Mutation> mutations_of(const Setup& setup) {
  std::vector<simulated::Mutation> all;
  for (int rank = 0; rank < setup.ranks; ++rank) {
    Experiment experiment(setup);
    simulated::RandomSchedule schedule(1, setup.ranks);
    experiment.run(schedule, {.traced = rank});
    for (const auto& mutation : simulated::mutations_of(experiment.trace(), setup.ranks)) {
      if (std::find(all.begin(), all.end(), mutation) == all.end()) all.push_back(mutation);
    }
  }
  return all;
}

}  // namespace

std::vector<MutationResult> run_mutations(std::uint64_t schedules) {
  std::vector<MutationResult> results;
  for (const Algorithm& row : catalogue()) {
    if (row.host == nullptr || row.sends_messages) continue;
    for (const Setup& setup : setups_for_mutations(row)) {
      for (const simulated::Mutation& mutation : mutations_of(setup)) {
        results.push_back({setup, mutation, {}});
      }
    }
  }
  in_parallel(results.size(), [&](std::size_t i) {
    MutationResult& result = results[i];
    Experiment::Options options;
    options.mutation = &result.mutation;
    result.finding = run_random(result.setup, 1, schedules, options);
  });
  return results;
}

std::vector<std::string> table_of(const std::vector<MutationResult>& results) {
  std::vector<std::string> lines{"| row | buffers | taken away | found as | in schedule |",
                                 "|---|---|---|---|---|"};
  for (const MutationResult& result : results) {
    const Algorithm& row = *result.setup.row;
    const bool is_all_reduce = row.collective == Collective::kAllReduce;
    lines.push_back(fmt::format(
        "| {} | {}{} | {} | {} | {} |", is_all_reduce ? row.name() : row.id,
        to_string(result.setup.buffers), result.setup.counts_on_device ? ", device counts" : "",
        describe(result.mutation), to_string(result.finding.violation.breach),
        result.finding.schedules));
  }
  return lines;
}

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < count; i = next++) job(i);
    });
  }
}

}  // namespace tutti::laboratory
