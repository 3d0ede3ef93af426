// What NVML knows of links between GPUs, and of their power. Loaded at run time; own prototypes,
// since toolkits may lack its header. For people to read, and for the cost model, which takes the
// least number of links that a rank knows of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tutti/status.hpp"

namespace tutti {

struct NvmlGpu {
  std::string pci_bus_id;
  int nvlinks = 0;  // active links
  int numa_node = -1;
};

class NvmlDriver {
 public:
  virtual ~NvmlDriver() = default;
  virtual Result<std::string> driver_version() = 0;
  virtual Result<std::vector<NvmlGpu>> gpus() = 0;
  // What a GPU draws: the mean of the last second or less. kUnavailable where this is not known.
  virtual Result<double> watts(const std::string& pci_bus_id) = 0;
};

// Null where libnvidia-ml.so.1 cannot be loaded or does not start; `why` says which.
NvmlDriver* real_nvml(std::string* why = nullptr);

// The same from another file.
std::unique_ptr<NvmlDriver> open_nvml(const std::string& library, std::string* why = nullptr);

}  // namespace tutti
