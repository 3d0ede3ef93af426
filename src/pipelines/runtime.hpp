// The interface of what executes a program: CUDA streams, host threads, the interpreter of a test.
#pragma once

#include <cstdint>
#include <span>

#include "pipelines/lower.hpp"

namespace tutti::pipelines {

// What a rank enqueues, a function for each kind. All return at once; a failure ends the call.
// An await() must have a deadline.
class PipelineRuntime {
 public:
  virtual ~PipelineRuntime() = default;

  // Once, and collective.
  virtual Status allocate(BufferId buffer) = 0;
  virtual Status share_handles(std::span<const BufferId> buffers) = 0;

  // Each call, in streams.
  virtual Status wait_for_stream(int stream, const WaitForStream& wait) = 0;
  virtual Status await(int stream, const Await& await, std::uint32_t epoch) = 0;
  virtual Status signal(int stream, const Signal& signal, std::uint32_t epoch) = 0;
  virtual Status move(int stream, const Move& move) = 0;
  virtual Status multiply(int stream, const Multiply& multiply) = 0;
};

Status run_setup(const Program& program, PipelineRuntime& runtime);

// One call of a rank, whose list checked() has made. All words are 0 before the first call, which
// has epoch 1. Epochs grow by 1 from call to call and may wrap: a word has reached an epoch if
// int32_t(word - epoch) >= 0.
Status run_call(std::span<const Instruction> instructions, std::uint32_t epoch,
                PipelineRuntime& runtime);

}  // namespace tutti::pipelines
