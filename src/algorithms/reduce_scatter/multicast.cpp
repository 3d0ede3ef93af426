#include "algorithms/reduce_scatter/multicast.hpp"

#include "algorithms/reduce_scatter/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_reduce_scatter_multicast(DataType dtype, OpKind op) {
  return with_switch_reduction(dtype, op, [](auto reduction) -> HostBody {
    return reduce_scatter_multicast<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
