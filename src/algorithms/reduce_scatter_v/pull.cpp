#include "algorithms/reduce_scatter_v/pull.hpp"

#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter_v/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {
namespace {

template <class Reduction>
Outcome pull(HostTeam& team, const Work& work) {
  return reduce_scatter_v_pull<Reduction>(team, work, *work.counts);
}

}  // namespace

HostBody host_reduce_scatter_v_pull(DataType dtype, OpKind op) {
  return with_reduction(dtype, op, [](auto reduction) -> HostBody {
    return pull<typename decltype(reduction)::Type>;
  });
}

}  // namespace tutti
