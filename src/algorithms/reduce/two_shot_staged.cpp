#include "algorithms/reduce/two_shot_staged.hpp"

#include "algorithms/instantiate.hpp"
#include "algorithms/reduce/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_reduce_two_shot_staged(DataType dtype, OpKind op) {
  return with_reduction(dtype, op, [](auto reduction) -> HostBody {
    return reduce_two_shot_staged<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
