#include "algorithms/reduce/one_shot_push.hpp"

#include "algorithms/instantiate.hpp"
#include "algorithms/reduce/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_reduce_one_shot_push(DataType dtype, OpKind op) {
  return with_column_reduction(dtype, op, [](auto reduction) -> HostBody {
    return reduce_one_shot_push<typename decltype(reduction)::Type, HostTeam>;
  });
}

}  // namespace tutti
