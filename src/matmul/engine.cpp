#include "matmul/engine.hpp"

#include <fmt/format.h>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "matmul/host.hpp"
#include "matmul/place.hpp"

namespace tutti {
namespace {

constexpr const char* kNotPrepared =
    "cuBLASLt selects its kernel outside of captures: call matmul() or plan() with this product "
    "once before the capture";

constexpr const char* kNothing = "M or N is 0: there is nothing to compute";

MatmulShape shape_of(const MatmulProblem& problem, int which) {
  const ProductShape& product = problem.product[static_cast<std::size_t>(which)];
  return {.m = problem.m,
          .n = product.n,
          .k = problem.k,
          .dtype = problem.dtype,
          .b_layout = problem.b_layout,
          .lda = problem.lda,
          .ldb = product.ldb,
          .ldc = product.ldc,
          .bias = product.bias,
          .alignment = problem.alignment,
          .bias_alignment = problem.bias_alignment};
}

MatmulMachine host_machine() { return {.host_library = host_matmul_library()}; }

}  // namespace

std::size_t MatmulEngine::KeyHash::operator()(const Key& key) const {
  const MatmulProblem& problem = key.problem;
  WordHash hash;
  hash.add(static_cast<std::uint64_t>(key.device)).add(problem.m).add(problem.k).add(problem.lda);
  hash.add(static_cast<std::uint64_t>(problem.dtype)).add(problem.alignment);
  for (int i = 0; i < problem.products; ++i) {
    const ProductShape& product = problem.product[static_cast<std::size_t>(i)];
    hash.add(product.n).add(product.ldb).add(product.ldc);
  }
  return hash.value();
}

CudaDriver* MatmulEngine::cuda() {
  std::call_once(cuda_once_, [&] {
    cuda_ = surroundings_.cuda(&why_no_cuda_);
    if (cuda_ != nullptr) workspaces_ = std::make_unique<CublasLtWorkspaces>(*cuda_);
  });
  return cuda_;
}

Result<MatmulEngine::Checked> MatmulEngine::check_call(const Matmul& call) {
  Checked checked;
  TUTTI_ASSIGN(checked.call, check(call));
  TUTTI_ASSIGN(checked.forced, parse({call.algorithm, call.tile}));
  if (call.backend == Backend::kHost || checked.call.problem.products == 0) return checked;
  if (cuda() != nullptr) {
    TUTTI_ASSIGN(checked.backend, backend_of(checked.call, call.backend, *cuda_));
  } else if (call.backend == Backend::kCuda) {
    return Status(StatusCode::kUnavailable, "matmul: no CUDA: " + why_no_cuda_);
  }
  return checked;
}

// Within a capture, a GPU that is not known yet is described without opening cuBLASLt.
Result<MatmulEngine::Gpu> MatmulEngine::gpu(int device, bool capturing) {
  const std::lock_guard lock(mutex_);
  if (const auto known = gpus_.find(device); known != gpus_.end()) return known->second;
  TUTTI_ASSIGN(const CudaDeviceProperties properties, cuda_->properties(device));
  Gpu gpu{.machine = {.backend = Backend::kCuda,
                      .compute = properties.compute_major * 10 + properties.compute_minor,
                      .multiprocessors = properties.multiprocessors,
                      .own_kernels = surroundings_.own_kernels}};
  if (capturing) return gpu;
  auto opened = CublasLt::open(surroundings_.cublas_lt);
  if (opened.is_ok()) {
    gpu.cublas_lt = std::move(*opened);
    gpu.machine.cublas_lt = "cuBLASLt " + gpu.cublas_lt->version();
  } else {
    gpu.machine.why_no_cublas_lt = opened.status().message();
  }
  return gpus_.emplace(device, std::move(gpu)).first->second;
}

Result<MatmulEngine::PreparedPtr> MatmulEngine::prepare(const Key& key, bool capturing) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = prepared_.find(key); known != prepared_.end()) return known->second;
  }
  TUTTI_ASSIGN(const Gpu gpu, this->gpu(key.device, capturing));
  auto prepared = std::make_shared<Prepared>(
      Prepared{gpu.machine, select(key.problem, gpu.machine, key.forced), {}});
  const Result<SelectedMatmul>& selected = prepared->selected;
  if (selected.is_ok() && selected->algorithm == MatmulAlgorithm::kCublasLt) {
    if (capturing) return prepare_in_capture(key, gpu.machine);
    auto products = prepare_products(key.problem, *gpu.cublas_lt);
    if (products.is_ok()) {
      prepared->products = std::move(*products);
    } else if (products.status().code() == StatusCode::kUnsupported) {
      // The library has no kernel for it, so the selection goes on without the library.
      prepared->machine.why_no_cublas_lt = products.status().message();
      prepared->selected = select(key.problem, prepared->machine, key.forced);
    } else {
      return products.status();
    }
  }
  if (selected.is_ok() && selected->algorithm == MatmulAlgorithm::kOwn) {
    TUTTI_TRY(surroundings_.load_own(*cuda_, key.problem, selected->tiling));
  }
  const std::lock_guard lock(mutex_);
  if (!gpus_.contains(key.device)) return PreparedPtr(std::move(prepared));  // in a capture
  if (prepared_.size() >= kMostPrepared + tuned_) {
    std::erase_if(prepared_, [](const auto& each) { return !each.second->tuned; });
  }
  return prepared_.emplace(key, std::move(prepared)).first->second;
}

