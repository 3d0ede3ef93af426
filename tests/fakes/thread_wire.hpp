// Wires between threads of this process: what a rank posts is in the other one's inbox at once. For
// tests of what is above wires; for delays, loss and reordering see fake_wire.hpp.
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
  std::unique_ptr<tutti::Wire> open();

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
  Result<std::unique_ptr<tutti::Wire>> open(bool) override { return network_.open(); }

 private:
  ThreadNetwork network_;
};

}  // namespace tutti::test
