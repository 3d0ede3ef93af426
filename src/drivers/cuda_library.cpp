#include "drivers/cuda_library.hpp"

#include <fmt/format.h>

#include <string>

#include "drivers/cuda_advice.hpp"
#include "drivers/dynamic_library.hpp"

namespace tutti {
namespace {

bool has_context(const CudaLibrary& library, int device) {
  CUdevice handle = 0;
  unsigned flags = 0;
  int active = 0;
  return library.device_get(&handle, device) == CUDA_SUCCESS &&
         library.primary_context_state(handle, &flags, &active) == CUDA_SUCCESS && active != 0;
}

StatusCode code_of(bool out_of_memory) {
  return out_of_memory ? StatusCode::kResourceExhausted : StatusCode::kCuda;
}

}  // namespace

Result<CudaLibrary> load_cuda_library() {
  Result<DynamicLibrary> opened = DynamicLibrary::open("libcuda.so.1");
  if (!opened.is_ok()) {
    return Status(StatusCode::kUnavailable, advice_without_libcuda(opened.status().message()));
  }
  CudaLibrary calls;
  std::string missing;
  // What cuda.h renames by a macro has that name here, suffix included.
  opened->require("cuGetErrorName", calls.get_error_name, missing);
  opened->require("cuGetErrorString", calls.get_error_string, missing);
  opened->require("cuDeviceGet", calls.device_get, missing);
  opened->require("cuDeviceGetAttribute", calls.device_get_attribute, missing);
  opened->require("cuDevicePrimaryCtxGetState", calls.primary_context_state, missing);
  opened->require("cuCtxGetCurrent", calls.context_get_current, missing);
  opened->require("cuMemGetAllocationGranularity", calls.get_allocation_granularity, missing);
  opened->require("cuMemCreate", calls.create, missing);
  opened->require("cuMemRelease", calls.release, missing);
  opened->require("cuMemExportToShareableHandle", calls.export_handle, missing);
  opened->require("cuMemImportFromShareableHandle", calls.import_handle, missing);
  opened->require("cuMemAddressReserve", calls.address_reserve, missing);
  opened->require("cuMemAddressFree", calls.address_free, missing);
  opened->require("cuMemMap", calls.map, missing);
  opened->require("cuMemUnmap", calls.unmap, missing);
  opened->require("cuMemSetAccess", calls.set_access, missing);
  opened->require("cuMemRetainAllocationHandle", calls.retain_handle, missing);
  opened->require("cuMemGetAddressRange_v2", calls.get_address_range, missing);
  opened->require("cuPointerGetAttributes", calls.pointer_get_attributes, missing);
  static_cast<void>(opened->find("cuTensorMapEncodeTiled", calls.encode_tensor_map));
  static_cast<void>(opened->find("cuStreamBatchMemOp_v2", calls.batch_memory_operations));
  if (missing.empty()) return calls;
  return Status(StatusCode::kUnavailable,
                fmt::format("the NVIDIA driver is too old: {} has no {}: update the driver",
                            opened->path(), missing));
}

Status check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return Status::ok();
  static_cast<void>(cudaGetLastError());
  return Status(
      code_of(error == cudaErrorMemoryAllocation),
      fmt::format("{}: {} ({})", call, cudaGetErrorName(error), cudaGetErrorString(error)));
}

Status check(const CudaLibrary& library, CUresult error, const char* call) {
  if (error == CUDA_SUCCESS) return Status::ok();
  const char* name = nullptr;
  const char* text = nullptr;
  library.get_error_name(error, &name);
  library.get_error_string(error, &text);
  return Status(code_of(error == CUDA_ERROR_OUT_OF_MEMORY),
                fmt::format("{}: {} ({})", call, name ? name : std::to_string(error),
                            text ? text : "an error this driver has no words for"));
}

DeviceGuard::DeviceGuard(const CudaLibrary& library, int device)
    : library_(library), device_(device) {
  status_ = check(cudaGetDevice(&previous_), "cudaGetDevice");
  // Since CUDA 12, cudaSetDevice also makes the primary context and makes it current.
  if (status_.is_ok()) status_ = check(cudaSetDevice(device), "cudaSetDevice");
}

DeviceGuard::~DeviceGuard() {
  if (previous_ < 0 || previous_ == device_ || !has_context(library_, previous_)) return;
  static_cast<void>(check(cudaSetDevice(previous_), "cudaSetDevice"));
}

}  // namespace tutti
