// Why CUDA cannot be used here and what to do about it, in words. Pure, so that each case is tested
// without a GPU.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// The codes of cudaError_t that have an advice of their own; cuda_real.cpp checks them against the
// toolkit's header.
enum class CudaTrouble : int {
  kStubLibrary = 34,
  kInsufficientDriver = 35,
  kDevicesUnavailable = 46,
  kNoDevice = 100,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kCompatNotSupported = 804,
  kUnknown = 999,
};

struct CudaVersions {
  int driver = 0;   // as cudaDriverGetVersion gives it: 13000 is 13.0; 0: none
  int runtime = 0;  // of the runtime this library was built with
};

std::string cuda_version_text(int version);  // 13000 -> "13.0"

// `loader_words` is what dlopen said of libcuda.so.1.
std::string advice_without_libcuda(std::string_view loader_words);

// `words` is CUDA's own name and text of the error.
std::string advice_for(int code, std::string_view words, const CudaVersions& versions);

}  // namespace tutti
