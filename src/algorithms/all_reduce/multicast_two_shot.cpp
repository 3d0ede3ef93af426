#include "algorithms/all_reduce/multicast_two_shot.hpp"

#include "algorithms/all_reduce/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_reduce_multicast_two_shot(DataType dtype, OpKind op) {
  return with_switch_reduction(dtype, op, [](auto reduction) -> HostBody {
    return all_reduce_multicast_two_shot<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
