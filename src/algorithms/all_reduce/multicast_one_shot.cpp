#include "algorithms/all_reduce/multicast_one_shot.hpp"

#include "algorithms/all_reduce/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_reduce_multicast_one_shot(DataType dtype, OpKind op) {
  return with_switch_reduction(dtype, op, [](auto reduction) -> HostBody {
    return all_reduce_multicast_one_shot<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
