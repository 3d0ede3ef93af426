/// \file
/// Which algorithm a call would use, and why. Equal on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/export.hpp"
#include "tutti/types.hpp"

namespace tutti {

/// What decided a plan. Earlier sources take precedence.
enum class PlanSource : std::uint8_t {
  kCall,       ///< CallOptions::algorithm
  kOverride,   ///< TUTTI_TUNE
  kUserFile,   ///< the file that TUTTI_TUNING_FILE names
  kUserCache,  ///< the table that `tutti tune` wrote
  kShipped,    ///< measured on this kind of machine, shipped with the library
  kPublished,  ///< published by others, for a GPU that tutti was not measured on
  kModel,      ///< the cost model, if no measurement fits
};
TUTTI_API std::string_view to_string(PlanSource source);

/// What a call runs.
struct Plan {
  std::string algorithm = {};  ///< "all_reduce/two_shot"
  int blocks = 1;              ///< of the grid (CUDA); sequential parts (host)
  int threads = 1;             ///< per block (CUDA)
  /// Bytes of one chunk of a ring, of one part that a copy engine copies, or of one pass of a
  /// staged operation; 0: it is not divided, or as the staging memory allows.
  std::size_t chunk_bytes = 0;
  PlanSource source = PlanSource::kModel;
  /// The algorithm was requested explicitly, and the NVLink switch that it needs is emulated by a
  /// loop over the peers.
  bool emulated = false;
  /// The group has one rank and nothing is computed: no kernel runs. The input is copied in stream
  /// order; in place, nothing happens.
  bool alone = false;
  /// The ranks synchronize by stream memory operations, which use no SM, not by kernels.
  bool stream_barrier = false;
  friend bool operator==(const Plan&, const Plan&) = default;
};
/// One line for people.
TUTTI_API std::string to_string(const Plan& plan);

}  // namespace tutti
