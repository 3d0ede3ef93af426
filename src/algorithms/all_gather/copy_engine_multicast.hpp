// all_gather/copy_engine_multicast: each rank copies its input once, by copy engine, to where the
// switch stores into everybody's output.
//
//   meet   every output may be written; staging is free
//   copy   my input to all ranks at once, at my place
//   meet   every piece is there
//   copy   out of staging (only for outputs that peers cannot address)
//
// Cost: 2 hops and a copy; 1/n of the bytes go out over each rank's links, all of them come in, by
// copy engines: kernels only meet. In place is safe: at its place a rank stores what is there.
//
// Alone of all programs it copies into other ranks' memory, and a copy that is enqueued is not
// called off: where this rank comes when the others have given up, it still stores into their
// outputs. Hence nothing takes it but a call or a table that names it.
#pragma once

#include "algorithms/all_gather/rows.hpp"
#include "algorithms/host_program.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_all_gather_copy_engine_multicast(DataType, OpKind) {
  return run_by_team<Team, Reduction<std::uint8_t, Sum>, all_gather_copy_engine_multicast>;
}

}  // namespace tutti
