#include "group/cuda_pipelines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "drivers/cuda.hpp"
#include "executors/peer/copy_kernel.hpp"
#include "fused/cuda_pipeline.hpp"
#include "memory/device_scope.hpp"

namespace tutti {
namespace {

static_assert(kMostKeptPipelines <= kPipelineSlots);
static_assert(pipelines::kMostPipelineStreams < kPipelineStreams);
static_assert(pipelines::kMostPipelineTiles <= kPipelineWords && kMaxCudaRanks <= kPipelineWords);

class WaitingWords : public fused::PipelineWords {
 public:
  WaitingWords(StreamWaits& waits, const StreamWaits::Call& call, int slot)
      : waits_(waits), call_(call), slot_(slot) {}

  Status await(const pipelines::Word& word, int number, Stream stream) override {
    const int watched = number == pipelines::kCallerStream ? kPipelineStreams - 1 : number;
    return waits_.await(call_, place_of(word), watched, stream);
  }
  Status signal(const pipelines::Word& word, Stream stream) override {
    return waits_.signal(call_, word.rank, place_of(word), stream);
  }

 private:
  PipelineWord place_of(const pipelines::Word& word) const {
    return {.slot = slot_,
            .is_done = word.kind == pipelines::WordKind::kDone,
            .writer = word.writer,
            .index = word.index};
  }

  StreamWaits& waits_;
  const StreamWaits::Call& call_;
  const int slot_;
};

class CudaPipelines : public PipelineBackend {
 public:
  CudaPipelines(GroupServices& group, CudaPipelineHooks hooks)
      : group_(group), cuda_(*group.cuda()), hooks_(std::move(hooks)) {}
  ~CudaPipelines() override {
    const DeviceScope scope(cuda_, group_.device());
    streams_.push_back(caller_);  // its event alone is this object's
    for (const auto& [stream, event] : streams_) {
      if (event != nullptr) (void)cuda_.destroy_event(event);
      if (stream != nullptr) (void)cuda_.destroy_stream(stream);
    }
  }
  CudaPipelines(const CudaPipelines&) = delete;
  CudaPipelines& operator=(const CudaPipelines&) = delete;

  void tell(const PipelinedAllGatherMatmul& call) override { begun_ = hooks_.record.begin(call); }
  void withdraw(const Status& why) override {
    if (begun_ != 0) hooks_.record.end(std::exchange(begun_, 0), why);
  }

  Status open(const PipelinedAllGatherMatmul& call) override {
    TUTTI_ASSIGN(barrier_, hooks_.stream_barrier());
    const Status made = make_streams_for(std::get<pipelines::Description>(call.description));
    return made.is_ok() ? made : group_.fail(made);  // the others go on
  }

  // They are in the barrier's pages.
  std::size_t words_bytes(const pipelines::Program&) const override { return 0; }

