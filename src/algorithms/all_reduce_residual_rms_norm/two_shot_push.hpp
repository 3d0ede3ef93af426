// all_reduce_residual_rms_norm/two_shot_push: all_reduce's two_shot_push with the residual, and a
// kernel behind it that normalises.
#pragma once

#include "algorithms/all_reduce/two_shot_push.hpp"
#include "algorithms/all_reduce_residual_rms_norm/normalise.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"

namespace tutti {

struct AllReduceResidualRmsNormTwoShotPush {
  using Kernel = ExactPacketKernel;
  using Types = NormalisedSums;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce_residual_rms_norm/two_shot_push",
      .collective = Collective::kAllReduceResidualRmsNorm,
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 3.8,
               .steps_per_rank = 0.3,
               .host_steps = 10.5,
               .wire = two_shot_wire,
               .local = times<18>},
      .text = "all_reduce's two_shot_push with the residual, then a kernel that normalises",
      .peers_read_input = false,
      .starts_early = true,
      .packets = shared_packets,
      .takes = is_normalised,
      .geometry = shared_packets_geometry,
      .host = host,
      .cuda = cuda,
      .then = kNormalise};
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .narrow = 1, .loops = 2, .local = 2};
  static constexpr Traffic kTraffic{.hops = "2, and a second kernel", .wire = "2 (n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceResidualRmsNormTwoShotPush::run(Team& team, const KernelArgs& work) {
  return all_reduce_two_shot_push<Reduction, Team, PlusResidual>(team, work);
}

}  // namespace tutti
