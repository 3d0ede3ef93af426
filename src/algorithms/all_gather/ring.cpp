#include "algorithms/all_gather/ring.hpp"

#include "algorithms/all_gather/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_gather_ring(DataType, OpKind) { return all_gather_ring<HostTeam>; }

}  // namespace tutti
