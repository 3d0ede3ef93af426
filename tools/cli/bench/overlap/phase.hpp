// What `tutti bench overlap` takes the time of.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tutti/status.hpp"

namespace tutti::cli {

enum class Phase : std::uint8_t {
  kMatmul,      // the matmul alone
  kAllGather,   // the all_gather alone
  kSequential,  // both, one after the other
  kOverlap,     // both, begun together
};
inline constexpr std::array kPhases = {Phase::kMatmul, Phase::kAllGather, Phase::kSequential,
                                       Phase::kOverlap};

inline bool multiplies(Phase phase) { return phase != Phase::kAllGather; }
inline bool gathers(Phase phase) { return phase != Phase::kMatmul; }

std::string_view to_string(Phase phase);  // "matmul", "all_gather", "sequential", "overlap"
// kInvalidArgument lists the known ones.
Result<Phase> parse_phase(std::string_view option, std::string_view text);

}  // namespace tutti::cli
