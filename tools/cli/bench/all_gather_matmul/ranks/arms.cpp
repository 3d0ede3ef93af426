#include "bench/all_gather_matmul/ranks/arms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/try.hpp"
#include "base/units.hpp"
#include "bench/all_gather_matmul/bits.hpp"
#include "bench/statistics.hpp"
#include "drivers/matmul.hpp"
#include "matmul/host.hpp"
#include "matmul/select.hpp"
#include "tutti/collectives.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kShardAlignment = 4096;
constexpr int kRoundsToChoose = 6;  // among heuristics

// Whether what a plan says is multiplied by the kernel whose bits depend on K alone.
bool is_by_own(const std::string& algorithm, const std::string& config) {
  return algorithm == kOwnAloneRow ||
         config.find(to_string(MatmulAlgorithm::kOwn)) != std::string::npos;
}

// "put, 4 streams, own_matmul" of "pipelined_ring, put, 4 streams, own_matmul"
std::string without_name(const std::string& config, const std::string& algorithm) {
  const std::string name = algorithm + ", ";
  return config.starts_with(name) ? config.substr(name.size()) : config;
}

std::string fixed(double value) { return fmt::format("{:.3f}", value); }

// Calls of all_gather_matmul() on the sets. Both must outlive it.
struct GatherCalls {
  const GatherMatmulOptions* options;
  const GatherMatrices* matrices;

  // `algorithm` must outlive the call.
  AllGatherMatmul on(std::size_t set, std::string_view algorithm) const {
    const MatmulSets& sets = matrices->sets();
    const MatmulSetting& setting = sets.setting();
    const auto& [m, n, k] = setting.extents;
    return {.a = matrices->shard(set),
            .b = sets.b(set, 0),
            .c = sets.c(set, 0),
            .m = m,
            .n = n,
            .k = k,
            .dtype = setting.dtype,
            .b_layout = setting.layout,
            .workspace = matrices->gathered(set),
            .workspace_bytes = matrices->gathered_bytes(),
            .algorithm = algorithm,
            .pipeline = options->pipeline(),
            .fused = options->fused()};
  }
};

class GatherArmMaker {
 public:
  GatherArmMaker(const GatherPlace& place, const GatherMatmulOptions& options,
                 const GatherMatrices& matrices)
      : place_(place), options_(options), matrices_(matrices), sets_(matrices.sets()) {}

  Result<MatmulArms> make() {
    if (place_.cuda != nullptr) {
      TUTTI_TRY(choose_heuristic());
      TUTTI_TRY(add_alone(kOwnAloneRow, to_string(MatmulAlgorithm::kOwn)));
    } else {
      TUTTI_TRY(add_alone(kHostAloneRow, to_string(MatmulAlgorithm::kHost)));
    }
    for (const std::string& name : options_.algorithms) {
      TUTTI_TRY(end_as_told(options_.matmul.bench.inject, place_.communicator.rank(), name));
      TUTTI_TRY(add(name, name == kNcclUnfusedRow ? nccl() : algorithm(name)));
    }
    return std::move(arms_);
  }

 private:
  Result<MatmulArm> algorithm(const std::string& name) const {
    const GatherCalls calls{&options_, &matrices_};
    TUTTI_ASSIGN(const AllGatherMatmulPlan planned, plan(place_.communicator, calls.on(0, name)));
    MatmulArm arm{.algorithm = name, .config = without_name(planned.config, name)};
    arm.run = [calls, name, &communicator = place_.communicator](std::size_t set, Stream stream) {
      AllGatherMatmul call = calls.on(set, name);
      call.stream = stream;
      return all_gather_matmul(communicator, call);
    };
    return arm;
  }

  Result<MatmulArm> alone(std::string_view row, std::string_view algorithm) const {
    const auto call_of = [&sets = sets_, algorithm](std::size_t set) {
      const MatmulSetting& setting = sets.setting();
      const auto& [m, n, k] = setting.extents;
      return Matmul{.a = sets.a(set),
                    .b = sets.b(set, 0),
                    .c = sets.c(set, 0),
                    .m = m,
                    .n = n,
                    .k = k,
                    .dtype = setting.dtype,
                    .b_layout = setting.layout,
                    .algorithm = algorithm};
    };
    const Backend backend = place_.communicator.backend();
    Matmul first = call_of(0);
    first.backend = backend;
    TUTTI_ASSIGN(const MatmulPlan planned, plan(first));
    MatmulArm arm{.algorithm = std::string(row), .config = planned.config};
    if (place_.cuda == nullptr) arm.library = host_matmul_library();
    arm.run = [call_of, backend](std::size_t set, Stream stream) {
      Matmul call = call_of(set);
      call.backend = backend;
      return matmul(stream, call);
    };
    return arm;
  }

