#include "bench/all_gather_matmul/ranks/worker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "bench/all_gather_matmul/ranks/arms.hpp"
#include "bench/matmul/command.hpp"
#include "bench/matmul/measure.hpp"

namespace tutti::cli {
namespace {

class RankGatherMatmul {
 public:
  RankGatherMatmul(Communicator& communicator, const GatherMatmulOptions& options,
                   const Reporter& reporter)
      : communicator_(communicator),
        options_(options),
        report_(reporter),
        of_gather_(options.matmul.bench),
        rows_(communicator, of_gather_, reporter) {
    of_gather_.algorithms.clear();
    if (std::ranges::count(options.algorithms, kNcclUnfusedRow) > 0) {
      of_gather_.algorithms.emplace_back(kNcclName);
    }
    mine_ = options.matmul;  // which of its rows are wrong on purpose
    Injection& inject = mine_.bench.inject;
    inject.rank = inject.rank == communicator.rank() ? 0 : -1;
  }

  Status run() {
    TUTTI_TRY(open());
    const std::vector<MatmulSetting> settings = settings_of(options_.matmul);
    for (std::size_t which = 0; which < settings.size(); ++which) {
      const auto& [m, n, k] = settings[which].extents;
      const Status status = measure(which, settings[which]);
      if (!status.is_ok()) return status.with_context(fmt::format("m {}, n {}, k {}", m, n, k));
    }
    return Status::ok();
  }

 private:
  // Collective.
  Status open() {
    TUTTI_TRY(rows_.open());  // before there is memory
    TUTTI_ASSIGN(RanksTogether together,
                 RanksTogether::make(communicator_, report_, options_.matmul.bench.timeout));
    ranks_ = std::make_unique<RanksTogether>(std::move(together));
    const MatmulLaunch launch{.calls = options_.calls, .ranks = ranks_.get()};
    if (communicator_.backend() == Backend::kHost) {
      device_ = make_host_matmul_device(launch);
      return Status::ok();
    }
    std::string why;
    cuda_ = real_cuda(&why);
    if (cuda_ == nullptr) return {StatusCode::kUnavailable, why};
    TUTTI_TRY(cuda_->set_device(communicator_.device()));
    TUTTI_ASSIGN(device_, make_cuda_matmul_device(*cuda_, nullptr, launch));
    return Status::ok();
  }

  Status measure(std::size_t which, const MatmulSetting& setting) {
    TUTTI_ASSIGN(GatherMatrices matrices,
                 GatherMatrices::make(communicator_, *device_, setting, options_.calls));
    const GatherPlace place{.communicator = communicator_,
                            .ranks = *ranks_,
                            .device = *device_,
                            .cuda = cuda_,
                            .rows = rows_};
    TUTTI_ASSIGN(MatmulArms arms, make_gather_arms(place, options_, matrices));
    TUTTI_ASSIGN(const MeasuredMatmul measured,
                 measure_arms(*device_, mine_, matrices.sets(), arms));
    for (const Skipped& each : measured.skipped) TUTTI_TRY(tell_once(each));
    return tell(which, measured);
  }

  Status tell_once(const Skipped& skipped) {
    const auto known = std::pair(skipped.algorithm, skipped.why);
    if (std::ranges::count(told_, known) > 0) return Status::ok();
    told_.push_back(known);
    return report_(skipped);
  }

  Status tell(std::size_t which, const MeasuredMatmul& measured) {
    auto wrong = measured.wrong.begin();
    for (std::size_t k = 0; k < measured.rows.size(); ++k) {
      const Row& row = measured.rows[k];
      GatherMatmulMeasurement told{.setting = which,
                                   .algorithm = row.algorithm,
                                   .config = row.matmul->config,
                                   .library = row.matmul->library,
                                   .last = k + 1 == measured.rows.size(),
                                   .samples_us = measured.samples_us[k],
                                   .host_us = measured.host_us[k],
                                   .megahertz = row.matmul->megahertz,
                                   .wrong = row.wrong};
      if (row.wrong.value_or(0) > 0) {
        told.first_wrong = fmt::format("rank {}: {}", communicator_.rank(), *wrong++);
      }
      TUTTI_TRY(report_(told));
    }
    return Status::ok();
  }

  Communicator& communicator_;
  const GatherMatmulOptions& options_;
  const Reporter& report_;
  BenchOptions of_gather_;
  RunnableRows rows_;
  MatmulBenchOptions mine_;
  std::unique_ptr<RanksTogether> ranks_;
  CudaDriver* cuda_ = nullptr;
  std::unique_ptr<MatmulDevice> device_;
  std::vector<std::pair<std::string, std::string>> told_;  // what cannot run, and why
};

}  // namespace

RankWork gather_matmul_work(const GatherMatmulOptions& options) {
  return [&options](Communicator& communicator, const Reporter& reporter) {
    RankGatherMatmul rank(communicator, options, reporter);
    const Status status = rank.run();
    if (!status.is_ok()) give_up(communicator, status);
    return status;
  };
}

}  // namespace tutti::cli
