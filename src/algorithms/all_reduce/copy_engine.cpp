#include "algorithms/all_reduce/copy_engine.hpp"

#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/instantiate.hpp"
#include "algorithms/team_stages.hpp"
#include "transport/host_team.hpp"

namespace tutti {
namespace {

template <class Reduction, EngineProgram kProgram>
Outcome run_by_team(HostTeam& team, const Work& work) {
  TeamStages<Reduction, HostTeam> stages(team, work);
  kProgram(stages, work, sizeof(typename Reduction::Element));
  return stages.finish();
}

template <EngineProgram kProgram>
HostBody body_of(DataType dtype, OpKind op) {
  return with_reduction(dtype, op, [](auto reduction) -> HostBody {
    return run_by_team<typename decltype(reduction)::Type, kProgram>;
  });
}

}  // namespace

HostBody host_all_reduce_one_shot_copy_engine(DataType dtype, OpKind op) {
  return body_of<all_reduce_one_shot_copy_engine>(dtype, op);
}

HostBody host_all_reduce_two_shot_copy_engine(DataType dtype, OpKind op) {
  return body_of<all_reduce_two_shot_copy_engine>(dtype, op);
}

}  // namespace tutti
