#include "device/one_sided.hpp"

namespace tutti {

const void* one_sided_kernel();

namespace {

constexpr int kMaxThreads = 512;

__global__ void __launch_bounds__(kMaxThreads)
    one_sided_kernel_body(const __grid_constant__ OneSidedWork work) {
  run_one_sided(work, device::Block());
}

}  // namespace

const void* one_sided_kernel() { return reinterpret_cast<const void*>(&one_sided_kernel_body); }

}  // namespace tutti
