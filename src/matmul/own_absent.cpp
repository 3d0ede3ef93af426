#include "matmul/own.hpp"

namespace tutti {
namespace {

constexpr const char* kAbsent = "own_matmul: this build was not compiled for architecture 90a";

}  // namespace

bool has_own_matmul() { return false; }

Status load_own_matmul(CudaDriver&, const MatmulProblem&, const MatmulTiling&) {
  return {StatusCode::kUnsupported, kAbsent};
}

Status run_own_matmul(CudaDriver&, const CheckedMatmul&, const MatmulTiling&, int, Stream) {
  return {StatusCode::kUnsupported, kAbsent};
}

}  // namespace tutti