  Status await_earlier(const PipelinedAllGatherMatmul& call) override {
    const std::chrono::milliseconds timeout = timeout_of(call, group_);
    const Deadline end(timeout);
    while (uses_memory()) {
      TUTTI_TRY(group_.failure());
      if (end.passed()) {
        return group_.fail({StatusCode::kTimeout,
                            fmt::format("{}: {} pipelines are kept, and earlier calls of this "
                                        "communicator have not ended after {} ms",
                                        kAllGatherMatmul, kMostKeptPipelines, timeout.count())});
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return Status::ok();
  }
  bool uses_memory() const override { return !group_.streams().caught_up(true); }

  Result<ReadyProducts> make_ready(const PreparedPipeline& prepared,
                                   const PipelinedAllGatherMatmul& call,
                                   const SymmetricSegment* shard) override {
    const Bound bound = bind(prepared, call, shard);
    TUTTI_ASSIGN(auto products,
                 fused::PipelineProducts::make(*call.engine, call.matmul, bound.variant.list,
                                               bound.buffers, streams_of(call)));
    return ReadyProducts(std::move(products));
  }

  Status run(PreparedPipeline& prepared, const PipelinedAllGatherMatmul& call,
             const SymmetricSegment* shard, ReadyProducts products) override {
    const Bound bound = bind(prepared, call, shard);
    const Status status = enqueue(prepared.slot, bound, call, *products);
    return status.is_ok() ? status : group_.fail(status);
  }

 private:
  struct Bound {
    const DerivedPipeline::Variant& variant;
    std::vector<std::byte*> callers;
    fused::PipelineBuffers buffers;
  };
  Bound bind(const PreparedPipeline& prepared, const PipelinedAllGatherMatmul& call,
             const SymmetricSegment* shard) const {
    const auto& pipeline = std::get<DerivedPipeline>(prepared.what);
    const DerivedPipeline::Variant& variant = pipeline.variant_of(call, shard);
    Bound bound{variant, buffers_of(variant.program, call),
                prepared.buffers_of(variant, group_.bootstrap().rank(), shard)};
    bound.buffers.bind(bound.callers);
    return bound;
  }

  Status make_streams_for(const pipelines::Description& description) {
    const DeviceScope scope(cuda_, group_.device());
    TUTTI_TRY(scope.status());
    if (description.mover == pipelines::Mover::kKernel) TUTTI_TRY(load_copy_kernel(cuda_));
    return make_streams(static_cast<std::size_t>(description.streams));
  }

  Status make_streams(std::size_t count) {
    if (caller_.event == nullptr) {
      TUTTI_ASSIGN(caller_.event, cuda_.create_event(false));
    }
    while (streams_.size() < count) {
      fused::PipelineStreams::One& made = streams_.emplace_back();
      TUTTI_ASSIGN(made.stream, cuda_.create_stream(group_.device()));
      TUTTI_ASSIGN(made.event, cuda_.create_event(false));
    }
    return Status::ok();
  }

  fused::PipelineStreams streams_of(const PipelinedAllGatherMatmul& call) const {
    return {{call.stream, caller_.event}, streams_};
  }

  fused::EnqueueCopy copies_of(pipelines::Mover mover) {
    if (mover == pipelines::Mover::kKernel) {
      return [this](const fused::RowsCopy& copy, Stream stream) {
        return copy_by_kernel(cuda_, {copy.to, copy.from, copy.bytes}, stream);
      };
    }
    return [this](const fused::RowsCopy& copy, Stream stream) {
      return cuda_.copy_async(copy.to, copy.from, copy.bytes, stream);
    };
  }

  Status enqueue(int slot, const Bound& bound, const PipelinedAllGatherMatmul& call,
                 fused::PipelineProducts& products) {
    const auto& [variant, callers, buffers] = bound;
    TUTTI_TRY(group_.streams().enter(call.stream, {}));
    const std::uint64_t number = std::exchange(begun_, 0);
    const std::uint32_t signature = signature_of(call);
    const std::chrono::nanoseconds timeout = limited(call.timeout);
    const StreamWaits::Call watched{.epoch = word_value(barrier_->waits().next_epoch(), signature),
                                    .sequence = number,
                                    .timeout_ns = static_cast<std::uint64_t>(timeout.count()),
                                    .signature = signature};
    WaitingWords words(barrier_->waits(), watched, slot);
    fused::CudaPipeline runtime(buffers, {cuda_, streams_of(call), words, products,
                                          copies_of(variant.program.description.mover)});
    const Status status = run_call(variant.program, variant.list, buffers.bound(), runtime);
    const Status left = group_.streams().leave(call.stream, {});
    const Status& enqueued = status.is_ok() ? left : status;
    hooks_.record.end(number, enqueued);
    return enqueued;
  }

  GroupServices& group_;
  CudaDriver& cuda_;
  CudaPipelineHooks hooks_;
  StreamBarrier* barrier_ = nullptr;  // since the first call
  std::uint64_t begun_ = 0;           // the number of the call that was told and has not run
  std::vector<fused::PipelineStreams::One> streams_;
  fused::PipelineStreams::One caller_;  // the event; each call has its stream
};

}  // namespace

std::unique_ptr<PipelineBackend> make_cuda_pipelines(GroupServices& group,
                                                     CudaPipelineHooks hooks) {
  return std::make_unique<CudaPipelines>(group, std::move(hooks));
}

}  // namespace tutti
