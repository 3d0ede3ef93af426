#include "algorithms/all_reduce/two_shot_tma.hpp"

#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/instantiate.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_reduce_two_shot_tma(DataType dtype, OpKind op) {
  return with_reduction(dtype, op, [](auto reduction) -> HostBody {
    return all_reduce_two_shot_tma<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
