#include "algorithms/reduce_scatter/pull_tma.hpp"

#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_reduce_scatter_pull_tma(DataType dtype, OpKind op) {
  return with_reduction(dtype, op, [](auto reduction) -> HostBody {
    return reduce_scatter_pull_tma<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
