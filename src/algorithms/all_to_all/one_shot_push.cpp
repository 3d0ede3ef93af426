#include "algorithms/all_to_all/one_shot_push.hpp"

#include "algorithms/all_to_all/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_to_all_one_shot_push(DataType, OpKind) {
  return all_to_all_one_shot_push<HostTeam>;
}

}  // namespace tutti
