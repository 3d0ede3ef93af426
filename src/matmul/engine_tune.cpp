// tune(): measures what a call could run, and keeps the fastest.
#include <algorithm>
#include <array>

#include "base/try.hpp"
#include "base/units.hpp"
#include "matmul/engine.hpp"

namespace tutti {
namespace {

constexpr double kWorthMeasuring = 1.15;  // predicted time of a tile, over that of the fastest one
constexpr std::size_t kScratchAlignment = 256;

constexpr const char* kNotInCapture =
    "tune of a matmul: it runs and measures products, which a capture cannot; call tune() before "
    "the capture";

bool allows(const ForcedMatmul& forced, MatmulAlgorithm algorithm) {
  return !forced.algorithm || *forced.algorithm == algorithm;
}

// What is written while a call is tuned: the C of each product, and what evicts the matrices from
// the L2.
class TuningMemory {
 public:
  explicit TuningMemory(CudaDriver& cuda) : cuda_(cuda) {}
  // Nothing can be done about a failure here.
  ~TuningMemory() {
    if (address_ != nullptr) static_cast<void>(cuda_.free(address_).is_ok());
  }
  TuningMemory(const TuningMemory&) = delete;
  TuningMemory& operator=(const TuningMemory&) = delete;

  Status allocate(int device, const MatmulProblem& problem) {
    TUTTI_ASSIGN(const CudaDeviceProperties properties, cuda_.properties(device));
    evicting_bytes_ = 2 * properties.l2_bytes;
    std::size_t bytes = evicting_bytes_;
    for (int i = 0; i < problem.products; ++i) {
      const auto which = static_cast<std::size_t>(i);
      c_[which] = bytes;
      const ProductShape& product = problem.product[which];
      const std::size_t elements = (problem.m - 1) * product.ldc + product.n;
      bytes += round_up(elements * size_of(problem.dtype), kScratchAlignment);
    }
    TUTTI_ASSIGN(address_, cuda_.allocate(device, bytes));
    return Status::ok();
  }

  std::byte* c(std::size_t product) const { return address_ + c_[product]; }
  CudaAddress evicting() const { return address_; }
  std::size_t evicting_bytes() const { return evicting_bytes_; }
  void abandon() { address_ = nullptr; }  // never freed: something may still write it

