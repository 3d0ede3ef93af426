#include "algorithms/all_gather/one_shot_push.hpp"

#include "algorithms/all_gather/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_gather_one_shot_push(DataType, OpKind) {
  return all_gather_one_shot_push<HostTeam>;
}

}  // namespace tutti
