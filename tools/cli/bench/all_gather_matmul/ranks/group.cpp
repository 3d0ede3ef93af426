#include "bench/all_gather_matmul/ranks/group.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"
#include "bench/all_gather_matmul/ranks/worker.hpp"
#include "bench/launcher.hpp"
#include "bench/matmul/command.hpp"

namespace tutti::cli {
namespace {

using OfRanks = std::vector<const GatherMatmulMeasurement*>;

// Since the last setting of which all ranks told.
class Settings {
 public:
  Settings(int ranks, const std::function<void(const GatherMatmulOutcome&)>& on_setting)
      : on_setting_(on_setting) {
    told_.ranks.resize(static_cast<std::size_t>(ranks));
  }

  // A rank that is ahead may already tell of the next setting.
  void take(int rank, const GatherMatmulMeasurement& measurement) {
    told_.ranks[static_cast<std::size_t>(rank)].push_back(measurement);
    if (!measurement.last) return;
    GatherMatmulOutcome setting;
    for (const auto& rows : told_.ranks) {
      const auto last = std::ranges::find_if(rows, [](const auto& row) { return row.last; });
      if (last == rows.end()) return;
      setting.ranks.emplace_back(rows.begin(), last + 1);
    }
    for (std::size_t k = 0; k < told_.ranks.size(); ++k) {
      auto& rows = told_.ranks[k];
      rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(setting.ranks[k].size()));
    }
    on_setting_(setting);
  }

 private:
  const std::function<void(const GatherMatmulOutcome&)>& on_setting_;
  GatherMatmulOutcome told_;
};

double speed_of(const MatmulExtents& of, double us) {
  const double operations =
      2.0 * static_cast<double>(of.m) * static_cast<double>(of.n) * static_cast<double>(of.k);
  constexpr double kPerMicrosecond = 1e6;  // 1e12 a second
  return us > 0 ? operations / us / kPerMicrosecond : 0;
}

Row describe_gathered(const GatherMatmulMeasurement& m, const GatherMatmulOptions& options,
                      int ranks) {
  const BenchOptions& bench = options.matmul.bench;
  const MatmulSetting setting = settings_of(options.matmul)[m.setting];
  const auto& extents = setting.extents;
  const std::size_t elements =
      extents.m * extents.k + extents.k * extents.n + extents.m * extents.n;
  const bool cuda = bench.backend == Backend::kCuda;
  return {
      .collective = std::string(kAllGatherMatmulName),
      .algorithm = m.algorithm,
      .backend = std::string(to_string(bench.backend)),
      .ranks = ranks,
      .dtype = std::string(to_string(setting.dtype)),
      .op = std::string(kNoOp),
      .bytes = elements * size_of(setting.dtype),
      .count = extents.m * extents.n,
      .buffers = std::string(to_string(bench.wanted_buffers())),
      .mode = std::string(to_string(Mode::kEager)),
      .cache = std::string(to_string(cuda ? Cache::kCold : Cache::kHot)),
      .launch = std::string(to_string(bench.launch)),
      .wrong = m.wrong,
      .matmul = MatmulRow{.m = extents.m,
                          .n = extents.n,
                          .k = extents.k,
                          .layout = std::string(to_string(setting.layout)),
                          .config = m.config,
                          .library = m.library,
                          .gathered = GatheredRow{.pipeline = options.pipeline_text(m.algorithm),
                                                  .calls = options.calls}}};
}

Result<Row> row_of_ranks(const OfRanks& ranks, const GatherMatmulOptions& options) {
  Row row = describe_gathered(*ranks.front(), options, static_cast<int>(ranks.size()));
  MatmulRow& matmul = *row.matmul;
  if (row.wrong) row.wrong = 0;
  std::vector<std::vector<double>> samples;
  for (const GatherMatmulMeasurement* m : ranks) {
    samples.push_back(m->samples_us);
    row.per_rank_p50_us.push_back(summarize(m->samples_us).p50);
    matmul.gathered->host_us = std::max(matmul.gathered->host_us, m->host_us);
    const bool slower = matmul.megahertz == 0 || m->megahertz < matmul.megahertz;
    if (m->megahertz > 0 && slower) matmul.megahertz = m->megahertz;
    if (row.wrong) *row.wrong += m->wrong.value_or(0);
  }
  TUTTI_ASSIGN(std::vector<double> slowest, slowest_rank(samples));
  row.time_us = summarize(std::move(slowest));
  row.algbw_gbps = algorithm_bandwidth(row.bytes, row.time_us.p50);
  matmul.tflops = speed_of({matmul.m, matmul.n, matmul.k}, row.time_us.p50);
  return row;
}

const Row* named(const std::vector<Row>& rows, std::string_view algorithm) {
  const auto row =
      std::ranges::find_if(rows, [&](const Row& each) { return each.algorithm == algorithm; });
  return row == rows.end() || row->time_us.p50 <= 0 ? nullptr : &*row;
}

// The fastest row of the matmul alone.
const Row* fastest_alone(const std::vector<Row>& rows) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (!is_alone(row.algorithm) || row.time_us.p50 <= 0) continue;
    if (best == nullptr || row.time_us.p50 < best->time_us.p50) best = &row;
  }
  return best;
}

