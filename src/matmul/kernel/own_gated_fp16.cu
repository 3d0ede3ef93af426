#include "matmul/kernel/arrival.cuh"
#include "matmul/kernel/instantiate.cuh"

namespace tutti {

OwnKernel own_gated_kernel_fp16(int rows, MatrixLayout b_layout) {
  return own_kernel_of<Half, ArrivalGate>(rows, b_layout);
}

}  // namespace tutti
