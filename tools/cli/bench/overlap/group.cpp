#include "bench/overlap/group.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/try.hpp"
#include "bench/launcher.hpp"
#include "bench/overlap/worker.hpp"

namespace tutti::cli {
namespace {

auto identity_of(const OverlapMeasurement& m) { return std::tie(m.phase, m.algorithm, m.plan); }

double mean_of(const std::vector<double>& samples) {
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

RankTimes times_of(const std::vector<double>& samples) {
  const Statistics s = summarize(samples);
  return {.mean = mean_of(samples), .p50 = s.p50, .p90 = s.p90, .max = s.max};
}

using Samples = std::vector<double> OverlapMeasurement::*;

Result<std::vector<double>> slowest(const std::vector<const OverlapMeasurement*>& ranks,
                                    Samples samples) {
  std::vector<std::vector<double>> all;
  all.reserve(ranks.size());
  for (const OverlapMeasurement* rank : ranks) all.push_back(rank->*samples);
  return slowest_rank(all);
}

// 0 where it was not measured.
double slowest_clock(const std::vector<const OverlapMeasurement*>& ranks) {
  double slowest = 0;
  for (const OverlapMeasurement* rank : ranks) {
    if (rank->megahertz.empty()) continue;
    const double here = summarize(rank->megahertz).p50;
    slowest = slowest == 0 ? here : std::min(slowest, here);
  }
  return slowest;
}

Row describe(const OverlapMeasurement& m, const OverlapOptions& options, int ranks) {
  const BenchOptions& bench = options.bench;
  const auto parts = static_cast<std::size_t>(gathers(m.phase) ? ranks : 0);
  const std::size_t bytes = options.part_bytes(ranks) * parts;
  return {.collective = std::string(kOverlapName),
          .algorithm = gathers(m.phase) ? m.algorithm : std::string(kMatmulName),
          .backend = std::string(to_string(bench.backend)),
          .ranks = ranks,
          .dtype = std::string(to_string(bench.dtype)),
          .op = std::string(kNoOp),
          .bytes = bytes,
          .count = bytes / size_of(bench.dtype),
          .in_place = bench.in_place && gathers(m.phase),
          .buffers = std::string(to_string(bench.wanted_buffers())),
          .mode = std::string(to_string(bench.mode)),
          .cache = std::string(to_string(bench.cache)),
          .launch = std::string(to_string(bench.launch)),
          .blocks = m.plan.blocks,
          .threads = m.plan.threads,
          .chunk_bytes = m.plan.chunk_bytes,
          .wrong = m.wrong,
          .chosen = m.chosen,
          .emulated = m.plan.emulated,
          .overlap = OverlapRow{.phase = std::string(to_string(m.phase)),
                                .m = options.matmul.m,
                                .n = options.matmul.n,
                                .k = options.matmul.k,
                                .dependent = options.dependent,
                                .tf32 = options.matmul.tf32,
                                .compute = std::string(to_string(options.compute)),
                                .pause_ms = options.pause_ms,
                                .library = m.library}};
}

double tflops(const MatmulShape& shape, double us) {
  const double operations = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                            static_cast<double>(shape.k);
  constexpr double kPerMicrosecond = 1e6;  // 1e12 a second
  return us > 0 ? operations / us / kPerMicrosecond : 0;
}

Result<Row> row_of(const std::vector<const OverlapMeasurement*>& ranks,
                   const OverlapOptions& options) {
  Row row = describe(*ranks.front(), options, static_cast<int>(ranks.size()));
  OverlapRow& overlap = *row.overlap;
  if (row.wrong) row.wrong = 0;
  for (const OverlapMeasurement* m : ranks) {
    overlap.per_rank.push_back(times_of(m->samples_us));
    row.per_rank_p50_us.push_back(overlap.per_rank.back().p50);
    if (row.wrong) *row.wrong += m->wrong.value_or(0);
  }
  TUTTI_ASSIGN(std::vector<double> all, slowest(ranks, &OverlapMeasurement::samples_us));
  TUTTI_ASSIGN(std::vector<double> matmul, slowest(ranks, &OverlapMeasurement::matmul_us));
  TUTTI_ASSIGN(std::vector<double> gather, slowest(ranks, &OverlapMeasurement::gather_us));
  overlap.mean_us = mean_of(all);
  row.time_us = summarize(std::move(all));
  overlap.matmul_us = summarize(std::move(matmul)).p50;
  overlap.gather_us = summarize(std::move(gather)).p50;
  overlap.tflops = tflops(options.matmul, overlap.matmul_us);
  overlap.megahertz = slowest_clock(ranks);
  row.algbw_gbps = algorithm_bandwidth(row.bytes, overlap.gather_us);
  row.busbw_gbps = bus_bandwidth(Collective::kAllGather, row.algbw_gbps, row.ranks);
  return row;
}

// p50 of a phase with one algorithm; empty where it was not measured.
std::optional<double> time_of(const std::vector<Row>& rows, Phase phase,
                              std::string_view algorithm) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& each) {
    return each.overlap->phase == to_string(phase) && each.algorithm == algorithm;
  });
  return row == rows.end() ? std::nullopt : std::optional(row->time_us.p50);
}