void compare_with_others(std::vector<Row>& rows) {
  const Row* const alone = fastest_alone(rows);
  const Row* const unfused = named(rows, kUnfusedRow);
  const Row* const peer = named(rows, kCublasLtAloneRow);
  for (Row& row : rows) {
    const double us = row.time_us.p50;
    if (us <= 0) continue;
    GatheredRow& gathered = *row.matmul->gathered;
    if (peer != nullptr) row.matmul->ratio = peer->time_us.p50 / us;
    const bool gathers = !is_alone(row.algorithm);
    if (unfused != nullptr && gathers) gathered.speed_up = unfused->time_us.p50 / us;
    if (alone == nullptr) continue;
    gathered.alone = alone->algorithm;
    gathered.over_alone = us / alone->time_us.p50;
    if (gathers) gathered.exposed_us = std::max(0.0, us - alone->time_us.p50);
  }
}

}  // namespace

Result<GatherMatmulEnd> measure_gather_matmuls(
    const GatherMatmulOptions& options, int ranks,
    const std::function<void(const GatherMatmulOutcome&)>& on_setting) {
  GatherMatmulEnd end;
  Settings settings(ranks, on_setting);
  GatherMatmulOptions mine = options;
  mine.matmul.bench.ranks = {ranks};
  const auto take = [&](int rank, const Report& report) {
    if (const auto* measurement = std::get_if<GatherMatmulMeasurement>(&report)) {
      settings.take(rank, *measurement);
    } else if (const auto* skipped = std::get_if<Skipped>(&report); skipped && rank == 0) {
      end.skipped.push_back(*skipped);
    }
  };
  const BenchOptions& bench = options.matmul.bench;
  TUTTI_ASSIGN(end.end, run_group({.ranks = ranks,
                                   .launch = bench.launch,
                                   .joins = !bench.launcher.empty(),
                                   .options = bench.communicator(),
                                   .words = to_arguments(mine),
                                   .work = gather_matmul_work(options)},
                                  take));
  return end;
}

Result<std::vector<Row>> rows_of(const GatherMatmulOutcome& outcome,
                                 const GatherMatmulOptions& options) {
  std::vector<Row> rows;
  const auto& first = outcome.ranks.front();
  for (std::size_t k = 0; k < first.size(); ++k) {
    OfRanks same;
    for (const auto& rank : outcome.ranks) {
      const bool is_same = k < rank.size() && rank[k].setting == first[k].setting &&
                           rank[k].algorithm == first[k].algorithm;
      if (!is_same) {
        return Status(StatusCode::kMismatch, fmt::format("rank {} did not measure {} as rank 0 did",
                                                         same.size(), first[k].algorithm));
      }
      same.push_back(&rank[k]);
    }
    TUTTI_ASSIGN(Row row, row_of_ranks(same, options));
    rows.push_back(std::move(row));
  }
  compare_with_others(rows);
  return rows;
}

}  // namespace tutti::cli
