// Matmuls whose A arrives while they run.
#include <fmt/format.h>

#include "base/try.hpp"
#include "matmul/engine.hpp"

namespace tutti {

Result<MatmulEngine::Gated> MatmulEngine::prepare_gated(const Matmul& call,
                                                        const Arrival& arrival) {
  TUTTI_ASSIGN(const Checked checked, check_call(call));
  const MatmulProblem& problem = checked.call.problem;
  if (checked.backend != Backend::kCuda) {
    return Status(StatusCode::kUnsupported, "fused: the matrices are not in GPU memory");
  }
  if (checked.forced.algorithm.value_or(MatmulAlgorithm::kOwn) != MatmulAlgorithm::kOwn) {
    return Status(StatusCode::kUnsupported, "fused: only own_matmul waits for its A");
  }
  TUTTI_ASSIGN(const int device, cuda_->current_device());
  TUTTI_ASSIGN(const Gpu gpu, this->gpu(device, false));
  constexpr std::uintptr_t kTensorMapAlignment = 16;
  if (reinterpret_cast<std::uintptr_t>(arrival.own_a) % kTensorMapAlignment != 0) {
    return Status(StatusCode::kUnsupported, "fused: this rank's A is not aligned to 16 bytes");
  }
  TUTTI_ASSIGN(const MatmulTiling tiling,
               gated_tiling({device, checked.forced, problem}, gpu.machine));
  return Gated{checked.call, tiling, gpu.machine.multiprocessors};
}

Result<MatmulTiling> MatmulEngine::gated_tiling(const Key& key, const MatmulMachine& machine) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = gated_.find(key); known != gated_.end()) return known->second;
  }
  const std::string why = why_not(MatmulAlgorithm::kOwn, key.problem, machine);
  if (!why.empty()) return Status(StatusCode::kUnsupported, fmt::format("fused: {}", why));
  TUTTI_ASSIGN(const SelectedMatmul selected,
               select(key.problem, machine, {MatmulAlgorithm::kOwn, key.forced.tile}));
  TUTTI_TRY(surroundings_.load_gated(*cuda_, key.problem, selected.tiling));
  const std::lock_guard lock(mutex_);
  if (gated_.size() >= kMostPrepared) gated_.clear();
  return gated_.emplace(key, selected.tiling).first->second;
}

Result<MatmulPlan> MatmulEngine::plan_gated(const Matmul& call, const Arrival& arrival) {
  TUTTI_ASSIGN(const Gated gated, prepare_gated(call, arrival));
  return MatmulPlan{
      .algorithm = std::string(to_string(MatmulAlgorithm::kOwn)),
      .config = config_text(gated.tiling, gated.call.problem.m),
      .why = fmt::format("waits for what arrives, {} order", to_string(arrival.plan.order))};
}

Status MatmulEngine::run_gated(Stream stream, const Matmul& call, const Arrival& arrival,
                               int spare) {
  TUTTI_ASSIGN(const Gated gated, prepare_gated(call, arrival));
  return surroundings_.run_gated(*cuda_, gated.call, gated.tiling, arrival,
                                 gated.multiprocessors - spare, stream);
}

}  // namespace tutti
