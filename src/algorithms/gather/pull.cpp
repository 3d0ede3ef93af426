#include "algorithms/gather/pull.hpp"

#include "algorithms/gather/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_gather_pull(DataType, OpKind) { return gather_pull<HostTeam>; }

}  // namespace tutti
