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
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/multicast_buffers.hpp"

namespace tutti {

struct AllGatherMulticast {
  using Kernel = MulticastKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/multicast",
      .collective = Collective::kAllGather,
      .family = Family::kMulticast,
      .needs = kNeedsPeerAccess | kNeedsMulticast,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      // Not measured by anybody here: as push, whose bytes all come in as well.
      .cost = moving_cost(),
      .text = "every rank stores its input once; the switch writes it into every output",
      .peers_read_input = false,
      .peers_write_output = true,
      .only_where_measured = true,
      .takes = moves,
      .geometry = push_pieces_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{.loads = 1, .stores = kMaxCudaRanks, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "3", .wire = "B/n out, (n-1)/n B in"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome AllGatherMulticast::run(Team& team, const KernelArgs& work) {
  const auto store_to_all = [&](const auto& outputs, auto access, TileAt tile, const auto& value) {
    store_by_switch<std::uint8_t>(team, outputs, access, tile, value);
  };
  return give_my_piece(team, work, store_to_all);
}

}  // namespace tutti
