#include "bench/matmul/arms.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"
#include "drivers/matmul.hpp"
#include "matmul/host.hpp"
#include "matmul/select.hpp"

namespace tutti::cli {
namespace {

std::string row_name(std::string_view algorithm) {
  return algorithm == kAutoName ? std::string(algorithm) : fmt::format("{}_matmul", algorithm);
}

// A call of matmul() on a set.
class SetCall {
 public:
  SetCall(const MatmulSets& sets, std::size_t set, Backend backend) {
    const MatmulSetting& setting = sets.setting();
    const auto& [m, n, k] = setting.extents;
    for (int product = 1; product < setting.products; ++product) {
      more_.push_back({.b = sets.b(set, product),
                       .c = sets.c(set, product),
                       .bias = sets.bias(product),
                       .n = n});
    }
    call_ = {.a = sets.a(set),
             .b = sets.b(set, 0),
             .c = sets.c(set, 0),
             .bias = sets.bias(0),
             .m = m,
             .n = n,
             .k = k,
             .dtype = setting.dtype,
             .b_layout = setting.layout,
             .more = more_,
             .backend = backend};
  }
  SetCall(const SetCall&) = delete;
  SetCall& operator=(const SetCall&) = delete;

  const Matmul& with(std::string_view algorithm, std::string_view tile) {
    call_.algorithm = algorithm;
    call_.tile = tile;
    return call_;
  }

 private:
  std::vector<MatmulProduct> more_;
  Matmul call_;
};

class ArmMaker {
 public:
  ArmMaker(const MatmulBenchOptions& options, const MatmulSets& sets, int multiprocessors)
      : options_(options), sets_(sets), multiprocessors_(multiprocessors) {}

  // For calls on every set, since these are alike.
  Status tune() {
    SetCall call(sets_, 0, options_.bench.backend);
    return tutti::tune(nullptr, call.with("", "")).status();
  }

  // `name`: as in options.
  void add(const std::string& name, const std::string& tile, MatmulArms& arms) {
    auto made = make(name, tile);
    if (made.is_ok()) {
      arms.calls.push_back(std::move(*made));
    } else {
      arms.skipped.push_back({.algorithm = row_name(name), .why = made.status().message()});
    }
  }

 private:
  Result<MatmulArm> make(const std::string& name, const std::string& tile) {
    const std::string algorithm = name == kAutoName ? "" : row_name(name);
    const Backend backend = options_.bench.backend;
    SetCall call(sets_, 0, backend);
    TUTTI_ASSIGN(const MatmulPlan usual, plan(call.with("", "")));
    TUTTI_ASSIGN(const MatmulPlan chosen, plan(call.with(algorithm, tile)));
    MatmulArm arm{.algorithm = row_name(name),
                  .tile = tile,
                  .config = chosen.config,
                  .chosen = chosen.algorithm == usual.algorithm && chosen.config == usual.config};
    if (name == kAutoName) {
      arm.config = chosen.algorithm + (chosen.config.empty() ? "" : ", " + chosen.config) +
                   (options_.tune ? ", tuned" : "");
    }
    if (chosen.algorithm == to_string(MatmulAlgorithm::kHost)) arm.library = host_matmul_library();
    TUTTI_ASSIGN(arm.fill, fill_of(call.with(algorithm, tile), chosen.config));
    arm.run = [&sets = sets_, algorithm, tile, backend](std::size_t set, Stream stream) {
      return matmul(stream, SetCall(sets, set, backend).with(algorithm, tile));
    };
    return arm;
  }

  // 0 for what is no tile of the own kernel.
  Result<double> fill_of(const Matmul& call, const std::string& config) const {
    TUTTI_ASSIGN(const CheckedMatmul checked, check(call));
    if (multiprocessors_ < kMatmulCluster) return 0.0;
    for (const MatmulTile& tile : kMatmulTiles) {
      const MatmulForecast cast = forecast(tile, checked.problem, multiprocessors_);
      if (config_text(cast.tiling, call.m) == config) return cast.fill;
    }
    return 0.0;
  }

  const MatmulBenchOptions& options_;
  const MatmulSets& sets_;
  int multiprocessors_;
};

Status make_heuristics(CudaDriver& cuda, const MatmulSets& measured, std::vector<MatmulArm>& arms) {
  const MatmulSetting& setting = measured.setting();
  const auto& [m, n, k] = setting.extents;
  TUTTI_ASSIGN(const int device, cuda.current_device());
  TUTTI_ASSIGN(auto made, make_cublas_lt_matmul(cuda, device,
                                                {.m = m,
                                                 .n = n,
                                                 .k = k,
                                                 .dtype = setting.dtype,
                                                 .b_layout = setting.layout,
                                                 .bias = setting.bias}));
  const std::shared_ptr<LibraryMatmul> library = std::move(made);
  for (int heuristic = 0; heuristic < library->heuristics(); ++heuristic) {
    const auto run = [&sets = measured, library, heuristic](std::size_t set, Stream stream) {
      library->choose(heuristic);
      for (int product = 0; product < sets.setting().products; ++product) {
        TUTTI_TRY(library->run({.a = sets.a(set),
                                .b = sets.b(set, product),
                                .c = sets.c(set, product),
                                .bias = sets.bias(product)},
                               stream));
      }
      return Status::ok();
    };
    arms.push_back(
        {.algorithm = row_name(kCublasLtName),
         .config = fmt::format("heuristic {} of {}", heuristic + 1, library->heuristics()),
         .library = library->library(),
         .run = run});
  }
  return Status::ok();
}

}  // namespace

void add_cublas_lt_arms(CudaDriver& cuda, const MatmulSets& sets, MatmulArms& arms) {
  const Status status = make_heuristics(cuda, sets, arms.heuristics);
  if (status.is_ok()) return;
  arms.skipped.push_back({.algorithm = row_name(kCublasLtName), .why = status.message()});
}

Result<MatmulArms> make_matmul_arms(CudaDriver* cuda, const MatmulBenchOptions& options,
                                    const MatmulSets& sets, int multiprocessors) {
  MatmulArms arms;
  ArmMaker maker(options, sets, multiprocessors);
  if (options.tune) TUTTI_TRY(maker.tune());
  for (const std::string& name : options.bench.algorithms) {
    if (name == kCublasLtName) {
      add_cublas_lt_arms(*cuda, sets, arms);
    } else if (name == kOwnName) {
      for (const std::string& tile : options.tiles) maker.add(name, tile, arms);
    } else {
      maker.add(name, "", arms);
    }
  }
  return arms;
}

}  // namespace tutti::cli
