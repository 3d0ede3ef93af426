#include "algorithms/reduce_scatter/push_per_peer.hpp"

#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_reduce_scatter_push_per_peer(DataType dtype, OpKind op) {
  return with_reduction(dtype, op, [](auto reduction) -> HostBody {
    return reduce_scatter_push_per_peer<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
