#include "algorithms/reduce_scatter/ring.hpp"

#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_reduce_scatter_ring(DataType dtype, OpKind op) {
  return with_column_reduction(dtype, op, [](auto reduction) -> HostBody {
    return reduce_scatter_ring<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
