// GPUs that `tutti explain --gpu` can answer for without having one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "planning/table.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

// As the driver describes it.
struct KnownGpu {
  std::string_view name;  // "NVIDIA H200"
  int compute = 0;        // 90 for sm_90
  int multiprocessors = 0;
  int nvlinks = 0;
};
std::span<const KnownGpu> known_gpus();

// The one whose name contains `text`, in any case; of several the one that is called so.
// kInvalidArgument lists the known ones, or those that fit.
Result<KnownGpu> find_gpu(std::string_view text);

// For people: each with its figures, and the tables that hold for it.
std::string list_gpus(const TuningTable& table);

}  // namespace tutti::cli
