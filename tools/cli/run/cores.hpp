// Which cores a rank runs on.
#pragma once

#include <optional>
#include <sched.h>

namespace tutti::cli {

// Those of `usable` that rank `rank` of `ranks` has for itself: neighbours, and with each rank as
// many as with the others, or one more. Empty where there are more ranks than cores.
std::optional<cpu_set_t> cores_of_rank(const cpu_set_t& usable, int rank, int ranks);

}  // namespace tutti::cli
