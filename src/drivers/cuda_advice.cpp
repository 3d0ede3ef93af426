#include "drivers/cuda_advice.hpp"

#include <fmt/format.h>

namespace tutti {
namespace {

std::string old_driver(const CudaVersions& versions) {
  const std::string runtime = cuda_version_text(versions.runtime);
  if (versions.driver == 0) {
    return fmt::format("no NVIDIA driver answers: install one that serves CUDA {}", runtime);
  }
  return fmt::format(
      "the NVIDIA driver is too old: it serves CUDA {}, this build of tutti needs {}: update the "
      "driver, install NVIDIA's cuda-compat package, or build with an older CUDA toolkit",
      cuda_version_text(versions.driver), runtime);
}

std::string_view remedy(int code) {
  switch (static_cast<CudaTrouble>(code)) {
    case CudaTrouble::kStubLibrary:
      return "the libcuda.so.1 that was found is the toolkit's stub: take its folder out of "
             "LD_LIBRARY_PATH";
    case CudaTrouble::kDevicesUnavailable:
      return "every GPU is in use or in a compute mode that refuses this process: look at "
             "nvidia-smi";
    case CudaTrouble::kNoDevice:
      return "the driver sees no GPU: look at nvidia-smi, at CUDA_VISIBLE_DEVICES, and in a "
             "container at its --gpus option";
    case CudaTrouble::kSystemNotReady:
      return "the GPUs' fabric is not ready: start nvidia-fabricmanager and wait until it is up";
    case CudaTrouble::kSystemDriverMismatch:
      return "libcuda.so.1 and the loaded kernel module are of different versions: reboot, or use "
             "the library of the installed driver";
    case CudaTrouble::kCompatNotSupported:
      return "the cuda-compat package does not support this GPU: take it out of LD_LIBRARY_PATH "
             "and update the driver";
    case CudaTrouble::kUnknown:
      return "the driver could not start: look at the kernel's log (dmesg) and at the rights of "
             "/dev/nvidia*";
    default:
      return "look at nvidia-smi and at the kernel's log (dmesg)";
  }
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string advice_without_libcuda(std::string_view loader_words) {
  return fmt::format(
      "no NVIDIA driver: libcuda.so.1 cannot be loaded ({}): install the driver, or in a container "
      "pass the GPUs in (--gpus all)",
      loader_words);
}

std::string advice_for(int code, std::string_view words, const CudaVersions& versions) {
  if (code == static_cast<int>(CudaTrouble::kInsufficientDriver)) return old_driver(versions);
  return fmt::format("{} ({})", remedy(code), words);
}

}  // namespace tutti
