// Matmuls whose A arrives while they run.
#include <fmt/format.h>

#include "base/try.hpp"
#include "drivers/tensor_map.hpp"
#include "matmul/engine.hpp"

namespace tutti {

Result<MatmulEngine::ReadyGated> MatmulEngine::ready_gated(const Matmul& call, const void* own_a) {
  TUTTI_ASSIGN(const Checked checked, check_call(call));
  const MatmulProblem& problem = checked.call.problem;
  const auto unsupported = [](const char* why) { return Status(StatusCode::kUnsupported, why); };
  if (problem.products == 0) return unsupported("there is nothing to multiply");
  if (checked.backend != Backend::kCuda) return unsupported("the matrices are not in GPU memory");
  if (checked.forced.algorithm.value_or(MatmulAlgorithm::kOwn) != MatmulAlgorithm::kOwn) {
    return unsupported("only own_matmul waits for its A");
  }
  if (reinterpret_cast<std::uintptr_t>(own_a) % kTmaAlignment != 0) {
    return unsupported("this rank's A is not aligned to 16 bytes, which TMA needs");
  }
  TUTTI_ASSIGN(const int device, cuda_->current_device());
  TUTTI_ASSIGN(const Gpu gpu, this->gpu(device, false));
  TUTTI_ASSIGN(const MatmulTiling tiling,
               gated_tiling({device, checked.forced, problem}, gpu.machine));
  return ReadyGated{checked.call, tiling, gpu.machine.multiprocessors, device, checked.forced};
}

Status MatmulEngine::check_gated(const MatmulProblem& problem) {
  if (cuda() == nullptr) return {StatusCode::kUnsupported, why_no_cuda_};
  TUTTI_ASSIGN(const int device, cuda_->current_device());
  TUTTI_ASSIGN(const Gpu gpu, this->gpu(device, false));
  const std::string why = why_not(MatmulAlgorithm::kOwn, problem, gpu.machine);
  return why.empty() ? Status::ok() : Status(StatusCode::kUnsupported, why);
}

Result<MatmulTiling> MatmulEngine::gated_tiling(const Key& key, const MatmulMachine& machine) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = gated_.find(key); known != gated_.end()) return known->second;
  }
  const std::string why = why_not(MatmulAlgorithm::kOwn, key.problem, machine);
  if (!why.empty()) return Status(StatusCode::kUnsupported, why);
  TUTTI_ASSIGN(const SelectedMatmul selected,
               select(key.problem, machine, {MatmulAlgorithm::kOwn, key.forced.tile}));
  TUTTI_TRY(surroundings_.load_gated(*cuda_, key.problem, selected.tiling));
  const std::lock_guard lock(mutex_);
  if (gated_.size() >= kMostPrepared) gated_.clear();
  return gated_.emplace(key, selected.tiling).first->second;
}

Result<ChosenTransport> MatmulEngine::transport(const ReadyGated& ready, const Bringing& how) {
  const MatmulProblem& problem = ready.call.problem;
  const BroughtKey key{{ready.device, ready.forced, problem}, how};
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = brought_.find(key); known != brought_.end()) return known->second;
  }
  TUTTI_ASSIGN(const ChosenTransport chosen,
               choose_transport({.problem = problem,
                                 .tiling = ready.tiling,
                                 .plan = how.plan,
                                 .multiprocessors = how.multiprocessors,
                                 .tile = ready.forced.tile,
                                 .forced = how.forced}));
  TUTTI_TRY(surroundings_.load_gated(*cuda_, problem, chosen.tiling));
  const std::lock_guard lock(mutex_);
  if (brought_.size() >= kMostPrepared) brought_.clear();
  return brought_.emplace(key, chosen).first->second;
}

Status MatmulEngine::run(const ReadyGated& ready, const Arrival& arrival, int multiprocessors,
                         Stream stream) {
  return surroundings_.run_gated(*cuda_, {ready.call, ready.tiling, arrival}, multiprocessors,
                                 stream);
}

}  // namespace tutti
