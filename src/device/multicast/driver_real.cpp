// Builds with TUTTI_MULTICAST alone: see support.hpp for why.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <fmt/core.h>

#include "base/try.hpp"
#include "device/multicast/driver.hpp"

namespace tutti {
namespace {

class RealMulticast final : public MulticastDriver {
 public:
  // Whether libcuda has them all. It is loaded already: nobody comes here without a GPU.
  bool load() {
    return find(create_, "cuMulticastCreate") && find(add_device_, "cuMulticastAddDevice") &&
           find(bind_, "cuMulticastBindMem") && find(unbind_, "cuMulticastUnbind") &&
           find(granularity_, "cuMulticastGetGranularity") && find(device_get_, "cuDeviceGet");
  }

  Result<std::size_t> granularity(int gpus, std::size_t bytes) override {
    const CUmulticastObjectProp properties = describe(gpus, bytes);
    std::size_t unit = 0;
    TUTTI_TRY(check(granularity_(&unit, &properties, CU_MULTICAST_GRANULARITY_MINIMUM),
                    "cuMulticastGetGranularity"));
    return unit;
  }

  Result<CudaAllocation> create(int gpus, std::size_t bytes) override {
    const CUmulticastObjectProp properties = describe(gpus, bytes);
    CUmemGenericAllocationHandle object = 0;
    TUTTI_TRY(check(create_(&object, &properties), "cuMulticastCreate"));
    return CudaAllocation{object};
  }

  Status add_device(CudaAllocation object, int device) override {
    CUdevice handle = 0;
    TUTTI_TRY(check(device_get_(&handle, device), "cuDeviceGet"));
    return check(add_device_(object, handle), "cuMulticastAddDevice");
  }

  Status bind(CudaAllocation object, CudaAllocation memory, std::size_t bytes) override {
    return check(bind_(object, 0, memory, 0, bytes, 0), "cuMulticastBindMem");
  }

  Status unbind(CudaAllocation object, int device, std::size_t bytes) override {
    CUdevice handle = 0;
    TUTTI_TRY(check(device_get_(&handle, device), "cuDeviceGet"));
    return check(unbind_(object, handle, 0, bytes), "cuMulticastUnbind");
  }

 private:
  static CUmulticastObjectProp describe(int gpus, std::size_t bytes) {
    CUmulticastObjectProp properties = {};
    properties.numDevices = static_cast<unsigned>(gpus);
    properties.size = bytes;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return properties;
  }

  template <class Function>
  static bool find(Function& function, const char* name) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &entry, CUDA_VERSION, cudaEnableDefault, &found);
    function = reinterpret_cast<Function>(entry);
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess && entry != nullptr;
  }

  static Status check(CUresult result, const char* call) {
    if (result == CUDA_SUCCESS) return Status::ok();
    return {StatusCode::kCuda, fmt::format("{}: error {}", call, static_cast<int>(result))};
  }

  decltype(&::cuMulticastCreate) create_ = nullptr;
  decltype(&::cuMulticastAddDevice) add_device_ = nullptr;
  decltype(&::cuMulticastBindMem) bind_ = nullptr;
  decltype(&::cuMulticastUnbind) unbind_ = nullptr;
  decltype(&::cuMulticastGetGranularity) granularity_ = nullptr;
  decltype(&::cuDeviceGet) device_get_ = nullptr;
};

}  // namespace

MulticastDriver* real_multicast() {
  static RealMulticast driver;
  static const bool loaded = driver.load();
  return loaded ? &driver : nullptr;
}

}  // namespace tutti
