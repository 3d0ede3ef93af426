// A range on the timeline of Nsight Systems, from construction to destruction. Needs no library:
// NVTX is a header that looks for a profiler at run time. Nothing in builds without CUDA.
#pragma once

#if TUTTI_WITH_CUDA && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#include "base/knobs.hpp"

namespace tutti {

class NvtxRange {
 public:
  explicit NvtxRange(const char* name) : active_(enabled()) {
    if (active_) nvtxRangePushA(name);
  }
  ~NvtxRange() {
    if (active_) nvtxRangePop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  static bool enabled() {
    static const bool value = Knobs::process().flag("TUTTI_NVTX");
    return value;
  }
  bool active_;
};

}  // namespace tutti
#else

namespace tutti {

class NvtxRange {
 public:
  explicit NvtxRange(const char*) {}
  // Not trivial, so that a range nobody names again is no unused variable.
  ~NvtxRange() {}  // NOLINT(modernize-use-equals-default)
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace tutti
#endif
