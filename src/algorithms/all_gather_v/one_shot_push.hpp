// all_gather_v/one_shot_push: every rank sends its input to everybody, in words that are their
// own flags.
#pragma once

#include "algorithms/all_to_all_v/one_shot_push.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/uneven_rows.hpp"

namespace tutti {

struct AllGatherVOneShotPush {
  static constexpr Algorithm kAlgorithm{
      .id = "all_gather_v/one_shot_push",
      .collective = Collective::kAllGatherV,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 2.4,
               .host_steps = 5.5,
               .wire = pieces_wire,
               .local = packets_of_pieces_local},
      .text = "every rank sends its input to all ranks, in words that are their own flags",
      .peers_read_input = false,
      .starts_early = true,
      .counts_on_host = true,
      .packets = packets_of_counted_pieces,
      .takes = moves,
      .geometry = shared_packets_geometry,
      .host = AllToAllVOneShotPush::host,
      .cuda = AllToAllVOneShotPush::cuda};
  static constexpr Traffic kTraffic{.hops = "1", .wire = "2 (n-1)/n B"};
};

}  // namespace tutti