  Result<std::shared_ptr<LibraryMatmul>> library() const {
    const MatmulSetting& setting = sets_.setting();
    const auto& [m, n, k] = setting.extents;
    TUTTI_ASSIGN(auto made,
                 make_cublas_lt_matmul(
                     *place_.cuda, place_.communicator.device(),
                     {.m = m, .n = n, .k = k, .dtype = setting.dtype, .b_layout = setting.layout}));
    return std::shared_ptr<LibraryMatmul>(std::move(made));
  }

  // The product of what is gathered, by the chosen heuristic.
  Result<MatmulArm> nccl() const {
    if (place_.cuda == nullptr) return Status(StatusCode::kUnsupported, "NCCL runs on GPUs");
    const int ranks = place_.communicator.size();
    const MatmulSetting& setting = sets_.setting();
    if (setting.extents.m % static_cast<std::size_t>(ranks) != 0) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("NCCL's all-gather takes equal shards, and {} ranks do not divide "
                                "m {}",
                                ranks, setting.extents.m));
    }
    const std::size_t count = matrices_.shard_elements();
    TUTTI_TRY(place_.rows
                  .plan({.count = count * static_cast<std::size_t>(ranks),
                         .dtype = setting.dtype,
                         .algorithm = kNcclName})
                  .status());
    TUTTI_ASSIGN(const std::shared_ptr<LibraryMatmul> product, library());
    product->choose(heuristic_);
    MatmulArm arm{.algorithm = std::string(kNcclUnfusedRow),
                  .config = fmt::format("all_gather/nccl, {}", heuristic_text(*product)),
                  .library = product->library()};
    arm.run = [&matrices = matrices_, &communicator = place_.communicator, product, count,
               dtype = setting.dtype](std::size_t set, Stream stream) {
      TUTTI_TRY(all_gather(communicator, {.input = matrices.shard(set),
                                          .output = matrices.gathered(set),
                                          .count = count,
                                          .dtype = dtype,
                                          .stream = stream,
                                          .options = {.algorithm = kNcclName}}));
      return product->run({.a = matrices.gathered(set),
                           .b = matrices.sets().b(set, 0),
                           .c = matrices.sets().c(set, 0)},
                          stream);
    };
    return arm;
  }

  std::string heuristic_text(const LibraryMatmul& product) const {
    return fmt::format("heuristic {} of {}", heuristic_ + 1, product.heuristics());
  }

  // The one that is fastest on the slowest rank.
  Status choose_heuristic() {
    MatmulArms tried;
    add_cublas_lt_arms(*place_.cuda, sets_, tried);
    const std::string why = tried.skipped.empty() ? "" : tried.skipped.front().why;
    TUTTI_ASSIGN(const std::string reason, anyones(why));
    if (!reason.empty()) {
      arms_.skipped.push_back({.algorithm = std::string(kCublasLtAloneRow), .why = reason});
      return Status::ok();
    }
    std::vector<MatmulArm*> all;
    for (MatmulArm& arm : tried.heuristics) {
      TUTTI_TRY(place_.device.prepare(arm, sets_.size()));
      all.push_back(&arm);
    }
    TUTTI_TRY(place_.device.sample(all, kRoundsToChoose));
    std::vector<std::string> mine;
    mine.reserve(all.size());
    for (const MatmulArm* arm : all) mine.push_back(fixed(summarize(arm->samples_us).p50));
    TUTTI_ASSIGN(const auto texts, place_.ranks.exchange(fmt::format("{}", fmt::join(mine, " "))));
    heuristic_ = fastest_of(texts);
    MatmulArm& best = tried.heuristics[static_cast<std::size_t>(heuristic_)];
    best.algorithm = kCublasLtAloneRow;
    arms_.calls.push_back({.algorithm = best.algorithm,
                           .config = best.config,
                           .library = best.library,
                           .run = best.run});
    return Status::ok();
  }

  // Of the times of each rank, "12.500 13.000".
  static int fastest_of(const std::vector<std::string>& texts) {
    std::vector<double> slowest;
    for (const std::string& text : texts) {
      std::istringstream times(text);
      double time = 0;
      for (std::size_t k = 0; times >> time; ++k) {
        slowest.resize(std::max(slowest.size(), k + 1));
        slowest[k] = std::max(slowest[k], time);
      }
    }
    return static_cast<int>(std::ranges::min_element(slowest) - slowest.begin());
  }

  // The first reason that a rank has not to run something; empty: all can.
  Result<std::string> anyones(const std::string& mine) const {
    TUTTI_ASSIGN(const auto all, place_.ranks.exchange(mine));
    const auto reason = std::ranges::find_if(all, [](const auto& each) { return !each.empty(); });
    return reason == all.end() ? std::string() : *reason;
  }

  Status add_alone(std::string_view row, std::string_view name) {
    return add(std::string(row), alone(row, name));
  }

  // Runs it once: what a rank cannot plan, or has no memory for, no rank measures.
  Status add(const std::string& name, Result<MatmulArm> made) {
    TUTTI_ASSIGN(std::string reason, anyones(made.is_ok() ? "" : made.status().message()));
    if (reason.empty()) {
      const Status status = place_.device.prepare(*made, sets_.size());
      const bool refused = status.code() == StatusCode::kUnsupported ||
                           status.code() == StatusCode::kResourceExhausted;
      if (!status.is_ok() && !refused) return status.with_context(name);
      TUTTI_ASSIGN(reason, anyones(refused ? status.message() : ""));
    }
    if (!reason.empty()) {
      arms_.skipped.push_back({.algorithm = name, .why = reason});
      return Status::ok();
    }
    arms_.calls.push_back(std::move(*made));
    return Status::ok();
  }

  const GatherPlace& place_;
  const GatherMatmulOptions& options_;
  const GatherMatrices& matrices_;
  const MatmulSets& sets_;
  MatmulArms arms_;
  int heuristic_ = 0;  // of cuBLASLt
};

}  // namespace

