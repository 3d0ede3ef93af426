// The pipelines of all_gather + matmul that a group has prepared, and their memory. `fused` on the
// host counts as one of them here.
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
#include <variant>
#include <vector>

#include "bootstrap/rank_names.hpp"
#include "executors/services.hpp"
#include "fused/cuda_pipeline.hpp"
#include "fused/host_fused.hpp"
#include "fused/pipeline_buffers.hpp"
#include "fused/pipelined.hpp"
#include "group/shard_places.hpp"
#include "memory/symmetric_heap.hpp"
#include "pipelines/lower.hpp"

namespace tutti {

// What the words of a pipeline's call are set to. It grows from call to call. Ranks whose calls are
// not alike have different values, so that one of them waits in vain and finds the difference, and
// the other one does not end either.
inline std::uint64_t word_value(std::uint64_t epoch, std::uint32_t signature) {
  return epoch << 16 | (signature & 0xffff);
}

inline constexpr std::size_t kMostKeptPipelines = 16;

// A rank's shard, if it is in symmetric memory that peers may read; else `memory` is null.
struct SymmetricShard {
  std::shared_ptr<SymmetricSegment> memory;
  ShardPlace place;
};

struct DerivedPipeline {
  struct Variant {
    pipelines::Program program;
    std::vector<pipelines::Instruction> list;  // of this rank
  };
  // Whether the gathered A is an output changes nothing that other ranks see.
  struct Variants {
    Variant without_output, with_output;
  };
  Variants copying;
  // Peers read the shards themselves, which lie at one of `places`. Nothing: at the first call a
  // shard lay elsewhere on some rank, and so all ranks copy theirs, wherever they lie.
  std::optional<Variants> in_place = {};
  ShardPlaces places = {};

  // Now, or when all ranks have compared the place.
  bool may_read_at(const ShardPlace& place) const {
    return in_place.has_value() && places.admits(place);
  }

  const Variant& variant_of(const PipelinedAllGatherMatmul& call,
                            const SymmetricSegment* shard) const {
    const Variants& variants = shard != nullptr ? *in_place : copying;
    return call.gathered != nullptr ? variants.with_output : variants.without_output;
  }
};

struct PreparedPipeline {
  std::string text;  // of the calls, without the place of a shard
  int slot = 0;  // below kMostKeptPipelines, of no other one that is kept; the same on all ranks
  std::variant<DerivedPipeline, fused::HostFused> what = {};
  std::size_t words_bytes = 0;  // in `memory`, before the workspace of a pipeline
  std::shared_ptr<SymmetricSegment> memory;
  std::uint64_t epoch = 0;  // of the last call, where epochs are the pipeline's own

  // Peers' workspaces, and their shards if `shard` is not null, have addresses.
  fused::PipelineBuffers buffers_of(const DerivedPipeline::Variant& variant, int rank,
                                    const SymmetricSegment* shard) const;
};

// What ranks that make the same call have alike.
std::uint32_t signature_of(const PipelinedAllGatherMatmul& call);

// How the group counts its calls, and shows them to `tutti status`.
struct PipelineRecord {
  std::function<std::uint64_t(const PipelinedAllGatherMatmul& call)> begin;  // the call's number
  // On the host the call has ended; on GPUs it is enqueued.
  std::function<void(std::uint64_t number, const Status& status)> end;
  std::uint64_t* waits_for = nullptr;  // host: the ranks that have not come, as bits; maybe null
};

// The deadline of a call's waits.
std::chrono::milliseconds timeout_of(const PipelinedAllGatherMatmul& call,
                                     const GroupServices& group);

// The products of a call. The host needs none.
using ReadyProducts = std::optional<fused::PipelineProducts>;

// What differs between the host and GPUs.
class PipelineBackend {
 public:
  virtual ~PipelineBackend() = default;

