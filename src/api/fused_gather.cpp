#include "api/fused_gather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/try.hpp"
#include "base/units.hpp"
#include "drivers/cuda.hpp"
#include "matmul/own_arguments.hpp"
#include "planning/selection.hpp"
#include "topology/topology.hpp"

namespace tutti {
namespace {

// A chunk costs the host two driver calls, and its copy engine a few microseconds. The kernel
// begins with the tiles of so many rows at once, so that chunks of fewer rows let no tile begin
// earlier.
constexpr std::size_t kLeastChunkBytes = std::size_t{4} << 20;
constexpr std::size_t kLeastChunkRows = kMatmulGroupRows;
constexpr std::size_t kMostChunks = 4;

// What ends the kernel's waits is the all-gather: its data, or its failure. Their own deadline is
// for a host that says neither. In a replay the ranks have met before, so that the kernel waits for
// copies alone.
constexpr std::chrono::minutes kGatePatience{1};

Status unsupported_fused(std::string_view why) {
  return {StatusCode::kUnsupported, fmt::format("all_gather_matmul/fused: {}", why)};
}

ArrivalPlan plan_of(const CommunicatorImpl& group, const FusedGather& call) {
  const std::size_t rows = ceil_div(call.product.m, static_cast<std::size_t>(group.size()));
  const std::size_t row_bytes = call.product.k * size_of(call.product.dtype);
  return {.shards = group.size(),
          .chunks = chunks_of_shard(rows, row_bytes, group.size()),
          .own = group.rank(),
          .order = call.order};
}

// What the kernel depends on must not need an SM, since it takes all of them; captured, it begins
// once the ranks have met. Where ranks share a GPU, which is for tests, it leaves some.
Status check_gather(const CommunicatorImpl& group, const FusedGather& call,
                    const OperationPlan& plan, bool captured) {
  const bool shared = group.topology().ranks_per_gpu > 1;
  const bool uneven = call.product.m % static_cast<std::size_t>(group.size()) != 0;
  if (plan.staged() && uneven) {
    return unsupported_fused(
        "A has to be in symmetric memory, also that of ranks with fewer rows, or without");
  }
  if (shared) return Status::ok();
  if (plan.staged()) {
    return unsupported_fused(
        "A has to be in symmetric memory, and where ranks are threads not cudaMalloc's");
  }
  if (plan.stream_barrier || captured) return Status::ok();
  return unsupported_fused("ranks do not meet by stream memory operations here");
}

// The SMs that the kernel takes.
int multiprocessors_for(const CommunicatorImpl& group, int all) {
  const int sharers = group.topology().ranks_per_gpu;
  if (sharers <= 1) return all;
  // The kernels of all ranks have room beside each other. So have barriers, and copies within the
  // GPU, which are kernels, too.
  constexpr int kSpare = 2;
  return std::max(all / sharers / kMatmulCluster * kMatmulCluster - kSpare, kMatmulCluster);
}

struct ReadyFused {
  MatmulEngine::ReadyGated product;
  int multiprocessors = 0;  // for the kernel
  ChosenTransport how;
};

// A call while it is enqueued.
class FusedRun {
 public:
  FusedRun(CommunicatorImpl& group, const FusedGather& call, const ReadyFused& ready,
           const ArrivalLane::Turn& turn)
      : group_(group), call_(call), ready_(ready), turn_(turn) {}

  // A product that cannot be enqueued leaves the ranks' meetings as they are: the others do not
  // wait.
  Status run() {
    const bool pulls = ready_.how.transport == ArrivalTransport::kPull;
    TUTTI_ASSIGN(PlannedOperation gather, group_.prepare(gather_call(pulls)));
    std::chrono::nanoseconds patience = group_.timeout_of(gather.operation).value;
    if (!captured()) patience += kGatePatience;
    timeout_ns_ = static_cast<std::uint64_t>(patience.count());
    Status started = check_gather(group_, call_, gather.plan, gather.captured());
    if (started.is_ok()) started = group_.start(gather);
    const Status settled = group_.settle(gather, started);
    TUTTI_TRY(started);
    TUTTI_TRY(settled);
    if (!pulls) multiplied_ = multiply({});
    TUTTI_TRY(multiplied_);
    return call_.with_own ? copy_own() : Status::ok();
  }

 private:
  bool captured() const { return turn_.met != nullptr; }

  Call gather_call(bool pulls) {
    const std::size_t row_bytes = call_.product.k * size_of(call_.product.dtype);
    const auto rows = [](std::size_t all, int parts) {
      return ceil_div(all, static_cast<std::size_t>(parts));
    };
    const ArrivalPlan& plan = ready_.how.plan;
    const std::size_t shard_rows = rows(call_.product.m, plan.shards);
    Call gather = by_copy_engine(call_.gather);
    gather.stream = turn_.side;
    gather.arrivals = {.words = turn_.words,
                       .value = turn_.number,
                       .piece_bytes = shard_rows * row_bytes,
                       .chunk_bytes = rows(shard_rows, plan.chunks) * row_bytes,
                       .output_bytes = call_.gather.arrivals.output_bytes,
                       .chunks = plan.chunks,
                       .kernel_stream = call_.gather.stream,
                       .met = turn_.met};
    if (pulls) {
      gather.arrivals.go = turn_.words + plan.flags();
      gather.arrivals.pull = [this](std::span<const std::byte* const> pieces) {
        return pull(pieces);
      };
    }
    return gather;
  }

