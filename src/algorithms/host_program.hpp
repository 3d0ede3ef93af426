// Programs of copy engines as bodies of the host.
#pragma once

#include "algorithms/bodies.hpp"
#include "algorithms/instantiate.hpp"
#include "algorithms/team_stages.hpp"

namespace tutti {

template <class Team, class Reduction, EngineProgram kProgram>
Outcome run_by_team(Team& team, const KernelArgs& work) {
  TeamStages<Reduction, Team> stages(team, work);
  kProgram(stages, work, sizeof(typename Reduction::Element));
  return stages.finish();
}

template <class Team, EngineProgram kProgram>
BodyOf<Team> host_program(DataType dtype, OpKind op) {
  return with_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return run_by_team<Team, typename decltype(reduction)::Type, kProgram>;
  });
}

}  // namespace tutti
