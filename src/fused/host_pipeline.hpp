// Pipelines of all_gather + matmul in host memory: each rank is a thread or a process that executes
// its list in the order of the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fused/host_patience.hpp"
#include "fused/pipeline_buffers.hpp"
#include "pipelines/runtime.hpp"

namespace tutti::fused {

// Of each rank, words_per_rank(program) words, in memory that all ranks address. None is beyond
// `epoch` before the first call, which has the next one.
struct HostPipelineWords {
  std::vector<std::uint64_t*> words = {};
  std::uint64_t epoch = 0;
};

// C [c] = a [c.count(), K] x B + bias for all products. `a` is row by row, without gaps.
struct HostProduct {
  const std::byte* a = nullptr;
  pipelines::Rows c;
  pipelines::CallBuffers buffers;
};
using HostMultiply = std::function<Status(const HostProduct&)>;

// After a call that failed, all later ones return the same failure: the words of the ranks no
// longer agree.
class HostPipeline : public pipelines::PipelineRuntime {
 public:
  HostPipeline(PipelineBuffers buffers, HostPipelineWords words, HostMultiply multiply,
               HostPatience patience);

  int rank() const override { return buffers_.rank(); }
  // The memory is there already. kInvalidArgument: there is no workspace, or it is not symmetric.
  Status allocate(pipelines::BufferId buffer) override { return buffers_.check_allocated(buffer); }
  Status share_handles(std::span<const pipelines::BufferId> buffers) override {
    return buffers_.check_shared(buffers);
  }

  Status begin_call(pipelines::CallBuffers buffers) override;
  // The list has the order of all streams.
  Status wait_for_stream(int, const pipelines::WaitForStream&) override { return Status::ok(); }
  // The errors of HostWaiting::failure().
  Status await(int stream, const pipelines::Await& await) override;
  Status signal(int stream, const pipelines::Signal& signal) override;
  // kInvalidArgument: a peer's rows are not in symmetric memory.
  Status move(int stream, const pipelines::Move& move) override;
  Status multiply(int stream, const pipelines::Multiply& multiply) override;
  Status end_call(const Status& status) override;

 private:
  std::uint64_t& word(const pipelines::Word& word) const;

  PipelineBuffers buffers_;
  std::vector<std::uint64_t*> words_;
  std::uint64_t epoch_;
  HostMultiply multiply_;
  HostPatience patience_;
  Status status_;
};

}  // namespace tutti::fused
