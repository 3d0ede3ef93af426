// A call of all_gather_matmul as a pipeline, or as `fused` on the host, which multiply rows as they
// come: its description, its buffers, and the multiplication of its rows.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "fused/all_gather_matmul.hpp"
#include "fused/host_fused.hpp"
#include "fused/host_pipeline.hpp"
#include "matmul/engine.hpp"
#include "matmul/problem.hpp"
#include "pipelines/program.hpp"

namespace tutti {

// kInvalidArgument: a protocol, a mover, or a number of streams or tiles, that is not allowed.
Status check(const AllGatherMatmulPipeline& pipeline);

struct PipelinedAllGatherMatmul {
  AllGatherMatmulAlgorithm algorithm = AllGatherMatmulAlgorithm::kPipelinedShift;
  // Equal on all ranks: of a pipeline, or of `fused`. The gathered A is no output of a description:
  // each rank decides that by itself.
  std::variant<pipelines::Description, fused::FusedRows> description;
  // All that ranks must agree on, and all that tells descriptions apart: "all_gather_matmul (m 64,
  // n 32, k 128, row, 1 B), fp32, pipelined_ring, get, 4 streams".
  std::string text;
  CheckedMatmul product;                 // of the gathered A
  Matmul matmul;                         // likewise, as the engine of GPUs takes it
  MatmulEngine* engine = nullptr;        // of GPUs
  Stream stream = nullptr;               // likewise
  const void* shard = nullptr;           // null: this rank has no rows
  void* gathered = nullptr;              // null: it is no output
  std::chrono::milliseconds timeout{0};  // 0: that of the group
};
// Of a call for which overlaps() holds, with a pipelined algorithm, or on the host kFused. It was
// checked. kUnsupported: `fused` of more than kMostFusedRows.
Result<PipelinedAllGatherMatmul> pipelined(const AllGatherMatmulProblem& problem,
                                           const AllGatherMatmul& call,
                                           AllGatherMatmulAlgorithm algorithm);

// "get, 4 streams", "put by kernel, 8 tiles, 4 streams in order"; of `fused` on the host "rotated
// order, 2 chunks of a shard"
std::string options_text(const PipelinedAllGatherMatmul& call);

// The caller's buffers by BufferId; `program` is derived from the description of a pipeline, with
// or without an output for the gathered A.
std::vector<std::byte*> buffers_of(const pipelines::Program& program,
                                   const PipelinedAllGatherMatmul& call);

// Multiplies rows as `product` does all of A. On the calling thread.
fused::HostMultiply host_multiply(const CheckedMatmul& product);

}  // namespace tutti
