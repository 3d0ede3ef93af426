#include "algorithms/all_to_all/push.hpp"

#include "algorithms/all_to_all/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_to_all_push(DataType, OpKind) { return all_to_all_push<HostTeam>; }

}  // namespace tutti
