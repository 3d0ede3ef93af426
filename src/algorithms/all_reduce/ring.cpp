#include "algorithms/all_reduce/ring.hpp"

#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/instantiate.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_reduce_ring(DataType dtype, OpKind op) {
  return with_column_reduction(dtype, op, [](auto reduction) -> HostBody {
    return all_reduce_ring<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
