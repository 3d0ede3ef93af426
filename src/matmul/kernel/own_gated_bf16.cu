#include "matmul/kernel/arrival.cuh"
#include "matmul/kernel/instantiate.cuh"

namespace tutti {

OwnKernel own_gated_kernel_fp16(int rows, MatrixLayout b_layout);

OwnKernel own_gated_kernel(int rows, DataType dtype, MatrixLayout b_layout) {
  return dtype == DataType::kFloat16 ? own_gated_kernel_fp16(rows, b_layout)
                                     : own_kernel_of<Bfloat16, ArrivalGate>(rows, b_layout);
}

}  // namespace tutti
