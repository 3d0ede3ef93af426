#include "algorithms/scatter/one_shot_push.hpp"

#include "algorithms/scatter/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_scatter_one_shot_push(DataType, OpKind) { return scatter_one_shot_push<HostTeam>; }

}  // namespace tutti
