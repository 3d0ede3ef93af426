// The rows of all_gather_v: an all_to_all_v of which every rank gets the same.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

std::span<const Algorithm> all_gather_v_rows();

}  // namespace tutti
