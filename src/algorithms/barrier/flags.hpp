// barrier/flags: the ranks meet.
//
//   barrier  what came before on any rank is before what follows on all
//
// Cost: 1 hop (a flag).
#pragma once

#include "algorithms/bodies.hpp"
#include "device/team.hpp"

namespace tutti {

template <class Team>
TUTTI_BODY Outcome barrier_flags(Team& team, const KernelArgs&) {
  if (team.barrier(Publish::kEarlierKernels) != Outcome::kDone) return Outcome::kFailed;
  return team.finish();
}

template <class Team>
BodyOf<Team> host_barrier_flags(DataType, OpKind) {
  return barrier_flags<Team>;
}

}  // namespace tutti
