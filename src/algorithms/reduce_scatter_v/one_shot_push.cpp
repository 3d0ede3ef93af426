#include "algorithms/reduce_scatter_v/one_shot_push.hpp"

#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter_v/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {
namespace {

template <class Reduction>
Outcome one_shot_push(HostTeam& team, const Work& work) {
  return reduce_scatter_v_one_shot_push<Reduction>(team, work, *work.counts);
}

}  // namespace

HostBody host_reduce_scatter_v_one_shot_push(DataType dtype, OpKind op) {
  return with_column_reduction(dtype, op, [](auto reduction) -> HostBody {
    return one_shot_push<typename decltype(reduction)::Type>;
  });
}

}  // namespace tutti
