#include "algorithms/all_gather/push_per_peer.hpp"

#include "algorithms/all_gather/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_gather_push_per_peer(DataType, OpKind) {
  return all_gather_push_per_peer<HostTeam>;
}

}  // namespace tutti
