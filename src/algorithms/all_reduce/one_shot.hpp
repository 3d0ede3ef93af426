// all_reduce/one_shot: every rank reads everybody's input and reduces all of it.
//
//   phase 1  stage in (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile from all ranks, reduce, store to own output
//   phase 4  barrier: nobody reads my input any more
//
// Cost: 4 hops (two flags, and a load's way there and back), (n-1) x bytes over each rank's links.
#pragma once

#include "algorithms/instantiate.hpp"
#include "algorithms/reduction.hpp"
#include "device/team.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome all_reduce_one_shot(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const std::size_t chunk = chunk_elements(work, sizeof(T));
  const Publish entry = first_publish(work);
  if constexpr (Reduction::Op::kScaled) team.publish_scalar(work.scalar);

  for (std::size_t done = 0; done < work.count || done == 0; done += chunk) {
    const Range part{done, work.count - done < chunk ? work.count - done : chunk};
    const std::size_t origin = work.stage_input ? done : 0;  // staging starts at each chunk anew

    if (work.stage_input) team.template copy_in<T>(part, origin);

    team.arrive(entry);
    const auto buffers = team.buffers();
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);
    team.template for_each_tile<T>(part, [&](auto access, TileAt tile) {
      const TileAt from{tile.first - origin, tile.count};
      const auto value = reduce_tile<Reduction>(team, buffers.inputs, access, from, scalars);
      team.template store<T>(work.output, access, tile, value);
    });

    if (team.barrier(Publish::kLoads) != Outcome::kDone) return Outcome::kFailed;
    if (chunk == 0) break;
  }
  return team.finish();
}

template <class Team>
BodyOf<Team> host_all_reduce_one_shot(DataType dtype, OpKind op) {
  return with_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return all_reduce_one_shot<typename decltype(reduction)::Type, Team>;
  });
}

}  // namespace tutti