// What can run without asking cuBLASLt. It holds for this call only.
Result<MatmulEngine::PreparedPtr> MatmulEngine::prepare_in_capture(const Key& key,
                                                                   const MatmulMachine& machine) {
  if (key.forced.algorithm || !why_not(MatmulAlgorithm::kOwn, key.problem, machine).empty()) {
    return Status(StatusCode::kUnsupported, fmt::format("cublaslt_matmul: {}", kNotPrepared));
  }
  MatmulMachine without = machine;
  without.why_no_cublas_lt = kNotPrepared;
  auto prepared =
      std::make_shared<Prepared>(Prepared{without, select(key.problem, without, key.forced), {}});
  TUTTI_TRY(surroundings_.load_own(*cuda_, key.problem, prepared->selected->tiling));
  return PreparedPtr(std::move(prepared));
}

Result<MatmulEngine::Products> MatmulEngine::prepare_products(const MatmulProblem& problem,
                                                              CublasLt& library) {
  Products products;
  for (int i = 0; i < problem.products; ++i) {
    TUTTI_ASSIGN(auto product, library.prepare(shape_of(problem, i)));
    products.push_back(std::move(product));
  }
  return products;
}

Result<MatmulEngine::Ready> MatmulEngine::ready(Stream stream, const Matmul& call) {
  Ready ready;
  TUTTI_ASSIGN(ready.checked_, check_call(call));
  const Checked& checked = ready.checked_;
  if (checked.call.problem.products == 0) return ready;
  if (checked.backend != Backend::kCuda) {
    TUTTI_TRY(select(checked.call.problem, {}, checked.forced).status());
    return ready;
  }
  TUTTI_ASSIGN(const int device, cuda_->current_device());
  TUTTI_ASSIGN(const CudaCapture capture, cuda_->capture_of(stream));
  ready.place_ = {device, stream, capture};
  const bool capturing = capture.state != CudaCapture::State::kNone;
  TUTTI_ASSIGN(ready.prepared_, prepare({device, checked.forced, checked.call.problem}, capturing));
  const Prepared& prepared = *ready.prepared_;
  TUTTI_TRY(prepared.selected.status());
  if (prepared.selected->algorithm != MatmulAlgorithm::kCublasLt) return ready;
  for (std::size_t i = 0; i < prepared.products.size(); ++i) {
    const int heuristic = prepared.selected->heuristic[i];
    TUTTI_ASSIGN(auto workspace, workspace_of(*prepared.products[i], heuristic, ready.place_));
    ready.workspaces_.push_back(std::move(workspace));
  }
  return ready;
}

