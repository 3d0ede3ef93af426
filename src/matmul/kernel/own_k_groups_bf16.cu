#include "matmul/kernel/instantiate.cuh"
#include "matmul/kernel/pull.cuh"

namespace tutti {

OwnKernel own_k_groups_kernel_fp16(int rows, MatrixLayout b_layout);

OwnKernel own_k_groups_kernel(int rows, DataType dtype, MatrixLayout b_layout) {
  return dtype == DataType::kFloat16 ? own_k_groups_kernel_fp16(rows, b_layout)
                                     : own_kernel_of<Bfloat16, KGroupGate>(rows, b_layout);
}

}  // namespace tutti
