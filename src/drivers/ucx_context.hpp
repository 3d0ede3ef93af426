// A context of UCX, with the settings of a wire.
#pragma once

#include <string>

#include "drivers/ucx_library.hpp"
#include "drivers/ucx_wire.hpp"
#include "tutti/status.hpp"

namespace tutti {

struct OpenedUcx {
  UcxContext context = nullptr;                    // whoever has it calls cleanup()
  std::string text;                                // "UCX 1.13.1, tcp over eth0"
  bool reaches_gpus = false;                       // as WireOptions::gpus asks
  int gpu_memory = UcxRequestParams::kHostMemory;  // what memory of GPUs is for UCX
};

// Fails as open_ucx_wire().
Result<OpenedUcx> open_ucx_context(const UcxLibrary& library, const WireOptions& options);

}  // namespace tutti
