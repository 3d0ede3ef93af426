// What finds the instantiations of bodies for teams of the host: for generated sources.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/team_stages.hpp"
#include "device/counts.hpp"
#include "device/messages.hpp"

namespace tutti {

// A program of copy engines as a body.
template <class Body, class Reduction, class Team>
Outcome run_program(Team& team, const KernelArgs& work) {
  TeamStages<Reduction, Team> stages(team, work);
  Body::program(stages, work, sizeof(typename Reduction::Element));
  return stages.finish();
}

template <class Body, class Reduction, class Team>
Outcome run_beside(Team& team, const KernelArgs& work) {
  if constexpr (std::is_same_v<typename Body::Beside, Messages>) {
    return Body::template run<Reduction>(team, work, *work.messages);
  } else {
    return Body::template run<Reduction>(team, work, *work.counts);
  }
}

template <class Body, class Team>
BodyOf<Team> host_body(DataType dtype, OpKind op) {
  return Body::Types::template select<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    using Reduced = typename decltype(reduction)::Type;
    if constexpr (requires { &Body::program; }) {
      return run_program<Body, Reduced, Team>;
    } else if constexpr (requires { typename Body::Beside; }) {
      return run_beside<Body, Reduced, Team>;
    } else {
      return Body::template run<Reduced, Team>;
    }
  });
}

}  // namespace tutti
