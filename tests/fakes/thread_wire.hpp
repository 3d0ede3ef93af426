// Wires between threads of this process: what a rank posts is in the other one's inbox at once. For
// tests of what is above wires; for delays, loss and reordering see fake_wire.hpp.
//
// They may claim to reach GPUs, whose memory is the process's. Such a payload stays where it is
// until the receiver has placed it, which its sender hears of.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "drivers/network.hpp"
#include "drivers/wire.hpp"

namespace tutti::test {

// `tutti::Wire`: tests have another Wire, of pipes (support/children.hpp).
class ThreadNetwork {
 public:
  ThreadNetwork();
  ~ThreadNetwork();

  // Its address is told to nobody: who connects to it has got the address from the wire.
  std::unique_ptr<tutti::Wire> open(bool reaches_gpus = false);
  // Payloads that were placed, and those for which their receiver had no place.
  std::size_t placed() const;
  std::size_t misplaced() const;
  // Those that are still with their senders; hold(): from now on all of them.
  std::size_t offered() const;
  void hold();

  // As if somebody who knows the address sent this.
  void inject(ByteView address, ByteView header, ByteView payload);

  struct State;

 private:
  const std::shared_ptr<State> state_;
};

// For groups whose ranks are threads.
class ThreadNetworkDriver : public NetworkDriver {
 public:
  Status usable(bool) override { return Status::ok(); }
  Result<std::unique_ptr<tutti::Wire>> open(bool, bool gpus) override { return network.open(gpus); }

  ThreadNetwork network;
};

}  // namespace tutti::test
