// What differs between the backends where a body runs: where private memory lives, and how a body
// is started. One per communicator.
#pragma once

#include <memory>

#include "device/messages.hpp"
#include "device/one_sided.hpp"
#include "executors/peer/layout.hpp"
#include "executors/streams.hpp"
#include "operation/arrivals.hpp"
#include "operation/operation.hpp"
#include "tutti/one_sided.hpp"
#include "tutti/types.hpp"

namespace tutti {

class CudaDriver;
class StreamBarrier;
struct ProtocolMutation;

// Memory of one rank that no peer touches. Zeroed. On CUDA, the record and the notices are host
// memory that kernels reach, the others device memory.
struct PrivateMemory {
  std::uint64_t* epochs = nullptr;       // [channels][kMaxBlocks]; see Engine::work_in()
  std::uint64_t* launches = nullptr;     // [Layout::kMaxPacketAreas]
  MessageCounts* messages = nullptr;     // [kMessageCounts]
  RegistrationEntry* windows = nullptr;  // [kRegistrationEntries]
  Control* control = nullptr;
  DeferredBuffers* late = nullptr;  // [late buffers]; null on the host
  device::impl::SignalCounters* signals = nullptr;
  FailureRecord* failure = nullptr;
  std::uint32_t* notices = nullptr;  // see Notice
};

struct EngineSizes {
  int ranks = 1;
  int channels = 1;
  int late_buffers = 0;
  std::uint64_t timeout_ns = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  const PrivateMemory& memory() const { return memory_; }

  // So much zeroed memory it needs for operations that are no messages, and where that is. Messages
  // read an epoch, and use it for nothing.
  virtual std::size_t working_bytes() const { return 0; }
  virtual void work_in(std::byte*) {}

  // Starts the body of the operation's algorithm. CUDA: returns once enqueued. Host: returns when
  // done; a failed body is not an error here, the failure record says what happened.
  struct Start {
    int threads = 1;
    Stream stream = nullptr;
    StreamBarrier* barrier = nullptr;  // by which programs of copy engines meet; null: by kernels
    Arrivals arrivals = {};            // of programs of copy engines
    bool by_address = false;           // see BufferAccess
  };
  virtual Status run(const Operation& operation, const KernelArgs& work, const Start& start) = 0;

  // As run() above, of one peer's memory and of signals. From any thread, also beside that.
  virtual Status run(const OneSidedWork& work, Mover mover, Stream stream) = 0;

  // Fills late buffer `slot`; outside captures.
  virtual Status fill_late(int slot, const DeferredBuffers& buffers) = 0;

  // Fills entry `index` of the table of windows; outside captures.
  virtual Status fill_window(std::uint32_t index, const RegistrationEntry& window) = 0;

  // The deadline of waits that have none of their own, from now on. From any thread.
  virtual Status set_timeout(std::uint64_t timeout_ns) = 0;

  // Operations that have not begun do nothing any more. What a block found before stays known. From
  // any thread; returns within 10 ms or so, even if the device takes nothing more for now.
  virtual void poison() = 0;

  // Waits until this rank's own work has ended, at most `timeout_ns`; false if it did not.
  virtual bool drain(std::uint64_t timeout_ns) = 0;

 protected:
  PrivateMemory memory_;
};

// `weakening`, for tests, and `waits_for` (see HostTeam) outlive the engine.
std::unique_ptr<Engine> make_host_engine(const EngineSizes& sizes,
                                         const ProtocolMutation* weakening = nullptr,
                                         std::uint64_t* waits_for = nullptr);
Result<std::unique_ptr<Engine>> make_cuda_engine(CudaDriver& cuda, int device, Streams& streams,
                                                 const EngineSizes& sizes);

}  // namespace tutti
