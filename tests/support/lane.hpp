// One stream and one set of buffers of a rank: where scenarios run their operations.
#pragma once

#include <functional>

#include "support/group.hpp"
#include "support/workbench.hpp"

namespace tutti::test {

class Lane {
 public:
  // Collective, but for plain buffers. `group` is the rank's, or one split from it.
  Lane(Rank& rank, BufferKind kind, std::size_t bytes) : Lane(rank, rank.group, kind, bytes) {}
  Lane(Rank& rank, Communicator& group, BufferKind kind, std::size_t bytes)
      : group_(group), stream_(rank.device), bench_(group, rank.device, kind, bytes) {}

  Stream stream() const { return stream_.get(); }
  AllReduce prepare(const Trial& trial) { return bench_.prepare(trial, stream_.get()); }

  // Starts one operation: on CUDA it may be under way when this returns.
  Status start(const AllReduce& call) { return all_reduce(group_, call); }
  // What became of it, once this rank is done with it.
  Status finish() {
    stream_.wait();
    return group_.status();
  }
  Status run(const AllReduce& call) {
    const Status started = start(call);
    return started.is_ok() ? finish() : started;
  }

  // Throws unless what the last operation left is right.
  void check(const Trial& trial);
  // prepare, run and check.
  void expect_right(const Trial& trial);

 private:
  Communicator& group_;
  OwnedStream stream_;
  Workbench bench_;
};

// Runs both at the same time, `beside` on a thread of its own. Throws what the first to fail threw.
void run_together(const std::function<void()>& here, const std::function<void()>& beside);

}  // namespace tutti::test