Result<GatherMatrices> GatherMatrices::make(Communicator& communicator, MatmulDevice& device,
                                            const MatmulSetting& setting, int most_sets) {
  GatherMatrices made;
  const auto& [m, n, k] = setting.extents;
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const auto rank = static_cast<std::size_t>(communicator.rank());
  TUTTI_ASSIGN(MatmulSets sets,
               MatmulSets::make(device, setting, static_cast<std::size_t>(most_sets)));
  made.sets_ = std::make_unique<MatmulSets>(std::move(sets));
  const std::size_t rows = ceil_div(m, ranks), row_bytes = k * size_of(setting.dtype);
  made.shard_elements_ = rows * k;
  made.gathered_bytes_ = m * row_bytes;
  made.shard_stride_ = round_up(rows * row_bytes, kShardAlignment);
  made.gathered_stride_ = round_up(made.gathered_bytes_, kShardAlignment);
  TUTTI_ASSIGN(made.memory_, communicator.allocate(made.sets_->size() *
                                                   (made.shard_stride_ + made.gathered_stride_)));
  const std::size_t first = std::min(m, rank * rows), last = std::min(m, first + rows);
  for (std::size_t set = 0; set < made.sets_->size() && last > first; ++set) {
    TUTTI_TRY(device.copy(made.shard(set), made.sets_->a(set) + first * row_bytes,
                          (last - first) * row_bytes));
  }
  return made;
}

Status GatherMatrices::poison(MatmulDevice& device) const {
  for (std::size_t set = 0; set < sets_->size(); ++set) {
    TUTTI_TRY(device.fill(gathered(set), kPoison, gathered_bytes_));
  }
  return Status::ok();
}

Result<MatmulArms> make_gather_arms(const GatherPlace& place, const GatherMatmulOptions& options,
                                    const GatherMatrices& matrices) {
  TUTTI_ASSIGN(MatmulArms arms, GatherArmMaker(place, options, matrices).make());
  arms.poison = [&matrices, &device = place.device] { return matrices.poison(device); };
  auto compare = std::make_shared<BitComparison>(place.device, matrices.sets());
  arms.compare = [compare](const MatmulArm& arm, std::size_t set) -> Result<Mismatches> {
    if (!is_by_own(arm.algorithm, arm.config)) return Mismatches{};
    return (*compare)(set);
  };
  return arms;
}

}  // namespace tutti::cli
