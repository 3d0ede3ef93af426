// Pipelines of all_gather + matmul on GPUs: streams of the group, words in the pages of its
// StreamBarrier, and the executor that watches these.
#pragma once

#include <functional>
#include <memory>

#include "executors/copy_engine/stream_barrier.hpp"
#include "group/pipelines.hpp"

namespace tutti {

// What the group does for its pipelines.
struct CudaPipelineHooks {
  std::function<Result<StreamBarrier*>()> stream_barrier;  // collective; the same one each time
  PipelineRecord record;
};

// The group outlives it.
std::unique_ptr<PipelineBackend> make_cuda_pipelines(GroupServices& group, CudaPipelineHooks hooks);

}  // namespace tutti
