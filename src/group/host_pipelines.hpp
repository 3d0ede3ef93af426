// Pipelines of all_gather + matmul on the host: words and notices in symmetric memory, and the
// calling thread, which waits for them.
#pragma once

#include <memory>

#include "group/pipelines.hpp"

namespace tutti {

// The group outlives it.
std::unique_ptr<PipelineBackend> make_host_pipelines(GroupServices& group,
                                                     AllocateSymmetric allocate,
                                                     PipelineRecord record);

}  // namespace tutti
