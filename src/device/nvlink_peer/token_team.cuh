// The verbs of packets for bodies that work on whole tokens. What such a body calls a block is a
// cluster of them here: each token has all of its threads, so that few tokens have many.
#pragma once

#include "device/nvlink_peer/cluster_sum.cuh"
#include "device/nvlink_peer/packet_team.cuh"

namespace tutti {

template <int kRanks = 0, class Protocol = ProductionProtocol>
class TokenTeam : public PacketTeam<kRanks, Protocol> {
  using Base = PacketTeam<kRanks, Protocol>;

 public:
  using Base::Base;

  // The blocks of a cluster meet here, and go on at once: what takes its time lies in between.
  __device__ void launch_wait() const {
    sum_.prepare();
    Base::launch_wait();
  }
  __device__ void launch_trigger() const {
    Base::launch_trigger();
    sum_.open();
  }

  template <class F>
  __device__ Outcome sum_of_token(Slice tiles, F&& f, float& sum) {
    this->forget_held();
    return sum_.over(tiles, f, sum);
  }

 private:
  ClusterSum sum_;
};

}  // namespace tutti
