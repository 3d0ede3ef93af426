#include "bench/matmul/measure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/try.hpp"
#include "bench/statistics.hpp"

namespace tutti::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHeuristicRounds = 6;
constexpr std::chrono::seconds kWarmAgain{1};

void forget_samples(const std::vector<MatmulArm*>& arms) {
  for (MatmulArm* arm : arms) {
    arm->samples_us.clear();
    arm->megahertz.clear();
    arm->host_us.clear();
  }
}

double median_of(const std::vector<double>& samples) { return summarize(samples).p50; }

class MatmulMeasuring {
 public:
  MatmulMeasuring(MatmulDevice& device, const MatmulBenchOptions& options, MatmulSets& sets,
                  MatmulArms& arms)
      : device_(device), options_(options), sets_(sets), arms_(arms) {}

  Result<MeasuredMatmul> run() {
    TUTTI_TRY(prepare(arms_.calls));
    TUTTI_TRY(prepare(arms_.heuristics));
    TUTTI_TRY(find_peer());
    for (MatmulArm& arm : arms_.calls) all_.push_back(&arm);
    if (peer_ != nullptr) all_.push_back(peer_);
    if (all_.empty()) return MeasuredMatmul{.skipped = arms_.skipped};
    wrong_.resize(all_.size());
    TUTTI_TRY(check(0));
    // A check leaves the device idle for a moment; where heuristics ran before, it is warm.
    const auto seconds = std::chrono::seconds(options_.seconds);
    TUTTI_TRY(warm(all_, peer_ == nullptr ? seconds : std::min(seconds, kWarmAgain)));
    TUTTI_TRY(sample_all());
    TUTTI_TRY(check(sets_.size() - 1));
    return told();
  }

 private:
  Status prepare(std::vector<MatmulArm>& arms) {
    for (MatmulArm& arm : arms) {
      const Status status = device_.prepare(arm, sets_.size());
      if (!status.is_ok()) return status.with_context(arm.algorithm + " " + arm.config);
    }
    return arms_.ended ? arms_.ended() : Status::ok();
  }

  // The fastest of cuBLASLt's heuristics, and the same once more, so that noise is known.
  Status find_peer() {
    if (arms_.heuristics.empty()) return Status::ok();
    std::vector<MatmulArm*> candidates;
    for (MatmulArm& arm : arms_.heuristics) candidates.push_back(&arm);
    TUTTI_TRY(warm(candidates, std::chrono::seconds(options_.seconds)));
    forget_samples(candidates);
    TUTTI_TRY(sample(candidates, kHeuristicRounds));
    peer_ = *std::ranges::min_element(
        candidates, {}, [](const MatmulArm* arm) { return median_of(arm->samples_us); });
    again_ = *peer_;
    return Status::ok();
  }

  // One sample of each into poisoned memory, and what it wrote into one of the sets.
  Status check(std::size_t set) {
    if (!options_.bench.check) return Status::ok();
    for (std::size_t k = 0; k < all_.size(); ++k) {
      if (!all_[k]->multiplies) continue;
      TUTTI_TRY(sets_.poison());
      if (arms_.poison) TUTTI_TRY(arms_.poison());
      TUTTI_TRY(sample({all_[k]}, 1));
      TUTTI_ASSIGN(const Mismatches found, sets_.check(set, flips(all_[k]->algorithm)));
      note(found, wrong_[k]);
      if (!arms_.compare) continue;
      TUTTI_ASSIGN(const Mismatches others, arms_.compare(*all_[k], set));
      note(others, wrong_[k]);
    }
    return Status::ok();
  }

  static void note(const Mismatches& found, Mismatches& all) {
    if (all.count == 0) all.first = found.first;
    all.count += found.count;
  }

  // As the device's, and what only shows on the device.
  Status sample(const std::vector<MatmulArm*>& arms, int rounds) {
    TUTTI_TRY(device_.sample(arms, rounds));
    return arms_.ended ? arms_.ended() : Status::ok();
  }

  bool flips(std::string_view algorithm) const {
    const Injection& inject = options_.bench.inject;
    return inject.kind == Injection::Kind::kFlip && inject.hits(0, algorithm);
  }

  Status warm(const std::vector<MatmulArm*>& arms, std::chrono::seconds time) {
    const auto end = Clock::now() + time;
    while (true) {
      TUTTI_ASSIGN(const bool more, device_.agreed(Clock::now() < end));
      if (!more) return Status::ok();
      TUTTI_TRY(sample(arms, 1));
    }
  }

  Status sample_all() {
    std::vector<MatmulArm*> arms = all_;
    if (peer_ != nullptr) arms.push_back(&again_);
    if (options_.bench.warmup > 0) TUTTI_TRY(sample(arms, options_.bench.warmup));
    forget_samples(arms);
    device_.watts();
    TUTTI_TRY(sample(arms, options_.bench.iterations));
    watts_ = device_.watts();
    for (MatmulArm* arm : all_) {
      clocks_.push_back(median_of(arm->megahertz));
      times_.push_back(arm->samples_us);
      host_times_.push_back(median_of(arm->host_us));
    }
    return Status::ok();
  }

