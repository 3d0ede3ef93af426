// Which algorithm a call would take, and why: values, the same on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/export.hpp"
#include "tutti/types.hpp"

namespace tutti {

// Where a choice came from, in the order in which sources are asked.
enum class PlanSource : std::uint8_t {
  kCall,       // named in the call
  kOverride,   // TUTTI_TUNE
  kUserFile,   // the file named by TUTTI_TUNING_FILE
  kUserCache,  // written by `tutti tune`
  kShipped,    // measured on this kind of machine, shipped with the library
  kPublished,  // measured by others, on a GPU of which there are no measurements of tutti's own
  kModel,      // cost model: nothing measured fits
};
TUTTI_API std::string_view to_string(PlanSource source);

struct Plan {
  std::string algorithm;        // "all_reduce/two_shot"
  int blocks = 1;               // of the grid (CUDA); sequential parts (host)
  int threads = 1;              // per block (CUDA)
  std::size_t chunk_bytes = 0;  // staged rows: bytes per pass; 0: the whole staging
  PlanSource source = PlanSource::kModel;
  bool emulated = false;  // it was named, and what it needs is done by a loop over the peers
  // True in a group of one rank where nothing is computed: no kernel runs. The input is copied in
  // stream order; in place, nothing is done.
  bool alone = false;
  friend bool operator==(const Plan&, const Plan&) = default;
};
TUTTI_API std::string to_string(const Plan& plan);

}  // namespace tutti
