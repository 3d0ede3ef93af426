// reduce_scatter/push_tma: as push, pass for pass, but bulk copies carry the data: few threads issue
// them, so that few blocks keep the links busy, and a matmul beside has the other multiprocessors.
//
// Why that is right, push.hpp says, and all_reduce/two_shot_tma what bulk copies ask for besides:
// they end before the barrier behind them. Block b has the same run of every slot. In place: a
// block overwrites its part of the own piece once it has added that up; what it pushes meanwhile
// belongs to other pieces.
//
// Cost: as push.
#pragma once

#include "algorithms/all_reduce/two_shot_tma.hpp"
#include "algorithms/reduce_scatter/push.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_scatter_push_tma(Team& team, const Work& work) {
  const BulkBlock<Reduction, Team> block(team, work);
  return push_pieces<Reduction>(team, work, block,
                                [&](const PiecePass& pass, const auto& scalars) {
                                  block.reduce_own(pass, scalars);
                                });
}

}  // namespace tutti
