// all_reduce_residual_rms_norm/one_shot_push_split: all_reduce's one_shot_push with the residual,
// and a kernel behind it that normalises.
#pragma once

#include "algorithms/all_reduce/one_shot_push.hpp"
#include "algorithms/all_reduce_residual_rms_norm/normalise.hpp"
#include "algorithms/all_reduce_residual_rms_norm/one_shot_push.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"

namespace tutti {

struct AllReduceResidualRmsNormOneShotPushSplit {
  using Kernel = ExactPacketKernel;
  using Types = NormalisedSums;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce_residual_rms_norm/one_shot_push_split",
      .collective = Collective::kAllReduceResidualRmsNorm,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      // Of rows that are split: all_reduce's, and what the second kernel took on 2 H200s.
      .cost = {.steps = 3.4,
               .host_steps = 7,
               .wire = one_shot_wire,
               .local = AllReduceResidualRmsNormOneShotPush::local},
      .text = "all_reduce's one_shot_push with the residual, then a kernel that normalises",
      .peers_read_input = false,
      .starts_early = true,
      .packets = whole_packets,
      .takes = is_normalised,
      .geometry = whole_packets_geometry,
      .host = host,
      .cuda = cuda,
      .then = kNormalise};
  // all_reduce's, with a residual: of two_shot it comes beside the inputs of all ranks, and finds
  // one register too few.
  static constexpr KernelPromises kPromises = kPollsTogether;
  static constexpr Traffic kTraffic{.hops = "1, and a second kernel", .wire = "(n-1) B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceResidualRmsNormOneShotPushSplit::run(Team& team,
                                                                 const KernelArgs& work) {
  return all_reduce_one_shot_push<Reduction, Team, PlusResidual>(team, work);
}

}  // namespace tutti
