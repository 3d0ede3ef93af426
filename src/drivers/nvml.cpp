#include "drivers/nvml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "drivers/dynamic_library.hpp"
#include "drivers/host_files.hpp"

namespace tutti {
namespace {

// NVML's ABI, as far as it is used.
using NvmlDevice = void*;  // nvmlDevice_t
constexpr int kNvmlSuccess = 0;
constexpr unsigned kNvmlMaxLinks = 18;  // NVML_NVLINK_MAX_LINKS
constexpr unsigned kNvmlVersionBytes = 80;

struct NvmlPci {  // nvmlPciInfo_t, since version 3
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(NvmlPci) == 68);

struct NvmlCalls {
  int (*init)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device_by_index)(unsigned, NvmlDevice*) = nullptr;
  int (*pci_info)(NvmlDevice, NvmlPci*) = nullptr;
  // What an old library may lack; null then.
  int (*link_state)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*device_by_bus_id)(const char*, NvmlDevice*) = nullptr;
  int (*power)(NvmlDevice, unsigned* milliwatts) = nullptr;
};

Result<NvmlCalls> load_calls(const std::string& name) {
  Result<DynamicLibrary> library = DynamicLibrary::open(name);
  if (!library.is_ok()) {
    return Status(
        StatusCode::kUnavailable,
        fmt::format("no NVML ({}): it comes with the NVIDIA driver", library.status().message()));
  }
  NvmlCalls calls;
  std::string missing;
  library->require("nvmlInit_v2", calls.init, missing);
  library->require("nvmlErrorString", calls.error_string, missing);
  library->require("nvmlSystemGetDriverVersion", calls.driver_version, missing);
  library->require("nvmlDeviceGetCount_v2", calls.device_count, missing);
  library->require("nvmlDeviceGetHandleByIndex_v2", calls.device_by_index, missing);
  library->require("nvmlDeviceGetPciInfo_v3", calls.pci_info, missing);
  library->find("nvmlDeviceGetNvLinkState", calls.link_state);
  library->find("nvmlDeviceGetHandleByPciBusId_v2", calls.device_by_bus_id);
  library->find("nvmlDeviceGetPowerUsage", calls.power);
  if (missing.empty()) return calls;
  return Status(StatusCode::kUnavailable,
                fmt::format("{} has no {}: update the driver", library->path(), missing));
}

std::string bus_id_of(const NvmlPci& pci) {
  const auto end = std::find(pci.bus_id.begin(), pci.bus_id.end(), '\0');
  return normal_pci_bus_id(std::string(pci.bus_id.begin(), end));
}

class RealNvml final : public NvmlDriver {
 public:
  explicit RealNvml(const NvmlCalls& calls) : calls_(calls) {}

  Result<std::string> driver_version() override {
    std::array<char, kNvmlVersionBytes> text{};
    TUTTI_TRY(check(calls_.driver_version(text.data(), kNvmlVersionBytes - 1),
                    "nvmlSystemGetDriverVersion"));
    return std::string(text.data());
  }

  Result<std::vector<NvmlGpu>> gpus() override {
    unsigned count = 0;
    TUTTI_TRY(check(calls_.device_count(&count), "nvmlDeviceGetCount"));
    std::vector<NvmlGpu> all;
    for (unsigned index = 0; index < count; ++index) {
      // A GPU that this process may not look at (another container's) is left out.
      NvmlDevice device = nullptr;
      NvmlPci pci{};
      if (calls_.device_by_index(index, &device) != kNvmlSuccess) continue;
      if (calls_.pci_info(device, &pci) != kNvmlSuccess) continue;
      all.push_back(describe(device, pci));
    }
    return all;
  }

  Result<double> watts(const std::string& pci_bus_id) override {
    if (calls_.device_by_bus_id == nullptr || calls_.power == nullptr) {
      return Status(StatusCode::kUnavailable, "this NVML does not know the power of a GPU");
    }
    NvmlDevice device = nullptr;
    TUTTI_TRY(check(calls_.device_by_bus_id(pci_bus_id.c_str(), &device),
                    "nvmlDeviceGetHandleByPciBusId"));
    unsigned milliwatts = 0;
    TUTTI_TRY(check(calls_.power(device, &milliwatts), "nvmlDeviceGetPowerUsage"));
    return milliwatts / 1e3;
  }

  Status check(int error, const char* call) const {
    if (error == kNvmlSuccess) return Status::ok();
    const char* text = calls_.error_string(error);
    return Status(StatusCode::kUnavailable,
                  fmt::format("{}: {}", call, text ? text : std::to_string(error)));
  }

 private:
  NvmlGpu describe(NvmlDevice device, const NvmlPci& pci) const {
    NvmlGpu gpu;
    gpu.pci_bus_id = bus_id_of(pci);
    gpu.numa_node = pci_numa_node(gpu.pci_bus_id);
    for (unsigned link = 0; link < kNvmlMaxLinks; ++link) gpu.nvlinks += is_active(device, link);
    return gpu;
  }

  bool is_active(NvmlDevice device, unsigned link) const {
    unsigned active = 0;
    return calls_.link_state != nullptr &&
           calls_.link_state(device, link, &active) == kNvmlSuccess && active != 0;
  }

  const NvmlCalls calls_;
};

}  // namespace

std::unique_ptr<NvmlDriver> open_nvml(const std::string& library, std::string* why) {
  const auto refuse = [why](const Status& status) {
    if (why != nullptr) *why = status.message();
    return nullptr;
  };
  const Result<NvmlCalls> calls = load_calls(library);
  if (!calls.is_ok()) return refuse(calls.status());
  auto nvml = std::make_unique<RealNvml>(*calls);
  const Status started = nvml->check(calls->init(), "nvmlInit");
  if (!started.is_ok()) return refuse(started);
  return nvml;
}

NvmlDriver* real_nvml(std::string* why) {
  static std::string reason;
  // Never deleted, like the library itself: it is never closed.
  static NvmlDriver* const nvml = open_nvml("libnvidia-ml.so.1", &reason).release();
  if (why != nullptr) *why = reason;
  return nvml;
}

}  // namespace tutti
