// all_reduce_residual_rms_norm/two_shot: all_reduce's two_shot with the residual, and a kernel
// behind it that normalises.
#pragma once

#include "algorithms/all_reduce/two_shot.hpp"
#include "algorithms/all_reduce_residual_rms_norm/normalise.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"

namespace tutti {

struct AllReduceResidualRmsNormTwoShot {
  using Kernel = PeerKernel;
  using Types = NormalisedSums;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static double local(int ranks) { return 3.0 / ranks + 2; }

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce_residual_rms_norm/two_shot",
      .collective = Collective::kAllReduceResidualRmsNorm,
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 6.4, .wire = two_shot_wire, .local = local},
      .text = "all_reduce's two_shot with the residual, then a kernel that normalises",
      .peers_write_output = true,
      .takes = is_normalised,
      .geometry = two_shot_geometry,
      .host = host,
      .cuda = cuda,
      .then = kNormalise};
  static constexpr KernelPromises kPromises{.loads = kMaxCudaRanks + 1,
                                            .stores = kMaxCudaRanks,
                                            .barriers = 2,
                                            .stack_bytes = 64,
                                            .local = 1};
  static constexpr Traffic kTraffic{.hops = "5, and a second kernel", .wire = "2 (n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceResidualRmsNormTwoShot::run(Team& team, const KernelArgs& work) {
  return all_reduce_two_shot<Reduction, Team, PlusResidual>(team, work);
}

}  // namespace tutti
