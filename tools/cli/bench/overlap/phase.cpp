#include "bench/overlap/phase.hpp"

#include "base/names.hpp"

namespace tutti::cli {
namespace {

constexpr std::array<Name<Phase>, kPhases.size()> kNames = {{{Phase::kMatmul, "matmul"},
                                                             {Phase::kAllGather, "all_gather"},
                                                             {Phase::kSequential, "sequential"},
                                                             {Phase::kOverlap, "overlap"}}};

}  // namespace

std::string_view to_string(Phase phase) { return name_of<Phase>(kNames, phase); }

Result<Phase> parse_phase(std::string_view option, std::string_view text) {
  return parse_name<Phase>(kNames, {}, option, text);
}

}  // namespace tutti::cli
