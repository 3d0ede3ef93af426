#include "matmul/kernel/instantiate.cuh"

namespace tutti {

OwnKernel own_kernel_fp16(const MatmulTile& tile, MatrixLayout b_layout) {
  return own_kernel_of<Half>(tile, b_layout);
}

}  // namespace tutti
