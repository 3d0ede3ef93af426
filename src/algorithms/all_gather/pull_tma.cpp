#include "algorithms/all_gather/pull_tma.hpp"

#include "algorithms/all_gather/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_gather_pull_tma(DataType, OpKind) { return all_gather_pull_tma<HostTeam>; }

}  // namespace tutti
