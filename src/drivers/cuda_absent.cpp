// The door to CUDA in a build that has none.
#include "drivers/cuda.hpp"

namespace tutti {

CudaDriver* real_cuda(std::string* why) {
  if (why != nullptr) {
    *why =
        "built without CUDA: install the CUDA toolkit (nvcc), then configure again with "
        "-DTUTTI_CUDA=ON";
  }
  return nullptr;
}

}  // namespace tutti
