#include "algorithms/broadcast/two_shot.hpp"

#include "algorithms/broadcast/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_broadcast_two_shot(DataType, OpKind) { return broadcast_two_shot<HostTeam>; }

}  // namespace tutti
