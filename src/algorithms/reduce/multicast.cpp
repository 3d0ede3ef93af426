#include "algorithms/reduce/multicast.hpp"

#include "algorithms/reduce/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_reduce_multicast(DataType dtype, OpKind op) {
  return with_switch_reduction(dtype, op, [](auto reduction) -> HostBody {
    return reduce_multicast<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