Status MatmulEngine::run(Stream stream, const Matmul& call) {
  TUTTI_ASSIGN(const Ready made, ready(stream, call));
  return run(made);
}

Status MatmulEngine::run(const Ready& ready) {
  if (ready.checked_.call.problem.products == 0) return Status::ok();
  if (ready.prepared_ != nullptr) return run_on_gpu(ready);
  run_host_matmul(ready.checked_.call, host_blas());
  return Status::ok();
}

Status MatmulEngine::run_on_gpu(const Ready& ready) {
  const CheckedMatmul& call = ready.checked_.call;
  const Prepared& prepared = *ready.prepared_;
  switch (prepared.selected->algorithm) {
    case MatmulAlgorithm::kOwn:
      return surroundings_.run_own(*cuda_, call, prepared.selected->tiling,
                                   prepared.machine.multiprocessors, ready.place_.stream);
    case MatmulAlgorithm::kCublasLt:
      break;
    default:
      return surroundings_.run_plain(*cuda_, call, ready.place_.stream);
  }
  for (std::size_t i = 0; i < prepared.products.size(); ++i) {
    const ProductPlaces& places = call.product[i];
    TUTTI_TRY(run_product(*prepared.products[i], prepared.selected->heuristic[i],
                          {call.a, places.b, places.c, places.bias}, ready.workspaces_[i],
                          ready.place_.stream));
  }
  return Status::ok();
}

Result<CublasLtWorkspaces::Lease> MatmulEngine::workspace_of(const CublasLtProduct& product,
                                                             int heuristic, const Place& place) {
  if (product.workspace_bytes(heuristic) == 0) return CublasLtWorkspaces::Lease{};
  return workspaces_->of(place.device, place.stream, place.capture);
}

Status MatmulEngine::run_product(const CublasLtProduct& product, int heuristic,
                                 const MatmulOperands& operands,
                                 const CublasLtWorkspaces::Lease& workspace, Stream stream) {
  if (workspace == nullptr) return product.run(heuristic, operands, {}, stream);
  const Status status =
      product.run(heuristic, operands, CublasLtWorkspaces::workspace(workspace), stream);
  workspaces_->used(workspace);
  return status;
}

Result<MatmulPlan> MatmulEngine::plan(const Matmul& call) {
  TUTTI_ASSIGN(const Checked checked, check_call(call));
  if (checked.call.problem.products == 0) return MatmulPlan{.why = kNothing};
  SelectedMatmul selected;
  if (checked.backend == Backend::kCuda) {
    TUTTI_ASSIGN(const int device, cuda_->current_device());
    TUTTI_ASSIGN(const PreparedPtr prepared,
                 prepare({device, checked.forced, checked.call.problem}, false));
    TUTTI_ASSIGN(selected, Result<SelectedMatmul>(prepared->selected));
  } else {
    TUTTI_ASSIGN(selected, select(checked.call.problem, {}, checked.forced));
  }
  return MatmulPlan{.algorithm = std::string(to_string(selected.algorithm)),
                    .config = config_text(selected, checked.call.problem),
                    .why = selected.why};
}

Result<std::string> MatmulEngine::explain(const Matmul& call) {
  TUTTI_ASSIGN(const Checked checked, check_call(call));
  const MatmulProblem& problem = checked.call.problem;
  if (problem.products == 0) return fmt::format("matmul: {}\n", kNothing);
  if (checked.backend != Backend::kCuda) {
    const MatmulMachine machine = host_machine();
    return tutti::explain(problem, machine, select(problem, machine, checked.forced));
  }
  TUTTI_ASSIGN(const int device, cuda_->current_device());
  TUTTI_ASSIGN(const PreparedPtr prepared, prepare({device, checked.forced, problem}, false));
  return tutti::explain(problem, prepared->machine, prepared->selected);
}

MatmulEngine& matmul_engine() {
  static auto* const engine = new MatmulEngine({});
  return *engine;
}

}  // namespace tutti
