#include "executors/peer/copy_kernel.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace tutti {
namespace {

// Blocks are few, since each takes the place of a matmul's for as long as it runs.
constexpr int kCopyThreads = 512;
constexpr std::size_t kMostCopyBlocks = 16, kBytesPerCopyBlock = 32 * KiB;

}  // namespace

Status load_copy_kernel(CudaDriver& cuda) {
  const void* const kernel = copy_kernel();
  return kernel == nullptr ? Status::ok() : cuda.load_kernel(kernel, 0);
}

Status copy_by_kernel(CudaDriver& cuda, const CopyWork& work, Stream stream) {
  const auto blocks =
      std::clamp<std::size_t>(ceil_div(work.bytes, kBytesPerCopyBlock), 1, kMostCopyBlocks);
  void* arguments[] = {const_cast<CopyWork*>(&work)};
  return cuda.launch({.kernel = copy_kernel(),
                      .blocks = static_cast<int>(blocks),
                      .threads = kCopyThreads,
                      .arguments = arguments,
                      .stream = stream});
}

}  // namespace tutti
