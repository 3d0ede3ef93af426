#include "algorithms/all_to_all/push_per_peer.hpp"

#include "algorithms/all_to_all/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_to_all_push_per_peer(DataType, OpKind) {
  return all_to_all_push_per_peer<HostTeam>;
}

}  // namespace tutti
