#include "algorithms/scatter/push.hpp"

#include "algorithms/scatter/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_scatter_push(DataType, OpKind) { return scatter_push<HostTeam>; }

}  // namespace tutti
