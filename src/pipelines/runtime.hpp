// The interface of what executes a program: CUDA streams, host threads, the interpreter of a test.
#pragma once

#include <cstddef>
#include <span>

#include "pipelines/lower.hpp"

namespace tutti::pipelines {

// The caller's buffers in a call, by BufferId. Those of workspaces may be null, and so may empty
// ones, unless they are symmetric: a peer's A is found where the own one is.
// Elements are row by row.
using CallBuffers = std::span<std::byte* const>;

// What a rank enqueues, a function for each kind. All return at once; a failure ends the call.
// An await() must have a deadline.
//
// The runtime counts calls: the epochs of its words are 1, 2, ... modulo 2^64. So all words are 0
// before the first call. A captured call counts its replays, in device memory. A word has reached
// an epoch by base/has_reached.hpp.
class PipelineRuntime {
 public:
  virtual ~PipelineRuntime() = default;

  virtual int rank() const = 0;

  // Once, and collective. The caller's buffers come with each call.
  virtual Status allocate(BufferId buffer) = 0;
  virtual Status share_handles(std::span<const BufferId> buffers) = 0;

  // Begins the next epoch.
  virtual Status begin_call(CallBuffers buffers) = 0;
  // In streams.
  virtual Status wait_for_stream(int stream, const WaitForStream& wait) = 0;
  virtual Status await(int stream, const Await& await) = 0;
  virtual Status signal(int stream, const Signal& signal) = 0;
  virtual Status move(int stream, const Move& move) = 0;
  virtual Status multiply(int stream, const Multiply& multiply) = 0;
  // After all that, or after the first failure, which `status` is. A runtime then joins what it has
  // enqueued to the caller's stream. Returns the call's status.
  virtual Status end_call(const Status& status) = 0;
};

Status run_setup(const Program& program, PipelineRuntime& runtime);

// One call of a rank, whose list checked() has made. kInvalidArgument names a buffer of the
// caller's that is null; then nothing has begun.
Status run_call(const Program& program, std::span<const Instruction> instructions,
                CallBuffers buffers, PipelineRuntime& runtime);

}  // namespace tutti::pipelines
