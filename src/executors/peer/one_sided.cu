#include "device/one_sided.hpp"

namespace tutti {

const void* one_sided_kernel();
const void* copy_kernel();

namespace {

constexpr int kMaxThreads = 512;

__global__ void __launch_bounds__(kMaxThreads)
    one_sided_kernel_body(const __grid_constant__ OneSidedWork work) {
  run_one_sided(work, device::Block());
}

__global__ void __launch_bounds__(kMaxThreads)
    copy_kernel_body(const __grid_constant__ CopyWork work) {
  run_copy(work, device::Block());
}

}  // namespace

const void* copy_kernel() { return reinterpret_cast<const void*>(&copy_kernel_body); }

const void* one_sided_kernel() { return reinterpret_cast<const void*>(&one_sided_kernel_body); }

}  // namespace tutti
