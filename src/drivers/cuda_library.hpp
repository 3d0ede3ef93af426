// What real_cuda is made of: libcuda's entry points, found at run time, and CUDA's errors as
// Status. Includes the toolkit's headers, so only the cuda_*.cpp of this room may include it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "drivers/cuda.hpp"

namespace tutti {

// The driver API that is used; the runtime API is linked statically. Signatures are the toolkit's.
struct CudaLibrary {
  decltype(&::cuGetErrorName) get_error_name = nullptr;
  decltype(&::cuGetErrorString) get_error_string = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&::cuDevicePrimaryCtxGetState) primary_context_state = nullptr;
  decltype(&::cuCtxGetCurrent) context_get_current = nullptr;
  decltype(&::cuMemGetAllocationGranularity) get_allocation_granularity = nullptr;
  decltype(&::cuMemCreate) create = nullptr;
  decltype(&::cuMemRelease) release = nullptr;
  decltype(&::cuMemExportToShareableHandle) export_handle = nullptr;
  decltype(&::cuMemImportFromShareableHandle) import_handle = nullptr;
  decltype(&::cuMemAddressReserve) address_reserve = nullptr;
  decltype(&::cuMemAddressFree) address_free = nullptr;
  decltype(&::cuMemMap) map = nullptr;
  decltype(&::cuMemUnmap) unmap = nullptr;
  decltype(&::cuMemSetAccess) set_access = nullptr;
  decltype(&::cuMemRetainAllocationHandle) retain_handle = nullptr;
  decltype(&::cuMemGetAddressRange) get_address_range = nullptr;
  decltype(&::cuPointerGetAttributes) pointer_get_attributes = nullptr;
  decltype(&::cuTensorMapEncodeTiled) encode_tensor_map = nullptr;    // null before CUDA 12
  decltype(&::cuStreamBatchMemOp) batch_memory_operations = nullptr;  // null before CUDA 11.7
};

// kUnavailable says what is missing and what to do about it. The runtime initialises the driver.
Result<CudaLibrary> load_cuda_library();

// "cudaMemcpyAsync: cudaErrorInvalidValue (invalid argument)". Out of memory is kResourceExhausted,
// everything else kCuda. A runtime error is cleared, so that the caller's own code does not find
// it.
Status check(cudaError_t error, const char* call);
Status check(const CudaLibrary& library, CUresult error, const char* call);

// The two APIs' notions of an address.
inline CUdeviceptr device_pointer(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}
inline CudaAddress address_of(CUdeviceptr pointer) {
  return reinterpret_cast<CudaAddress>(pointer);  // NOLINT(performance-no-int-to-ptr)
}

// Makes `device` (its primary context too) current for a scope. On leaving, the thread's device is
// restored, unless it has no context yet: setting it would make one, with its memory, on a GPU that
// nobody here uses.
class DeviceGuard {
 public:
  DeviceGuard(const CudaLibrary& library, int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  const Status& status() const { return status_; }

 private:
  const CudaLibrary& library_;
  int previous_ = -1;
  int device_;
  Status status_;
};

}  // namespace tutti
