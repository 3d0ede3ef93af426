// Asks the drivers what this process sees.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "drivers/host_files.hpp"
#include "drivers/nvml.hpp"
#include "topology/host.hpp"

namespace tutti {
namespace {

// As nvidia-smi writes it: "GPU-" and the bytes in groups of 4, 2, 2, 2 and 6.
std::string uuid_text(const std::array<std::uint8_t, 16>& bytes) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

Gpu gpu_from(int index, const CudaDeviceProperties& properties) {
  Gpu gpu;
  gpu.index = index;
  gpu.name = properties.name;
  gpu.pci_bus_id = normal_pci_bus_id(properties.pci_bus_id);
  gpu.uuid = uuid_text(properties.uuid);
  gpu.compute = properties.compute_major * 10 + properties.compute_minor;
  gpu.multiprocessors = properties.multiprocessors;
  gpu.memory_bytes = properties.memory_bytes;
  gpu.numa_node = pci_numa_node(gpu.pci_bus_id);
  gpu.posix_fd_handles = properties.posix_fd_handles;
  gpu.fabric_handles = properties.fabric_handles;
  gpu.multicast = properties.multicast;
  return gpu;
}

// NVML numbers GPUs in its own order; the PCI id says which is which.
void add_links(const std::vector<NvmlGpu>& known, std::vector<Gpu>& gpus) {
  for (Gpu& gpu : gpus) {
    const auto same = [&gpu](const NvmlGpu& other) {
      return normal_pci_bus_id(other.pci_bus_id) == gpu.pci_bus_id;
    };
    const auto found = std::find_if(known.begin(), known.end(), same);
    if (found == known.end()) continue;
    gpu.nvlinks = found->nvlinks;
    if (gpu.numa_node < 0) gpu.numa_node = found->numa_node;
  }
}

Status discover_gpus(CudaDriver& cuda, Machine& machine) {
  TUTTI_ASSIGN(const int count, cuda.device_count());
  TUTTI_ASSIGN(machine.driver_version, cuda.driver_version());
  TUTTI_ASSIGN(machine.cuda_version, cuda.runtime_version());
  for (int device = 0; device < count; ++device) {
    TUTTI_ASSIGN(const CudaDeviceProperties properties, cuda.properties(device));
    machine.gpus.push_back(gpu_from(device, properties));
  }
  const auto gpus = static_cast<std::size_t>(count);
  machine.peer_access.assign(gpus, std::vector<bool>(gpus, true));  // each reaches itself
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      TUTTI_ASSIGN(const bool can, cuda.can_access_peer(from, to));
      machine.peer_access[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = can;
    }
  }
  return Status::ok();
}

}  // namespace

Machine discover_machine(CudaDriver* cuda, NvmlDriver* nvml) {
  Machine machine;
  machine.host = discover_host();
  if (cuda == nullptr) {
    // The door itself knows why there is none.
    if (real_cuda(&machine.why_no_gpu) != nullptr) machine.why_no_gpu = "not asked for";
    return machine;
  }
  const Status status = discover_gpus(*cuda, machine);
  if (!status.is_ok() || machine.gpus.empty()) {
    machine.gpus.clear();
    machine.peer_access.clear();
    machine.why_no_gpu = status.is_ok() ? "the driver sees no GPU" : status.message();
    return machine;
  }
  if (nvml != nullptr) {
    if (const auto known = nvml->gpus()) add_links(*known, machine.gpus);
  }
  return machine;
}

}  // namespace tutti