  // Where no kernel has begun, nothing is awaited.
  Status pull(std::span<const std::byte* const> pieces) {
    PulledArrival from{.pullers = ready_.how.pullers,
                       .lda = call_.product.k,
                       .to = call_.gather.output,
                       .counters = turn_.counters};
    std::ranges::copy(pieces, std::begin(from.shard));
    multiplied_ = multiply(from);
    CudaDriver& cuda = *group_.cuda();
    TUTTI_TRY(cuda.record_event(turn_.pulled, call_.gather.stream));
    return cuda.wait_event(turn_.side, turn_.pulled);
  }

  Status multiply(const PulledArrival& pull) {
    if (captured()) TUTTI_TRY(group_.cuda()->wait_event(call_.gather.stream, turn_.met));
    const Arrival arrival{.plan = ready_.how.plan,
                          .own_a = call_.gather.input,
                          .own_lda = call_.product.k,
                          .flags = turn_.words,
                          .epoch = turn_.number,
                          .timeout_ns = timeout_ns_,
                          .abort = turn_.abort,
                          .failure = turn_.failure,
                          .pull = pull};
    MatmulEngine::ReadyGated product = ready_.product;
    product.tiling = ready_.how.tiling;
    return call_.engine.run(product, arrival, ready_.multiprocessors, call_.gather.stream);
  }

  // Behind the kernel, which leaves a copy within the GPU no SM, and in the caller's stream: the
  // other ranks, which wait for the end of the gather, need not wait for it.
  Status copy_own() {
    const Call& gather = call_.gather;
    const Sides sides = gather.sides(group_.rank(), group_.size());
    std::byte* const place = static_cast<std::byte*>(gather.output) + sides.place;
    if (sides.input == 0 || place == gather.input) return Status::ok();
    return group_.cuda()->copy_async(place, gather.input, sides.input, gather.stream);
  }

  CommunicatorImpl& group_;
  const FusedGather& call_;
  const ReadyFused& ready_;
  const ArrivalLane::Turn& turn_;
  std::uint64_t timeout_ns_ = 0;
  Status multiplied_ = Status::ok();
};

Status check_group(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_ASSIGN(const CudaCapture capture, group.cuda()->capture_of(call.gather.stream));
  const bool capturing = capture.state != CudaCapture::State::kNone;
  return group.check_arrivals(capturing).with_context("all_gather_matmul/fused");
}

// Pullers read A where it is.
bool is_pullable(CommunicatorImpl& group, const FusedGather& call) {
  if (group.heap() == nullptr) return false;
  const Sides sides = call.gather.sides(group.rank(), group.size());
  const auto segment = group.heap()->find(call.gather.input, sides.input);
  return segment != nullptr && segment->zero_copy() && !segment->copies_queue;
}

Result<ReadyFused> check_fused(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_TRY(check_group(group, call));
  auto product = call.engine.ready_gated(call.product, call.gather.input);
  TUTTI_TRY(product.status().with_context("all_gather_matmul/fused"));
  const int multiprocessors = multiprocessors_for(group, product->multiprocessors);
  std::optional<ArrivalTransport> forced = call.transport;
  if (forced != ArrivalTransport::kCopyEngine && !is_pullable(group, call)) {
    if (forced) return unsupported_fused("A has to be in symmetric memory to be pulled");
    forced = ArrivalTransport::kCopyEngine;
  }
  auto how = call.engine.transport(*product, {plan_of(group, call), multiprocessors, forced});
  TUTTI_TRY(how.status().with_context("all_gather_matmul/fused"));
  return ReadyFused{std::move(product).value(), multiprocessors, std::move(how).value()};
}

}  // namespace

int chunks_of_shard(std::size_t rows, std::size_t row_bytes, int shards) {
  const std::size_t fit = kMostArrivalFlags / static_cast<std::size_t>(shards);
  const std::size_t groups = ceil_div(rows, kLeastChunkRows);
  const std::size_t most = std::max(std::min({kMostChunks, fit, groups}), std::size_t{1});
  return static_cast<int>(std::clamp(rows * row_bytes / kLeastChunkBytes, std::size_t{1}, most));
}

Call by_copy_engine(Call gather) {
  gather.options.algorithm = "copy_engine";
  gather.options.sm_budget = 0;
  return gather;
}

Status check_fused_gather(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_TRY(check_group(group, call));
  TUTTI_ASSIGN(const Request request, group.question(by_copy_engine(call.gather)));
  TUTTI_ASSIGN(const OperationPlan gather, select({request, group.topology(), group.table()}));
  return check_gather(group, call, gather, request.capturing);
}

Result<FusedPlan> plan_fused(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_ASSIGN(const ReadyFused ready, check_fused(group, call));
  TUTTI_TRY(check_fused_gather(group, call));
  const bool pulls = ready.how.transport == ArrivalTransport::kPull;
  return FusedPlan{
      .config = fmt::format("{} {} {}", pulls ? "A pulled by" : "all_gather/copy_engine beside",
                            to_string(MatmulAlgorithm::kOwn),
                            config_text(ready.how.tiling, ready.product.call.problem.m)),
      .why = fmt::format("begins with the own rows, {} order; A {}",
                         to_string(ready.how.plan.order), ready.how.text())};
}

Status run_fused(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_ASSIGN(const ReadyFused ready, check_fused(group, call));
  const Stream stream = call.gather.stream;
  TUTTI_ASSIGN(ArrivalLane::Turn turn,
               group.begin_arrivals(stream, ready.how.plan.flags_of_shard()));
  const Status status = FusedRun(group, call, ready, turn).run();
  const Status ended = group.end_arrivals(std::move(turn), stream);
  return status.is_ok() ? ended : status;
}

}  // namespace tutti
