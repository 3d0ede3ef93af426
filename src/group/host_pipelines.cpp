#include "group/host_pipelines.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "fused/host_fused.hpp"
#include "fused/host_patience.hpp"
#include "fused/host_pipeline.hpp"
#include "group/pipeline_notices.hpp"

namespace tutti {
namespace {

class HostPipelines : public PipelineBackend {
 public:
  HostPipelines(GroupServices& group, AllocateSymmetric allocate, PipelineRecord record)
      : group_(group), allocate_(std::move(allocate)), record_(std::move(record)) {}

  void tell(const PipelinedAllGatherMatmul& call) override {
    if (notices_) notices_->tell(call.text);
  }

  // Of the first call, which all ranks make alike.
  Status open(const PipelinedAllGatherMatmul& call) override {
    if (notices_) return Status::ok();
    auto memory = allocate_(PipelineNotices::kBytes);
    TUTTI_TRY(memory.status().with_context(kAllGatherMatmul));
    notices_.emplace(std::move(*memory), group_.bootstrap().rank());
    tell(call);
    return Status::ok();
  }

  std::size_t words_bytes(const pipelines::Program& program) const override {
    return words_per_rank(program) * sizeof(std::uint64_t);
  }

  // A call has ended when it returns.
  Status await_earlier(const PipelinedAllGatherMatmul&) override { return Status::ok(); }
  bool uses_memory() const override { return false; }

  Result<ReadyProducts> make_ready(const PreparedPipeline&, const PipelinedAllGatherMatmul&,
                                   const SymmetricSegment*) override {
    return ReadyProducts{};
  }

  Status run(PreparedPipeline& prepared, const PipelinedAllGatherMatmul& call,
             const SymmetricSegment* shard, ReadyProducts) override {
    const fused::HostPatience patience{
        .timeout = [&] { return timeout_of(call, group_); },
        .group_status = [&] { return group_status(call); },
        .has_left = [this](int rank) { return group_.has_left(rank); },
        .name_of = [this](int rank) { return group_.bootstrap().names().of(rank); },
        .waits_for = record_.waits_for};
    const Turn turn{prepared, call, shard, patience};
    const std::uint64_t number = record_.begin(call);
    const Status status =
        std::visit([&](const auto& what) { return run_in_turn(what, turn); }, prepared.what);
    record_.end(number, status);
    ++prepared.epoch;
    return status.is_ok() ? status : group_.fail(status);
  }

 private:
  struct Turn {
    const PreparedPipeline& prepared;  // with the epoch of the call before
    const PipelinedAllGatherMatmul& call;
    const SymmetricSegment* shard;  // null: peers read a copy, if they read
    const fused::HostPatience& patience;
  };

  Status run_in_turn(const DerivedPipeline& pipeline, const Turn& turn) const {
    const auto& [prepared, call, shard, patience] = turn;
    const DerivedPipeline::Variant& variant = pipeline.variant_of(call, shard);
    std::vector<std::uint64_t*> words;
    for (std::byte* const at : prepared.memory->at) {
      words.push_back(reinterpret_cast<std::uint64_t*>(at));
    }
    // That of the call, which a runtime counts up to.
    const std::uint64_t value = word_value(prepared.epoch + 1, signature_of(call));
    fused::HostPipeline runtime(prepared.buffers_of(variant, group_.bootstrap().rank(), shard),
                                {.words = std::move(words), .epoch = value - 1},
                                host_multiply(call.product), patience);
    return run_call(variant.program, variant.list, buffers_of(variant.program, call), runtime);
  }

  static Status run_in_turn(const fused::HostFused& fused, const Turn& turn) {
    const auto& [prepared, call, shard, patience] = turn;
    const fused::HostMultiply multiply = host_multiply(call.product);
    return fused.run({.memory = prepared.memory->at,
                      .epoch = static_cast<std::uint32_t>(prepared.epoch + 1),
                      .shard = static_cast<const std::byte*>(call.shard),
                      .gathered = static_cast<std::byte*>(call.gathered),
                      .multiply = multiply,
                      .patience = patience});
  }

  // While a call waits.
  Status group_status(const PipelinedAllGatherMatmul& call) const {
    TUTTI_TRY(group_.failure());
    auto [rank, text] = notices_->find_other(call.text);
    if (rank < 0) return Status::ok();
    Bootstrap& bootstrap = group_.bootstrap();
    return pipeline_mismatch({bootstrap.rank(), call.text}, {rank, std::move(text)},
                             bootstrap.names());
  }

  GroupServices& group_;
  AllocateSymmetric allocate_;
  PipelineRecord record_;
  std::optional<PipelineNotices> notices_;  // since the first call
};

}  // namespace

std::unique_ptr<PipelineBackend> make_host_pipelines(GroupServices& group,
                                                     AllocateSymmetric allocate,
                                                     PipelineRecord record) {
  return std::make_unique<HostPipelines>(group, std::move(allocate), std::move(record));
}

}  // namespace tutti
