#include "machine.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <ctime>

#include "base/knobs.hpp"
#include "base/process_environment.hpp"
#include "device/kernel_args.hpp"
#include "device/multicast/support.hpp"
#include "drivers/cuda.hpp"
#include "drivers/nccl.hpp"
#include "drivers/nvml.hpp"
#include "topology/topology.hpp"

namespace tutti::cli {
namespace {

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc = {};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text, length};
}

// A batch script of SLURM has the variables of a rank and is none: `srun` starts those.
Result<LaunchEnvironment> launch_of_this_process() {
  auto launch = read_launch_environment(process_environment());
  if (launch.is_ok() && launch->launcher == "slurm" &&
      std::getenv("SLURM_STEP_NUM_TASKS") == nullptr) {
    return Status(StatusCode::kUnavailable, "srun did not start this process");
  }
  return launch;
}

// Empty where this build, this process and all GPUs can use NVLink multicast.
std::string why_multicast_is_off(CudaDriver& cuda, int gpus) {
  if (std::string why = why_no_multicast(); !why.empty()) return why;
  if (Knobs::process().flag("TUTTI_SHARE_GPUS")) return "ranks share a GPU";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const auto properties = cuda.properties(gpu);
    if (!properties.is_ok() || !properties->multicast) {
      return fmt::format("GPU {} has none", gpu);
    }
  }
  return {};
}

}  // namespace

BenchMachine bench_machine() {
  BenchMachine machine;
  CudaDriver* cuda = real_cuda(&machine.why_no_gpu);
  if (cuda != nullptr) {
    const Result<int> count = cuda->device_count();
    if (count.is_ok()) machine.gpus = *count;
    machine.why_no_gpu = count.is_ok() ? "the driver sees no GPU" : count.status().message();
    machine.multicast = machine.gpus > 0 && why_multicast_is_off(*cuda, machine.gpus).empty();
    if (machine.gpus > 0 && Knobs::process().flag("TUTTI_SHARE_GPUS")) {
      machine.gpus = kMaxCudaRanks;  // as many ranks as that get one
    }
  }
  constexpr const char* kTimeout = "TUTTI_TIMEOUT_MS";
  if (Knobs::process().source(kTimeout) != KnobSource::kDefault) {
    machine.timeout = Knobs::process().milliseconds(kTimeout);
  }
  machine.takes_ranks_apart = Knobs::process().text("TUTTI_TOPOLOGY") != "system";
  machine.records = Knobs::process().flag("TUTTI_RECORDER");
  machine.launch = launch_of_this_process();
  return machine;
}

Environment describe_environment(Backend backend, const std::string& command_line) {
  const bool cuda = backend == Backend::kCuda;
  const Machine machine =
      discover_machine(cuda ? real_cuda() : nullptr, cuda ? real_nvml() : nullptr);
  Environment environment{.host = machine.host.name,
                          .gpus = static_cast<int>(machine.gpus.size()),
                          .driver = machine.driver_version,
                          .cuda = machine.cuda_version,
                          .date = now(),
                          .command = command_line};
  if (!machine.gpus.empty()) {
    environment.gpu = machine.gpus.front().name;
    environment.why_no_multicast = why_multicast_is_off(*real_cuda(), environment.gpus);
    environment.multicast = environment.why_no_multicast.empty();
  }
  if (NcclDriver* nccl = cuda ? real_nccl() : nullptr; nccl != nullptr) {
    if (const auto version = nccl->version(); version.is_ok()) environment.nccl = *version;
  }
  return environment;
}

}  // namespace tutti::cli
