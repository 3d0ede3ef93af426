// The rows of barrier.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

std::span<const Algorithm> barrier_rows();

}  // namespace tutti
