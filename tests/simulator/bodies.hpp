// The bodies of the catalogue, instantiated for simulated ranks.
#pragma once

#include "algorithms/bodies.hpp"
#include "simulator/team.hpp"

namespace tutti {

using SimulatedBody = BodyOf<SimulatedTeam>;

// The body that `host`, an entry in the catalogue, finds for ranks on the host, for simulated
// ranks. Null for entries that are not in the catalogue, and for what the simulation has no
// instantiations of: anything but sums, averages and scaled sums of fp32, where a body reduces.
SimulatedBody simulated_body(HostBody (*host)(DataType, OpKind), DataType dtype, OpKind op);

}  // namespace tutti