  // This rank begins a call, for ranks that wait for it meanwhile. Ranks count these calls, so that
  // what can still be refused must be refused on all of them.
  virtual void tell(const PipelinedAllGatherMatmul& call) = 0;
  // What was told was refused, on all ranks, or not begun, since the group has failed.
  virtual void withdraw(const Status&) {}
  // Collective, before a pipeline is prepared: makes what all calls need besides it. Where that was
  // not there yet and peers are told by it, it also tells of the call.
  virtual Status open(const PipelinedAllGatherMatmul& call) = 0;
  // What words take in the pipeline's own memory.
  virtual std::size_t words_bytes(const pipelines::Program& program) const = 0;
  // Nothing uses the memory of earlier calls any more, when it returns.
  virtual Status await_earlier(const PipelinedAllGatherMatmul& call) = 0;
  virtual bool uses_memory() const = 0;  // likewise, asked
  // Of this rank alone; nothing is enqueued. `shard`: where peers read the call's; null: they read
  // a copy.
  virtual Result<ReadyProducts> make_ready(const PreparedPipeline& prepared,
                                           const PipelinedAllGatherMatmul& call,
                                           const SymmetricSegment* shard) = 0;
  // A failure is the group's, since it leaves the ranks out of step.
  virtual Status run(PreparedPipeline& prepared, const PipelinedAllGatherMatmul& call,
                     const SymmetricSegment* shard, ReadyProducts products) = 0;
};

// Collective.
using AllocateSymmetric =
    std::function<Result<std::shared_ptr<SymmetricSegment>>(std::size_t bytes)>;

// All functions are called by one thread at a time, on all ranks in the same order.
class Pipelines {
 public:
  // The group outlives this.
  Pipelines(GroupServices& group, AllocateSymmetric allocate,
            std::unique_ptr<PipelineBackend> backend)
      : group_(group), allocate_(std::move(allocate)), backend_(std::move(backend)) {}
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // If at the first call all ranks' shards lie at the same place of symmetric memory, a pipeline
  // with `get` reads them there. So it does later, at each place that all ranks have; a new place
  // is asked of the other ranks. A place that ShardPlaces does not admit is copied from.
  //
  // Host: C is valid when it returns. GPUs: it is enqueued. The first call of a description asks
  // the other ranks, and prepares it; beyond kMostKeptPipelines, the one that was used least
  // recently is forgotten on all ranks. The ranks tell each other whether they are ready, so that
  // what one rank refuses is refused on all, by the same status, which names it; then the group
  // stays usable. Later calls ask nobody: what this rank refuses then is the failure of the group,
  // but for kInvalidArgument, which the caller can correct. A call that fails after that is the
  // failure of the group: the words of the ranks no longer agree.
  // kMismatch, of the group: the ranks' texts, or later the places of their shards, differ; it
  // names both. kResourceExhausted: no memory on a rank. kUnsupported, on a GPU: a product cannot
  // run, or the ranks have no stream memory operations.
  Status run(PipelinedAllGatherMatmul call);

 private:
  PreparedPipeline* find(const PipelinedAllGatherMatmul& call);
  // Of a pipeline with `get`; `fused` reads no shard of another rank.
  Result<SymmetricShard> find_shard(const PipelinedAllGatherMatmul& call);
  // Whether the shards of all ranks lie at the same place.
  Result<bool> agree(const PipelinedAllGatherMatmul& call, const SymmetricShard& shard);
  // One that is not prepared.
  Status run_first(const PipelinedAllGatherMatmul& call, SymmetricShard shard);
  Status prepare_and_run(const PipelinedAllGatherMatmul& call, SymmetricShard shard);
  Status run_ready(PreparedPipeline& prepared, const PipelinedAllGatherMatmul& call,
                   const SymmetricShard& shard, ReadyProducts products);
  Result<PreparedPipeline> prepare(const PipelinedAllGatherMatmul& call, bool in_place);
  // The same status on all ranks: the failure of the first rank that has one.
  Status agree_on(const PipelinedAllGatherMatmul& call, const Status& own);
  // Of this rank alone, in a call that the others make.
  Status refuse(const Status& status);
  Result<DerivedPipeline> derive_pipeline(const pipelines::Description& description,
                                          bool in_place) const;
  Result<DerivedPipeline::Variants> derive_variants(pipelines::Description description,
                                                    bool in_place) const;
  int free_slot() const;

  GroupServices& group_;
  AllocateSymmetric allocate_;
  std::unique_ptr<PipelineBackend> backend_;
  std::list<PreparedPipeline> prepared_;  // the one that was used last comes first
};

// Of two calls that should be the same one: "ranks run different operations: ...".
struct PipelineCaller {
  int rank = 0;
  std::string text;
};
Status pipeline_mismatch(const PipelineCaller& one, const PipelineCaller& other,
                         const RankNames& names);

}  // namespace tutti
