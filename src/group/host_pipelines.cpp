#include "group/host_pipelines.hpp"

#include <optional>
#include <utility>

#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "fused/host_pipeline.hpp"
#include "group/pipeline_notices.hpp"

namespace tutti {
namespace {

class HostPipelines : public PipelineBackend {
 public:
  HostPipelines(GroupServices& group, AllocateSymmetric allocate)
      : group_(group), allocate_(std::move(allocate)) {}

  void tell(const PipelinedAllGatherMatmul& call) override {
    if (notices_) notices_->tell(call.text);
  }

  // Of the first call, which all ranks make alike.
  Status open(const PipelinedAllGatherMatmul& call) override {
    if (notices_) return Status::ok();
    auto memory = allocate_(PipelineNotices::kBytes);
    TUTTI_TRY(memory.status().with_context(kAllGatherMatmul));
    notices_.emplace(std::move(*memory), group_.bootstrap().rank());
    notices_->tell(call.text);
    return Status::ok();
  }

  std::size_t words_bytes(const pipelines::Program& program) const override {
    return words_per_rank(program) * sizeof(std::uint64_t);
  }

  // A call has ended when it returns.
  Status await_earlier(const PipelinedAllGatherMatmul&) override { return Status::ok(); }
  bool uses_memory() const override { return false; }

  Status run(PreparedPipeline& prepared, const PipelinedAllGatherMatmul& call) override {
    const PreparedPipeline::Variant& variant = prepared.variant_of(call);
    fused::HostPatience patience{
        .timeout = [&] { return timeout_of(call, group_); },
        .group_status = [&] { return group_status(call); },
        .has_left = [this](int rank) { return group_.has_left(rank); },
        .name_of = [this](int rank) { return group_.bootstrap().names().of(rank); }};
    std::vector<std::uint64_t*> words;
    for (std::byte* const at : prepared.memory->at) {
      words.push_back(reinterpret_cast<std::uint64_t*>(at));
    }
    fused::HostPipeline runtime(prepared.buffers_of(variant, group_.bootstrap().rank()),
                                {.words = std::move(words), .epoch = prepared.epoch},
                                host_multiply(call.product), std::move(patience));
    ++prepared.epoch;
    const Status status =
        run_call(variant.program, variant.list, buffers_of(variant.program, call), runtime);
    return status.is_ok() ? status : group_.fail(status);
  }

 private:
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
  std::optional<PipelineNotices> notices_;  // since the first call
};

}  // namespace

std::unique_ptr<PipelineBackend> make_host_pipelines(GroupServices& group,
                                                     AllocateSymmetric allocate) {
  return std::make_unique<HostPipelines>(group, std::move(allocate));
}

}  // namespace tutti
