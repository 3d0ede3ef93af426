#include "executors/peer/cuda.hpp"

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti {

Status launch_on_cuda(CudaDriver& cuda, const CudaBody& body, const KernelArgs& work,
                      Stream stream) {
  constexpr int kWarp = 32;
  const int needed = std::clamp(body.threads, work.ranks, kMaxThreads);
  // Kernels have one more at most.
  const void* const more = work.counts != nullptr ? static_cast<const void*>(work.counts)
                                                  : static_cast<const void*>(work.messages);
  void* arguments[] = {const_cast<KernelArgs*>(&work), const_cast<void*>(more)};
  return cuda.launch(
      {.kernel = body.kernel,
       .blocks = work.blocks,
       .threads = static_cast<int>(round_up(static_cast<std::size_t>(needed), kWarp)),
       .cluster = body.cluster,
       .shared_bytes = body.shared_bytes,
       .arguments = arguments,
       .stream = stream,
       .programmatic = body.starts_early});
}

namespace {

Status load_kernels(CudaDriver& cuda, const Algorithm& row, DataType dtype, OpKind op, int ranks) {
  const CudaKernel kernel = row.takes(dtype, op) ? row.cuda(dtype, op, ranks) : nullptr;
  if (kernel == nullptr) return Status::ok();
  TUTTI_TRY(cuda.load_kernel(kernel, row.shared_bytes));
  for (int k = 0; k < row.then.kernels; ++k) {
    TUTTI_TRY(cuda.load_kernel(row.then.cuda(dtype, k), 0));
  }
  return Status::ok();
}

}  // namespace

Status load_all_kernels(CudaDriver& cuda, int compute, int ranks, std::span<const Algorithm> rows) {
  for (const Algorithm& row : rows) {
    if (row.cuda == nullptr || compute < row.least_compute) continue;
    for (const DataType dtype : kAllDataTypes) {
      for (const OpKind op : kAllOps) TUTTI_TRY(load_kernels(cuda, row, dtype, op, ranks));
    }
  }
  return Status::ok();
}

}  // namespace tutti
