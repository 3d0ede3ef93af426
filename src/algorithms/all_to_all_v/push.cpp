#include "algorithms/all_to_all_v/push.hpp"

#include "algorithms/all_to_all_v/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {
namespace {

Outcome push(HostTeam& team, const Work& work) {
  return all_to_all_v_push(team, work, *work.counts);
}

}  // namespace

HostBody host_all_to_all_v_push(DataType, OpKind) { return push; }

}  // namespace tutti
