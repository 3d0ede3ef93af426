#include "algorithms/all_reduce_residual_rms_norm/split.hpp"

#include "algorithms/all_reduce/one_shot_push.hpp"
#include "algorithms/all_reduce/two_shot.hpp"
#include "algorithms/all_reduce/two_shot_push.hpp"
#include "algorithms/all_reduce_residual_rms_norm/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {

HostBody host_all_reduce_residual_rms_norm_one_shot_push_split(DataType dtype, OpKind) {
  return with_normalised(dtype, [](auto reduction) -> HostBody {
    return all_reduce_one_shot_push<typename decltype(reduction)::Type, HostTeam, PlusResidual>;
  });
}

HostBody host_all_reduce_residual_rms_norm_two_shot(DataType dtype, OpKind) {
  return with_normalised(dtype, [](auto reduction) -> HostBody {
    return all_reduce_two_shot<typename decltype(reduction)::Type, HostTeam, PlusResidual>;
  });
}

HostBody host_all_reduce_residual_rms_norm_two_shot_push(DataType dtype, OpKind) {
  return with_normalised(dtype, [](auto reduction) -> HostBody {
    return all_reduce_two_shot_push<typename decltype(reduction)::Type, HostTeam, PlusResidual>;
  });
}

HostBody host_normalise_tokens(DataType dtype, OpKind) {
  return with_normalised(dtype, [](auto reduction) -> HostBody {
    using T = typename decltype(reduction)::Type::Element;
    return [](HostTeam& team, const Work& work) {
      return team.with_token_access<T>(
          work, [&](auto access) { return normalise_tokens<T, AnyOutput>(team, work, access); });
    };
  });
}

}  // namespace tutti
