// Devices, versions, and how the one instance comes to be.
#include <fmt/format.h>

#include <cstring>

#include "base/try.hpp"
#include "drivers/cuda_advice.hpp"
#include "drivers/host_files.hpp"
#include "drivers/real_cuda.hpp"

namespace tutti {
namespace {

static_assert(static_cast<int>(CudaTrouble::kStubLibrary) == cudaErrorStubLibrary);
static_assert(static_cast<int>(CudaTrouble::kInsufficientDriver) == cudaErrorInsufficientDriver);
static_assert(static_cast<int>(CudaTrouble::kDevicesUnavailable) == cudaErrorDevicesUnavailable);
static_assert(static_cast<int>(CudaTrouble::kNoDevice) == cudaErrorNoDevice);
static_assert(static_cast<int>(CudaTrouble::kSystemNotReady) == cudaErrorSystemNotReady);
static_assert(static_cast<int>(CudaTrouble::kSystemDriverMismatch) ==
              cudaErrorSystemDriverMismatch);
static_assert(static_cast<int>(CudaTrouble::kCompatNotSupported) ==
              cudaErrorCompatNotSupportedOnDevice);
static_assert(static_cast<int>(CudaTrouble::kUnknown) == cudaErrorUnknown);

// Ok where at least one device can be used.
Result<int> usable_devices() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  if (error == cudaSuccess) return count;
  CudaVersions versions;
  cudaDriverGetVersion(&versions.driver);
  cudaRuntimeGetVersion(&versions.runtime);
  const std::string words =
      fmt::format("{}: {}", cudaGetErrorName(error), cudaGetErrorString(error));
  static_cast<void>(cudaGetLastError());
  return Status(StatusCode::kUnavailable, advice_for(error, words, versions));
}

struct Opened {
  CudaDriver* driver = nullptr;
  std::string why;
};

Opened open_cuda() {
  Result<CudaLibrary> library = load_cuda_library();
  if (!library.is_ok()) return {nullptr, library.status().message()};
  const Result<int> devices = usable_devices();
  if (!devices.is_ok()) return {nullptr, devices.status().message()};
  // Never deleted: destructors of other libraries may still need it while the process ends.
  return {new RealCuda(*library), {}};
}

std::string bus_id_of(int device) {
  char text[32] = {};
  if (!check(cudaDeviceGetPCIBusId(text, sizeof text, device), "cudaDeviceGetPCIBusId")) return {};
  return normal_pci_bus_id(text);
}

}  // namespace

CudaDriver* real_cuda(std::string* why) {
  static const Opened opened = open_cuda();
  if (why != nullptr) *why = opened.why;
  return opened.driver;
}

Result<int> RealCuda::device_count() {
  const RelaxedCapture relaxed;
  return usable_devices();
}

bool RealCuda::has_attribute(int device, CUdevice_attribute attribute) const {
  CUdevice handle = 0;
  int value = 0;
  return library_.device_get(&handle, device) == CUDA_SUCCESS &&
         library_.device_get_attribute(&value, attribute, handle) == CUDA_SUCCESS && value != 0;
}

Result<CudaDeviceProperties> RealCuda::properties(int device) {
  const RelaxedCapture relaxed;
  cudaDeviceProp from{};
  TUTTI_TRY(check(cudaGetDeviceProperties(&from, device), "cudaGetDeviceProperties"));
  CudaDeviceProperties to;
  to.name = from.name;
  to.pci_bus_id = bus_id_of(device);
  static_assert(sizeof from.uuid.bytes == sizeof to.uuid);
  std::memcpy(to.uuid.data(), from.uuid.bytes, sizeof to.uuid);
  to.compute_major = from.major;
  to.compute_minor = from.minor;
  to.multiprocessors = from.multiProcessorCount;
  to.memory_bytes = from.totalGlobalMem;
  to.l2_bytes = static_cast<std::size_t>(from.l2CacheSize);
  to.posix_fd_handles =
      has_attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  to.fabric_handles = has_attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
  to.multicast = has_attribute(device, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
  to.stream_memory_operations =
      has_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
  static_assert(CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE == 0);
  to.orders_rdma_writes =
      has_attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
  return to;
}

Result<std::string> RealCuda::driver_version() {
  std::string version = nvidia_driver_version(kernel_text("/proc/driver/nvidia/version"));
  if (!version.empty()) return version;
  int number = 0;
  TUTTI_TRY(check(cudaDriverGetVersion(&number), "cudaDriverGetVersion"));
  return "CUDA " + cuda_version_text(number);
}

Result<std::string> RealCuda::runtime_version() {
  int number = 0;
  TUTTI_TRY(check(cudaRuntimeGetVersion(&number), "cudaRuntimeGetVersion"));
  return cuda_version_text(number);
}

Status RealCuda::set_device(int device) {
  const RelaxedCapture relaxed;
  return check(cudaSetDevice(device), "cudaSetDevice");
}

Result<int> RealCuda::current_device() {
  int device = 0;
  TUTTI_TRY(check(cudaGetDevice(&device), "cudaGetDevice"));
  return device;
}

Result<bool> RealCuda::can_access_peer(int device, int peer) {
  const RelaxedCapture relaxed;
  int can = 0;
  TUTTI_TRY(check(cudaDeviceCanAccessPeer(&can, device, peer), "cudaDeviceCanAccessPeer"));
  return can != 0;
}

Status RealCuda::enable_peer_access(int device, int peer) {
  const RelaxedCapture relaxed;
  const DeviceGuard guard(library_, device);
  TUTTI_TRY(guard.status());
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    static_cast<void>(cudaGetLastError());
    return Status::ok();
  }
  return check(error, "cudaDeviceEnablePeerAccess");
}

}  // namespace tutti
