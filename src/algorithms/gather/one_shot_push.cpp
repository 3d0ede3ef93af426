#include "algorithms/gather/one_shot_push.hpp"

#include "algorithms/gather/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_gather_one_shot_push(DataType, OpKind) { return gather_one_shot_push<HostTeam>; }

}  // namespace tutti
