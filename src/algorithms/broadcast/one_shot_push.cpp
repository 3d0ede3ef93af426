#include "algorithms/broadcast/one_shot_push.hpp"

#include "algorithms/broadcast/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_broadcast_one_shot_push(DataType, OpKind) {
  return broadcast_one_shot_push<HostTeam>;
}

}  // namespace tutti
