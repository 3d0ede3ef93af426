// The pipelines of all_gather + matmul that a group on the host has prepared, and their memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executors/services.hpp"
#include "fused/pipelined.hpp"
#include "group/pipeline_notices.hpp"
#include "memory/symmetric_heap.hpp"
#include "pipelines/lower.hpp"

namespace tutti {

// All functions are called by one thread at a time, on all ranks in the same order.
class HostPipelines {
 public:
  static constexpr std::size_t kMostKept = 16;

  // Collective.
  using AllocateSymmetric =
      std::function<Result<std::shared_ptr<SymmetricSegment>>(std::size_t bytes)>;
  // Both outlive this.
  HostPipelines(GroupServices& group, AllocateSymmetric allocate)
      : group_(group), allocate_(std::move(allocate)) {}

  // C is valid when it returns. The first call of a description asks the other ranks, and prepares
  // it; beyond kMostKept, the one that was used least recently is forgotten on all ranks. A call
  // that fails after that is the failure of the group: the words of the ranks no longer agree.
  // kMismatch, of the group: the ranks' texts differ; it names both. kResourceExhausted: no memory
  // on a rank; then the group stays usable.
  Status run(const PipelinedAllGatherMatmul& call);

 private:
  // Whether the gathered A is an output changes nothing that other ranks see.
  struct Variant {
    pipelines::Program program;
    std::vector<pipelines::Instruction> list;  // of this rank
  };
  struct Prepared {
    pipelines::Description description;
    std::string text;
    Variant without_output, with_output;
    std::size_t words_bytes = 0;  // in `memory`, before the workspace
    std::shared_ptr<SymmetricSegment> memory;
    std::uint64_t epoch = 0;  // of the last call
  };

  std::chrono::milliseconds timeout_of(const PipelinedAllGatherMatmul& call) const;
  Result<Prepared*> find_or_prepare(const PipelinedAllGatherMatmul& call);
  Status agree(const PipelinedAllGatherMatmul& call);
  Status open_notices(const PipelinedAllGatherMatmul& call);
  Result<Prepared> prepare(const PipelinedAllGatherMatmul& call);
  Result<Variant> derive_variant(pipelines::Description description, bool gathered) const;
  Status run_prepared(Prepared& prepared, const PipelinedAllGatherMatmul& call);
  // While a call waits.
  Status group_status(const PipelinedAllGatherMatmul& call) const;
  struct Caller {
    int rank = 0;
    std::string text;
  };
  Status mismatch(const Caller& one, const Caller& other) const;
  fused::HostPipelineMemory memory_of(const Prepared& prepared) const;

  GroupServices& group_;
  AllocateSymmetric allocate_;
  std::optional<PipelineNotices> notices_;  // since the first call
  std::list<Prepared> prepared_;            // the one that was used last comes first
};

}  // namespace tutti
