#include "device/requested_copies.hpp"
#include "executors/network/copy_ring.hpp"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kRequestThreads)
    requested_copies_kernel_body(const __grid_constant__ RequestedCopies work) {
  run_requested_copies(work, device::Block());
}

}  // namespace

const void* requested_copies_kernel() {
  return reinterpret_cast<const void*>(&requested_copies_kernel_body);
}

}  // namespace tutti
