// send_recv/nccl: NVIDIA's library, where it is installed.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct SendRecvNccl {
  static constexpr Algorithm kAlgorithm{
      .id = "send_recv/nccl",
      .collective = Collective::kSendRecv,
      .family = Family::kNccl,
      .needs = kNeedsNccl,
      .max_ranks_cuda = 1 << 20,
      .cost = {.steps = 7, .wire = times<1>, .between = nccl_rooted<times<1>>},
      .text = "NCCL, if it is installed",
      .peers_read_input = false,
      .takes = moves,
      .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = "the message"};
};

}  // namespace tutti
