#include <cuda_runtime.h>

#include <cstdint>

#include "conformance/gpu/occupy.hpp"

namespace tutti::test {
namespace {

constexpr int kThreads = 1024;
constexpr int kMatmulBytes = 150 * 1024;  // of shared memory: no second block has room beside it

// Each block ends by itself, at the latest so long after it began.
__global__ void __launch_bounds__(kThreads) occupy(std::uint64_t ns) {
  std::uint64_t start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < ns);
}

}  // namespace

bool occupy_all_multiprocessors(Stream stream, std::chrono::milliseconds time) {
  int device = 0, multiprocessors = 0, resident = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return false;
  if (cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
      cudaSuccess) {
    return false;
  }
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, occupy, kThreads, 0) !=
      cudaSuccess) {
    return false;
  }
  const auto ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  occupy<<<multiprocessors * resident, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(ns);
  return cudaGetLastError() == cudaSuccess;
}

bool occupy_half_of_all_multiprocessors(Stream stream, std::chrono::milliseconds time) {
  int device = 0, multiprocessors = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return false;
  if (cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
          cudaSuccess ||
      cudaFuncSetAttribute(occupy, cudaFuncAttributeMaxDynamicSharedMemorySize, kMatmulBytes) !=
          cudaSuccess) {
    return false;
  }
  const auto ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  occupy<<<multiprocessors, kThreads, kMatmulBytes, static_cast<cudaStream_t>(stream)>>>(ns);
  return cudaGetLastError() == cudaSuccess;
}

bool occupy_stream(Stream stream, std::chrono::milliseconds time) {
  const auto ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  occupy<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(ns);
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace tutti::test
