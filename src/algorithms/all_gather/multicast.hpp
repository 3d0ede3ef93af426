// all_gather/multicast: every rank stores its input once, and the switch into everybody's output.
//
//   phase 1  barrier: every output may be written; staging is free
//   phase 2  load each tile of my input, store it to all ranks at once, at my place
//   phase 3  barrier: every piece is written
//   phase 4  stage out (only for outputs that peers cannot address)
//
// Cost: 3 hops, as push; 1/n of the bytes go out over each rank's links, all of them come in. In
// place is safe as there.
#pragma once

#include "algorithms/all_gather/push.hpp"
#include "algorithms/bodies.hpp"
#include "algorithms/multicast_buffers.hpp"

namespace tutti {

template <class Team>
TUTTI_BODY Outcome all_gather_multicast(Team& team, const KernelArgs& work) {
  const auto store_to_all = [&](const auto& outputs, auto access, TileAt tile, const auto& value) {
    store_by_switch<std::uint8_t>(team, outputs, access, tile, value);
  };
  return give_my_piece(team, work, store_to_all);
}

template <class Team>
BodyOf<Team> host_all_gather_multicast(DataType, OpKind) {
  return all_gather_multicast<Team>;
}

}  // namespace tutti
