// all_to_all/push_per_peer: as push, by blocks that are bound to one rank each
// (algorithms/push_per_peer.hpp).
//
// Cost: 3 hops (two flags, a store), and 2 for each further pass; (n-1)/n x bytes over each rank's
// links. Nobody touches another rank's input.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/push_per_peer.hpp"

namespace tutti {

struct AllToAllPushPerPeer {
  using Kernel = PeerKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{.id = "all_to_all/push_per_peer",
                                        .collective = Collective::kAllToAll,
                                        .family = Family::kOneShot,
                                        .needs = kNeedsPeerAccess,
                                        .max_ranks_host = kMaxRanks,
                                        .max_ranks_cuda = kMaxCudaRanks,
                                        .cost = moving_cost(1.11),
                                        .text = "as push, but each thread block serves one peer",
                                        .peers_read_input = false,
                                        .peers_write_output = true,
                                        .only_where_measured = true,
                                        .stands_in_for = "all_to_all/push",
                                        .stands_in_up_to = 32,
                                        .takes = moves,
                                        .geometry = per_peer_geometry,
                                        .host = host,
                                        .cuda = cuda};
  static constexpr KernelPromises kPromises{.loads = 8, .stores = 8, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "3, and 2 for each further pass", .wire = "(n-1)/n B"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome AllToAllPushPerPeer::run(Team& team, const KernelArgs& work) {
  return push_pieces_bound(team, work, [&](int rank) {
    return work.input + static_cast<std::size_t>(rank) * piece_of(work);
  });
}

}  // namespace tutti
