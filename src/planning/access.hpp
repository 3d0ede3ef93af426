// How the peers of a row get at the buffers of a request. Decided here and nowhere else.
#pragma once

#include "algorithms/catalogue.hpp"
#include "planning/plan.hpp"
#include "planning/request.hpp"
#include "topology/topology.hpp"

namespace tutti {

// Whether peers touch a buffer that only the root has, which is never one that they are known to
// reach.
bool stages_any_buffer(const Algorithm& row);

BufferAccess access_to(const Algorithm& row, const Request& request, const Topology& topology);

// Whether a copy to staging, or from there, is added to what the row does with buffers that peers
// reach. What goes through staging in any case does so in passes of its own.
bool goes_through_staging(const Algorithm& row, const Request& request, const Topology& topology);

}  // namespace tutti
