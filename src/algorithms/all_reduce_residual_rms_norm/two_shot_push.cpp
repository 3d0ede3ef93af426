#include "algorithms/all_reduce_residual_rms_norm/two_shot_push.hpp"

#include "algorithms/all_reduce_residual_rms_norm/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_reduce_residual_rms_norm_two_shot_push(DataType dtype, OpKind) {
  return with_normalised(dtype, [](auto reduction) -> HostBody {
    using Reduced = typename decltype(reduction)::Type;
    return all_reduce_residual_rms_norm_two_shot_push<Reduced, HostTeam>;
  });
}

}  // namespace tutti