 private:
  CudaDriver& cuda_;
  CudaAddress address_ = nullptr;
  std::size_t evicting_bytes_ = 0;
  std::array<std::size_t, kMaxMatmulProducts> c_ = {};  // offset of each
};

}  // namespace

struct MatmulEngine::Tuning {
  Prepared tuned;              // without its selection
  SelectedMatmul usual = {};   // what select() says
  MatmulTiling forecast = {};  // the fastest by the forecast
  std::vector<MatmulContender> contenders;
};

// kUnsupported where the call cannot run.
Result<MatmulEngine::Tuning> MatmulEngine::make_tuning(const Key& key) {
  TUTTI_ASSIGN(const PreparedPtr prepared, prepare(key, false));
  const MatmulMachine& machine = prepared->machine;
  Tuning tuning{.tuned = {machine, prepared->selected, prepared->products, true}};
  TUTTI_ASSIGN(tuning.usual, select(key.problem, machine, key.forced));
  const auto can_run = [&](MatmulAlgorithm algorithm) {
    return allows(key.forced, algorithm) && why_not(algorithm, key.problem, machine).empty();
  };
  if (can_run(MatmulAlgorithm::kCublasLt) && tuning.tuned.products.empty()) {
    TUTTI_ASSIGN(const Gpu gpu, this->gpu(key.device, false));
    auto products = prepare_products(key.problem, *gpu.cublas_lt);
    if (products.is_ok()) {
      tuning.tuned.products = std::move(*products);
    } else if (products.status().code() != StatusCode::kUnsupported) {
      return products.status();
    }
  }
  std::vector<MatmulTiling> tilings;
  if (key.forced.tile != nullptr) {
    tilings = {tuning.usual.tiling};
  } else if (can_run(MatmulAlgorithm::kOwn)) {
    tilings = fast_tilings(key.problem, machine.multiprocessors, kWorthMeasuring);
    tuning.forecast = fastest_tile(key.problem, machine.multiprocessors).tiling;
  }
  std::vector<int> heuristics;
  for (const auto& product : tuning.tuned.products) heuristics.push_back(product->heuristics());
  tuning.contenders = contenders_of(tilings, heuristics);
  return tuning;
}

// `call`, with the C that they write. It must outlive them, as `tuning` must.
void MatmulEngine::add_runs(Tuning& tuning, const CheckedMatmul& call, const Place& place) {
  for (MatmulContender& each : tuning.contenders) {
    const SelectedMatmul& way = each.way;
    if (way.algorithm == MatmulAlgorithm::kOwn) {
      each.failure = surroundings_.load_own(*cuda_, call.problem, way.tiling);
      each.run = [this, &tuning, &call, tiling = way.tiling, place](int) {
        return surroundings_.run_own(*cuda_, call, tiling, tuning.tuned.machine.multiprocessors,
                                     place.stream);
      };
    } else {
      each.run = [this, &tuning, &call, heuristic = way.heuristic, place](int part) -> Status {
        const auto which = static_cast<std::size_t>(part);
        const ProductPlaces& places = call.product[which];
        const CublasLtProduct& product = *tuning.tuned.products[which];
        TUTTI_ASSIGN(const auto workspace, workspace_of(product, heuristic[which], place));
        return run_product(product, heuristic[which], {call.a, places.b, places.c, places.bias},
                           workspace, place.stream);
      };
    }
  }
}

Status MatmulEngine::measure(Tuning& tuning, CheckedMatmul call, const Place& place) {
  TuningMemory memory(*cuda_);
  TUTTI_TRY(memory.allocate(place.device, call.problem));
  for (int i = 0; i < call.problem.products; ++i) {
    const auto which = static_cast<std::size_t>(i);
    call.product[which].c = memory.c(which);
  }
  add_runs(tuning, call, place);
  const Status timed = surroundings_.time(
      *cuda_, {place.stream, memory.evicting(), memory.evicting_bytes()}, tuning.contenders);
  if (timed.code() == StatusCode::kTimeout) memory.abandon();
  TUTTI_TRY(timed);
  const auto runs = [](const MatmulContender& each) { return each.failure.is_ok(); };
  const bool some = std::any_of(tuning.contenders.begin(), tuning.contenders.end(), runs);
  return some ? Status::ok() : tuning.contenders.front().failure;
}

void MatmulEngine::keep(const Key& key, PreparedPtr tuned) {
  const std::lock_guard lock(mutex_);
  PreparedPtr& kept = prepared_[key];
  if (kept == nullptr || !kept->tuned) ++tuned_;
  kept = std::move(tuned);
}

Result<MatmulPlan> MatmulEngine::tune(Stream stream, const Matmul& call) {
  TUTTI_ASSIGN(const Checked checked, check_call(call));
  if (checked.backend != Backend::kCuda) return plan(call);
  const MatmulProblem& problem = checked.call.problem;
  TUTTI_ASSIGN(const CudaCapture capture, cuda_->capture_of(stream));
  if (capture.state != CudaCapture::State::kNone) {
    return Status(StatusCode::kUnsupported, kNotInCapture);
  }
  TUTTI_ASSIGN(const int device, cuda_->current_device());
  const Key key{device, checked.forced, problem};
  TUTTI_ASSIGN(Tuning tuning, make_tuning(key));
  if (tuning.contenders.size() < 2) return plan(call);
  TUTTI_TRY(measure(tuning, checked.call, {device, stream, capture}));
  Prepared& tuned = tuning.tuned;
  tuned.selected =
      fastest_way(std::move(tuning.contenders), problem, tuning.usual, tuning.forecast);
  if (tuned.selected->algorithm != MatmulAlgorithm::kCublasLt) tuned.products.clear();
  keep(key, std::make_shared<Prepared>(std::move(tuned)));
  return plan(call);
}

}  // namespace tutti
