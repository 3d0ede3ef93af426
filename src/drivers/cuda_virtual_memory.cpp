// Allocations that go from process to process as POSIX descriptors or fabric handles, and their
// mappings.
#include <fcntl.h>

#include <fmt/format.h>

#include "base/try.hpp"
#include "drivers/real_cuda.hpp"

namespace tutti {
namespace {

CUmemAllocationProp properties_on(int device, CUmemAllocationHandleType shared_as) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes = shared_as;
  return properties;
}

constexpr CUmemAllocationHandleType kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr CUmemAllocationHandleType kFabric = CU_MEM_HANDLE_TYPE_FABRIC;
static_assert(sizeof(CudaFabricHandle) == sizeof(CUmemFabricHandle));

}  // namespace

Status RealCuda::ensure_context() const {
  CUcontext context = nullptr;
  if (library_.context_get_current(&context) == CUDA_SUCCESS && context != nullptr) {
    return Status::ok();
  }
  int device = 0;
  TUTTI_TRY(check(cudaGetDevice(&device), "cudaGetDevice"));
  return check(cudaSetDevice(device), "cudaSetDevice");
}

Result<std::size_t> RealCuda::allocation_granularity(int device) {
  const RelaxedCapture relaxed;
  const DeviceGuard guard(library_, device);
  TUTTI_TRY(guard.status());
  const CUmemAllocationProp properties = properties_on(device, kDescriptor);
  std::size_t granularity = 0;
  TUTTI_TRY(check(library_,
                  library_.get_allocation_granularity(&granularity, &properties,
                                                      CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                  "cuMemGetAllocationGranularity"));
  return granularity;
}

Result<CudaAllocation> RealCuda::create_allocation(int device, std::size_t bytes) {
  const RelaxedCapture relaxed;
  const DeviceGuard guard(library_, device);
  TUTTI_TRY(guard.status());
  const CUmemAllocationProp properties = properties_on(device, kDescriptor);
  CUmemGenericAllocationHandle handle = 0;
  TUTTI_TRY(check(library_, library_.create(&handle, bytes, &properties, 0), "cuMemCreate"));
  return CudaAllocation{handle};
}

Status RealCuda::release_allocation(CudaAllocation allocation) {
  const RelaxedCapture relaxed;
  return check(library_, library_.release(allocation), "cuMemRelease");
}

Result<Fd> RealCuda::export_allocation(CudaAllocation allocation) {
  const RelaxedCapture relaxed;
  TUTTI_TRY(ensure_context());
  int descriptor = -1;
  TUTTI_TRY(check(library_, library_.export_handle(&descriptor, allocation, kDescriptor, 0),
                  "cuMemExportToShareableHandle"));
  Fd fd(descriptor);
  // A child that a user starts must not keep the memory alive.
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  return fd;
}

Result<CudaAllocation> RealCuda::import_allocation(int fd) {
  const RelaxedCapture relaxed;
  TUTTI_TRY(ensure_context());
  CUmemGenericAllocationHandle handle = 0;
  // The descriptor itself, in a pointer's clothes.
  void* const os_handle =
      reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));  // NOLINT(performance-no-int-to-ptr)
  TUTTI_TRY(check(library_, library_.import_handle(&handle, os_handle, kDescriptor),
                  "cuMemImportFromShareableHandle"));
  return CudaAllocation{handle};
}

Result<CudaAllocation> RealCuda::create_fabric_allocation(int device, std::size_t bytes) {
  const RelaxedCapture relaxed;
  const DeviceGuard guard(library_, device);
  TUTTI_TRY(guard.status());
  const CUmemAllocationProp properties = properties_on(device, kFabric);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult error = library_.create(&handle, bytes, &properties, 0);
  const Status made = check(library_, error, "cuMemCreate");
  if (error == CUDA_ERROR_NOT_PERMITTED || error == CUDA_ERROR_NOT_SUPPORTED) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{}: fabric handles take a running nvidia-imex and access to one of "
                              "its channels",
                              made.message()));
  }
  TUTTI_TRY(made);
  return CudaAllocation{handle};
}

Result<CudaFabricHandle> RealCuda::export_fabric(CudaAllocation allocation) {
  const RelaxedCapture relaxed;
  TUTTI_TRY(ensure_context());
  CudaFabricHandle handle;
  TUTTI_TRY(check(library_, library_.export_handle(handle.bytes.data(), allocation, kFabric, 0),
                  "cuMemExportToShareableHandle"));
  return handle;
}

Result<CudaAllocation> RealCuda::import_fabric(const CudaFabricHandle& handle) {
  const RelaxedCapture relaxed;
  TUTTI_TRY(ensure_context());
  CUmemGenericAllocationHandle allocation = 0;
  CudaFabricHandle copy = handle;  // CUDA takes it by an address that is not const
  TUTTI_TRY(check(library_, library_.import_handle(&allocation, copy.bytes.data(), kFabric),
                  "cuMemImportFromShareableHandle"));
  return CudaAllocation{allocation};
}

Status RealCuda::give_access(CUdeviceptr address, std::size_t bytes,
                             const std::vector<int>& devices) const {
  std::vector<CUmemAccessDesc> access(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[i].location.id = devices[i];
    access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return check(library_, library_.set_access(address, bytes, access.data(), access.size()),
               "cuMemSetAccess");
}

Result<CudaAddress> RealCuda::map_allocation(CudaAllocation allocation, std::size_t bytes,
                                             const std::vector<int>& devices) {
  const RelaxedCapture relaxed;
  if (devices.empty()) return Status(StatusCode::kInvalidArgument, "a mapping for no device");
  const DeviceGuard guard(library_, devices.front());
  TUTTI_TRY(guard.status());
  CUdeviceptr address = 0;
  TUTTI_TRY(
      check(library_, library_.address_reserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve"));
  Status status = check(library_, library_.map(address, bytes, 0, allocation, 0), "cuMemMap");
  if (!status.is_ok()) {
    library_.address_free(address, bytes);
    return status;
  }
  status = give_access(address, bytes, devices);
  if (!status.is_ok()) {
    library_.unmap(address, bytes);
    library_.address_free(address, bytes);
    return status;
  }
  return address_of(address);
}

Status RealCuda::unmap_allocation(CudaAddress address, std::size_t bytes) {
  const RelaxedCapture relaxed;
  TUTTI_TRY(ensure_context());
  const CUdeviceptr at = device_pointer(address);
  const Status unmapped = check(library_, library_.unmap(at, bytes), "cuMemUnmap");
  const Status freed = check(library_, library_.address_free(at, bytes), "cuMemAddressFree");
  return unmapped.is_ok() ? freed : unmapped;
}

Result<CudaAllocation> RealCuda::retain_allocation(CudaAddress address) {
  const RelaxedCapture relaxed;
  TUTTI_TRY(ensure_context());
  CUmemGenericAllocationHandle handle = 0;
  TUTTI_TRY(
      check(library_, library_.retain_handle(&handle, address), "cuMemRetainAllocationHandle"));
  return CudaAllocation{handle};
}

}  // namespace tutti
