#include "matmul/kernel/instantiate.cuh"

namespace tutti {

OwnKernel own_kernel_fp16(int rows, MatrixLayout b_layout) {
  return own_kernel_of<Half, OpenGate>(rows, b_layout);
}

}  // namespace tutti
