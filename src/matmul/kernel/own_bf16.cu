#include "matmul/kernel/instantiate.cuh"

namespace tutti {

OwnKernel own_kernel_fp16(const MatmulTile& tile, MatrixLayout b_layout);

OwnKernel own_kernel(const MatmulTile& tile, DataType dtype, MatrixLayout b_layout) {
  return dtype == DataType::kFloat16 ? own_kernel_fp16(tile, b_layout)
                                     : own_kernel_of<Bfloat16>(tile, b_layout);
}

}  // namespace tutti
