// The streams of a group of calls on GPUs: its operations begin behind what all of these have been
// given before the group, run one after another where they share a GPU, and are over before
// anything that one of these is given after the group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

class CommunicatorImpl;

class GroupStreams {
 public:
  struct Use {
    CommunicatorImpl* communicator;
    Stream stream;
  };

  // `uses`: all of the group. Where each GPU has one stream there is nothing to order.
  explicit GroupStreams(std::span<const Use> uses);

  // The uses of one communicator. kInvalidArgument where they are not all of one capture, or of
  // none: then it must not be used.
  Status add(std::span<const Use> uses);

  // Around operations that are handed over together, as one batch or as a single one.
  Status hold(std::span<const Use> uses);
  void advance(std::span<const Use> uses);
  // All streams wait for the last ones.
  Status release();

 private:
  // Operations in a row. Ranks of one group of ranks are in different ones: they run beside each
  // other. Kernels of different communicators do not: each may wait for a kernel of another GPU
  // that has no room there, next to one that waits for the other kernel here.
  struct Lane {
    int device;
    std::uint64_t capture;  // 0: none
    std::vector<CommunicatorImpl*> communicators = {};
    std::vector<Stream> streams = {};
    std::vector<Stream> front = {};  // what the next operation is behind
  };

  Lane& lane_for(CommunicatorImpl& communicator, std::uint64_t capture);
  Lane* lane_of(const CommunicatorImpl* communicator);

  bool ordered_ = false;
  std::vector<Lane> lanes_;
};

}  // namespace tutti
