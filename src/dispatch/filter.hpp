// Whether a row can run what is asked for.
#pragma once

#include <string>

#include "algorithms/catalogue.hpp"
#include "dispatch/request.hpp"
#include "topology/topology.hpp"

namespace tutti {

// Empty if it can; else the reason, worded to follow the row's name: "needs NCCL, which ...".
std::string why_not(const Algorithm& row, const Request& request, const Topology& topology);

}  // namespace tutti