  MeasuredMatmul told() {
    MeasuredMatmul measured{.samples_us = times_, .host_us = host_times_, .skipped = arms_.skipped};
    for (std::size_t k = 0; k < all_.size(); ++k) {
      measured.rows.push_back(row_of(k));
      if (wrong_[k].count == 0) continue;
      const MatmulExtents& of = sets_.setting().extents;
      measured.wrong.push_back(
          fmt::format("WRONG RESULT of {}, m {}, n {}, k {}: {} elements, first row {}, column {}",
                      all_[k]->algorithm, of.m, of.n, of.k, wrong_[k].count, wrong_[k].first / of.n,
                      wrong_[k].first % of.n));
    }
    return measured;
  }

  Row row_of(std::size_t which) const {
    const MatmulArm& arm = *all_[which];
    const MatmulSetting& setting = sets_.setting();
    const auto& [m, n, k] = setting.extents;
    const bool cuda = options_.bench.backend == Backend::kCuda;
    Row row{.collective = std::string(kMatmulBenchName),
            .algorithm = arm.algorithm,
            .backend = std::string(to_string(options_.bench.backend)),
            .ranks = 1,
            .dtype = std::string(to_string(setting.dtype)),
            .op = std::string(kNoOp),
            .bytes = sets_.bytes(),
            .count = m * n * static_cast<std::size_t>(setting.products),
            .buffers = std::string(to_string(BufferKind::kPlain)),
            .mode = std::string(to_string(options_.bench.mode)),
            .cache = std::string(to_string(cuda ? Cache::kCold : Cache::kHot)),
            .launch = std::string(to_string(options_.bench.launch)),
            .time_us = summarize(times_[which]),
            .chosen = arm.chosen};
    row.per_rank_p50_us = {row.time_us.p50};
    row.algbw_gbps = algorithm_bandwidth(row.bytes, row.time_us.p50);
    if (options_.bench.check && arm.multiplies) row.wrong = wrong_[which].count;
    row.matmul = matmul_of(which, row.time_us.p50);
    return row;
  }

  MatmulRow matmul_of(std::size_t which, double time_us) const {
    const MatmulArm& arm = *all_[which];
    const MatmulSetting& setting = sets_.setting();
    const auto& [m, n, k] = setting.extents;
    MatmulRow row{.m = m,
                  .n = n,
                  .k = k,
                  .layout = std::string(to_string(setting.layout)),
                  .products = setting.products,
                  .bias = setting.bias,
                  .tile = arm.tile,
                  .config = arm.config,
                  .library = arm.library,
                  .megahertz = clocks_[which],
                  .watts = watts_,
                  .fill = arm.fill};
    const double operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) *
                              static_cast<double>(k) * setting.products;
    if (time_us > 0 && arm.multiplies) row.tflops = operations / time_us / 1e6;
    const double at_most = device_.operations_per_cycle() * row.megahertz / 1e6;  // TFLOP/s
    if (at_most > 0 && setting.dtype != DataType::kFloat32) row.utilisation = row.tflops / at_most;
    if (peer_ == nullptr || time_us <= 0) return row;
    row.ratio = median_of(peer_->samples_us) / time_us;
    if (&arm == peer_) row.noise = noise_of(peer_->samples_us, again_.samples_us);
    return row;
  }

  MatmulDevice& device_;
  const MatmulBenchOptions& options_;
  MatmulSets& sets_;
  MatmulArms& arms_;
  MatmulArm* peer_ = nullptr;      // null: cuBLASLt is not measured
  MatmulArm again_;                // the same
  std::vector<MatmulArm*> all_;    // that have rows
  std::vector<Mismatches> wrong_;  // of each
  std::vector<std::vector<double>> times_;
  std::vector<double> clocks_, host_times_;
  double watts_ = 0;
};

}  // namespace

MatmulNoise noise_of(const std::vector<double>& samples, const std::vector<double>& again) {
  std::vector<double> ratios;
  for (std::size_t k = 0; k < std::min(samples.size(), again.size()); ++k) {
    if (again[k] > 0) ratios.push_back(samples[k] / again[k]);
  }
  const Statistics of = summarize(ratios);
  std::vector<double> negative;  // nearest rank from below
  negative.reserve(ratios.size());
  for (const double ratio : ratios) negative.push_back(-ratio);
  return {.p10 = -summarize(std::move(negative)).p90, .p50 = of.p50, .p90 = of.p90};
}

Result<MeasuredMatmul> measure_matmul(MatmulDevice& device, CudaDriver* cuda,
                                      const MatmulBenchOptions& options,
                                      const MatmulSetting& setting) {
  TUTTI_ASSIGN(MatmulSets sets, MatmulSets::make(device, setting));
  TUTTI_ASSIGN(MatmulArms arms, make_matmul_arms(cuda, options, sets, device.multiprocessors()));
  return measure_arms(device, options, sets, arms);
}

Result<MeasuredMatmul> measure_arms(MatmulDevice& device, const MatmulBenchOptions& options,
                                    MatmulSets& sets, MatmulArms& arms) {
  return MatmulMeasuring(device, options, sets, arms).run();
}

}  // namespace tutti::cli
