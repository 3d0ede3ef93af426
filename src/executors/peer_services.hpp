// What a group has of the executor that reaches peers' memory, besides operations: that memory,
// what captures register there, streams that wait for words, and operations on one peer's memory.
// Every group has one. Calls are made under the group's lock, one at a time, unless "from any
// thread" is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/kernel_args.hpp"
#include "executors/services.hpp"
#include "operation/one_sided_call.hpp"
#include "tutti/status.hpp"

namespace tutti {

class ArrivalLane;
class StreamBarrier;

class PeerServices {
 public:
  // Symmetric memory, a little, that it has from the beginning on, and is given once ranks reach
  // each other's. Null: they do not, and it has none at all.
  virtual std::size_t memory_bytes() const = 0;
  virtual void take_memory(std::shared_ptr<SymmetricSegment> early) = 0;
  // Collective where there is none yet.
  virtual Result<GroupServices::OwnMemory> scratch() = 0;

  // What a wait that ends leaves for messages about it, and whom waits look at.
  struct Words {
    FailureRecord* record;
    std::uint32_t* notices;
  };
  virtual Words words() = 0;

  // Communicator::start_capture() and finish_capture().
  virtual Status start_capture() = 0;
  virtual Status finish_capture() = 0;
  // Takes back what belonged to graphs that are gone. Outside captures.
  virtual Status sweep() = 0;

  // Where all-gathers run beside a kernel that waits for what they bring. The same one each time.
  // kUnsupported, kUnavailable: not here, or it is not there yet, and `capturing` forbids to make
  // it.
  virtual Result<ArrivalLane*> arrivals(bool capturing) = 0;
  // Where streams of all ranks wait for words. Collective where there is none yet; the same one
  // each time. kUnsupported on every rank: one cannot.
  virtual Result<StreamBarrier*> stream_barrier() = 0;

  // On one peer's memory, and signals. From any thread, also beside the group's operations.
  virtual Status execute(const OneSidedCall& call) = 0;
  virtual Result<device::Peers> device_peers(const void* address, std::size_t bytes) = 0;

 protected:
  ~PeerServices() = default;
};

}  // namespace tutti
