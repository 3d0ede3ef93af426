// What differs between the backends when an operation runs: where private memory lives, how a body
// is started, and what a stream is. One per communicator.
#pragma once

#include <memory>

#include "device/messages.hpp"
#include "device/one_sided.hpp"
#include "executors/services.hpp"
#include "group/layout.hpp"
#include "operation/operation.hpp"
#include "tutti/one_sided.hpp"
#include "tutti/tuning.hpp"
#include "tutti/types.hpp"

namespace tutti {

class CudaDriver;
struct ProtocolMutation;

// Memory of one rank that no peer touches. Zeroed. On CUDA, the record and the notices are host
// memory that kernels reach, the others device memory.
struct PrivateMemory {
  std::uint64_t* epochs = nullptr;       // [channels][kMaxBlocks]
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

  // kInvalidArgument if the stream's capture has been invalidated.
  virtual Result<StreamState> stream_state(Stream stream) = 0;

  // Starts the body of the operation's row. CUDA: returns once enqueued. Host: returns when done; a
  // failed body is not an error here, the failure record says what happened.
  virtual Status run(const Operation& operation, const KernelArgs& work, const Plan& plan,
                     Stream stream) = 0;

  // Copies within this rank's memory, in the order of the stream; host: at once. Disjoint.
  virtual Status copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;

  // As run() above, of one peer's memory and of signals. From any thread, also beside that.
  virtual Status run(const OneSidedWork& work, Mover mover, Stream stream) = 0;

  // Orders an operation that is not captured behind the last one, whatever stream that was on.
  virtual Status enter_stream(Stream stream) = 0;
  virtual Status leave_stream(Stream stream) = 0;

  // Fills late buffer `slot`; outside captures.
  virtual Status fill_late(int slot, const DeferredBuffers& buffers) = 0;

  // Fills entry `index` of the table of windows; outside captures.
  virtual Status fill_window(std::uint32_t index, const RegistrationEntry& window) = 0;

  // The deadline of waits that have none of their own, from now on. From any thread.
  virtual Status set_timeout(std::uint64_t timeout_ns) = 0;

  // Operations that have not begun do nothing any more. What a block found before stays known. From
  // any thread; does not wait.
  virtual void poison() = 0;

  // Whether every operation that was started and not captured has ended. From any thread.
  virtual bool caught_up() = 0;

  // Waits until this rank's own work has ended, at most `timeout_ns`; false if it did not.
  virtual bool drain(std::uint64_t timeout_ns) = 0;

 protected:
  PrivateMemory memory_;
};

// `weakening`, for tests, and `waits_for` (see HostTeam) outlive the engine.
std::unique_ptr<Engine> make_host_engine(const EngineSizes& sizes,
                                         const ProtocolMutation* weakening = nullptr,
                                         std::uint64_t* waits_for = nullptr);
Result<std::unique_ptr<Engine>> make_cuda_engine(CudaDriver& cuda, int device,
                                                 const EngineSizes& sizes);

}  // namespace tutti
