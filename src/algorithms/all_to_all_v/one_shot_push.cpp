#include "algorithms/all_to_all_v/one_shot_push.hpp"

#include "algorithms/all_to_all_v/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {
namespace {

Outcome one_shot_push(HostTeam& team, const Work& work) {
  return all_to_all_v_one_shot_push(team, work, *work.counts);
}

}  // namespace

HostBody host_all_to_all_v_one_shot_push(DataType, OpKind) { return one_shot_push; }

}  // namespace tutti
