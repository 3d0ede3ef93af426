#include "matmul/kernel/instantiate.cuh"
#include "matmul/kernel/pull.cuh"

namespace tutti {

OwnKernel own_k_groups_kernel_fp16(int rows, MatrixLayout b_layout) {
  return own_kernel_of<Half, KGroupGate>(rows, b_layout);
}

}  // namespace tutti