void compare_with_parts(std::vector<Row>& rows) {
  const auto matmul = time_of(rows, Phase::kMatmul, kMatmulName);
  for (Row& row : rows) {
    OverlapRow& overlap = *row.overlap;
    const bool both = overlap.matmul_us > 0 && overlap.gather_us > 0;
    if (!both || !matmul || *matmul <= 0) continue;
    overlap.exposed_us = std::max(0.0, row.time_us.p50 - *matmul);
    overlap.matmul_slowdown = overlap.matmul_us / *matmul;
    const auto gather = time_of(rows, Phase::kAllGather, row.algorithm);
    if (gather) overlap.efficiency = std::max(*matmul, *gather) / row.time_us.p50;
  }
}

}  // namespace

Result<OverlapOutcome> measure_overlap(const OverlapOptions& options, int ranks) {
  OverlapOutcome outcome{.ranks = ranks,
                         .measurements = std::vector<std::vector<OverlapMeasurement>>(
                             static_cast<std::size_t>(ranks))};
  OverlapOptions mine = options;
  mine.bench.ranks = {ranks};
  const auto take = [&](int rank, const Report& report) {
    if (const auto* measurement = std::get_if<OverlapMeasurement>(&report)) {
      outcome.measurements[static_cast<std::size_t>(rank)].push_back(*measurement);
    } else if (const auto* skipped = std::get_if<Skipped>(&report); skipped && rank == 0) {
      outcome.skipped.push_back(*skipped);
    }
  };
  TUTTI_ASSIGN(outcome.end, run_group({.ranks = ranks,
                                       .launch = options.bench.launch,
                                       .joins = !options.bench.launcher.empty(),
                                       .options = options.bench.communicator(),
                                       .words = to_arguments(mine),
                                       .work = overlap_work(options)},
                                      take));
  return outcome;
}

Result<std::vector<Row>> rows_of(const OverlapOutcome& outcome, const OverlapOptions& options) {
  std::vector<Row> rows;
  const auto& first = outcome.measurements.front();
  for (std::size_t k = 0; k < first.size(); ++k) {
    std::vector<const OverlapMeasurement*> same;
    for (const auto& rank : outcome.measurements) {
      if (k >= rank.size() || identity_of(rank[k]) != identity_of(first[k])) {
        return Status(StatusCode::kMismatch,
                      fmt::format("rank {} did not measure {} {} as rank 0 did", same.size(),
                                  to_string(first[k].phase), first[k].algorithm));
      }
      same.push_back(&rank[k]);
    }
    TUTTI_ASSIGN(Row row, row_of(same, options));
    rows.push_back(std::move(row));
  }
  compare_with_parts(rows);
  return rows;
}

}  // namespace tutti::cli
