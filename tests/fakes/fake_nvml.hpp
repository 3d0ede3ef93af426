// NVML as a test says.
#pragma once

#include <string>
#include <vector>

#include "drivers/nvml.hpp"

namespace tutti {

class FakeNvml : public NvmlDriver {
 public:
  Result<std::string> driver_version() override { return version; }
  Result<std::vector<NvmlGpu>> gpus() override { return all; }
  Result<double> watts(const std::string&) override { return power; }
  std::string version = "0.0";
  double power = 0;
  std::vector<NvmlGpu> all;
};

}  // namespace tutti
