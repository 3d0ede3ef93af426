#include "algorithms/all_gather/multicast.hpp"

#include "algorithms/all_gather/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_gather_multicast(DataType, OpKind) { return all_gather_multicast<HostTeam>; }

}  // namespace tutti
