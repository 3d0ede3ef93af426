// Programs of copy engines as bodies of the host.
#pragma once

#include "algorithms/bodies.hpp"
#include "algorithms/instantiate.hpp"
#include "algorithms/team_stages.hpp"
#include "transport/host_team.hpp"

namespace tutti {

template <class Reduction, EngineProgram kProgram>
Outcome run_by_team(HostTeam& team, const Work& work) {
  TeamStages<Reduction, HostTeam> stages(team, work);
  kProgram(stages, work, sizeof(typename Reduction::Element));
  return stages.finish();
}

template <EngineProgram kProgram>
HostBody host_program(DataType dtype, OpKind op) {
  return with_reduction(dtype, op, [](auto reduction) -> HostBody {
    return run_by_team<typename decltype(reduction)::Type, kProgram>;
  });
}

}  // namespace tutti
