// The kernels of bodies that a switch takes part in. Apart from the others, since builds differ in
// what they are made of (TUTTI_MULTICAST).
#pragma once

#include "algorithms/kernels.cuh"
#include "device/multicast/multicast_team.cuh"

namespace tutti {

struct MulticastKernel : TeamKernel {
  template <int>
  using Team = MulticastTeam;
};

}  // namespace tutti
