// all_gather_v/push: every rank stores its input into everybody's output.
#pragma once

#include "algorithms/all_to_all_v/push.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct AllGatherVPush {
  static constexpr Algorithm kAlgorithm{
      .id = "all_gather_v/push",
      .collective = Collective::kAllGatherV,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = moving_cost(),
      .text = "every rank stores its input into every rank's output",
      .peers_read_input = false,
      .peers_write_output = true,
      .publishes_counts = true,
      .takes = moves,
      .geometry = push_pieces_geometry,
      .host = AllToAllVPush::host,
      .cuda = AllToAllVPush::cuda};
  static constexpr Traffic kTraffic{.hops = "3; counts on the device: 5", .wire = "(n-1)/n B"};
};

}  // namespace tutti
