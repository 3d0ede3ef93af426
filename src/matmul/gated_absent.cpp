#include "matmul/gated.hpp"

namespace tutti {
namespace {

constexpr const char* kNoGatedKernels =
    "gated matmul: this build was not compiled for architecture 90a";

}  // namespace

Status load_gated_matmul(CudaDriver&, const MatmulProblem&, const MatmulTiling&) {
  return {StatusCode::kUnsupported, kNoGatedKernels};
}

Status run_gated_matmul(CudaDriver&, const GatedMatmul&, int, Stream) {
  return {StatusCode::kUnsupported, kNoGatedKernels};
}

}  // namespace tutti
