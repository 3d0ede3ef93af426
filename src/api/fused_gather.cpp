#include "api/fused_gather.hpp"

#include <fmt/format.h>

#include <algorithm>

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

struct Shards {
  std::size_t rows, row_bytes;
  int chunks;
};

Shards shards_of(const CommunicatorImpl& group, const FusedGather& call) {
  const std::size_t rows = ceil_div(call.product.m, static_cast<std::size_t>(group.size()));
  const std::size_t row_bytes = call.product.k * size_of(call.product.dtype);
  return {rows, row_bytes, chunks_of_shard(rows, row_bytes, group.size())};
}

Call gather_in(const ArrivalLane::Turn& turn, const Shards& shards, const FusedGather& call) {
  Call gather = by_copy_engine(call.gather);
  gather.stream = turn.side;
  const std::size_t chunk_rows = ceil_div(shards.rows, static_cast<std::size_t>(shards.chunks));
  gather.arrivals = {.words = turn.words,
                     .value = turn.number,
                     .piece_bytes = shards.rows * shards.row_bytes,
                     .chunk_bytes = chunk_rows * shards.row_bytes,
                     .output_bytes = call.gather.arrivals.output_bytes,
                     .chunks = shards.chunks,
                     .with_own = call.with_own,
                     .met = turn.met};
  return gather;
}

// What the kernel depends on must not need an SM, since it takes all of them; captured, it begins
// once the ranks have met. Where ranks share a GPU, which is for tests, it leaves some.
Status check_gather(const CommunicatorImpl& group, const FusedGather& call,
                    const OperationPlan& plan, bool captured) {
  const bool shared = group.topology().ranks_per_gpu > 1;
  const bool uneven = call.product.m % static_cast<std::size_t>(group.size()) != 0;
  if (plan.staged && uneven) {
    return unsupported_fused(
        "A has to be in symmetric memory, also that of ranks with fewer rows, or without");
  }
  if (shared) return Status::ok();
  if (plan.staged) return unsupported_fused("A has to be in symmetric memory");
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

Status gather_and_multiply(CommunicatorImpl& group, const FusedGather& call,
                           const MatmulEngine::ReadyGated& product, const ArrivalLane::Turn& turn) {
  const Shards shards = shards_of(group, call);
  TUTTI_ASSIGN(PlannedOperation gather, group.prepare(gather_in(turn, shards, call)));
  Status started = check_gather(group, call, gather.plan, gather.captured());
  if (started.is_ok()) started = group.start(gather);
  const Status settled = group.settle(gather, started);
  TUTTI_TRY(started);
  TUTTI_TRY(settled);
  const bool captured = turn.met != nullptr;
  if (captured) TUTTI_TRY(group.cuda()->wait_event(call.gather.stream, turn.met));
  std::chrono::nanoseconds patience = group.timeout_of(gather.operation).value;
  if (!captured) patience += kGatePatience;
  const Arrival arrival{.plan = {.shards = group.size(),
                                 .chunks = shards.chunks,
                                 .own = group.rank(),
                                 .order = call.order},
                        .own_a = call.gather.input,
                        .own_lda = call.product.k,
                        .flags = turn.words,
                        .epoch = turn.number,
                        .timeout_ns = static_cast<std::uint64_t>(patience.count()),
                        .abort = turn.abort,
                        .failure = turn.failure};
  return call.engine.run(product, arrival, multiprocessors_for(group, product.multiprocessors),
                         call.gather.stream);
}

Status check_group(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_ASSIGN(const CudaCapture capture, group.cuda()->capture_of(call.gather.stream));
  const bool capturing = capture.state != CudaCapture::State::kNone;
  return group.check_arrivals(capturing).with_context("all_gather_matmul/fused");
}

Result<MatmulEngine::ReadyGated> check_fused(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_TRY(check_group(group, call));
  auto product = call.engine.ready_gated(call.product, call.gather.input);
  TUTTI_TRY(product.status().with_context("all_gather_matmul/fused"));
  return product;
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

Result<MatmulPlan> plan_fused(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_ASSIGN(const MatmulEngine::ReadyGated product, check_fused(group, call));
  TUTTI_TRY(check_fused_gather(group, call));
  return MatmulPlan{
      .algorithm = std::string(to_string(MatmulAlgorithm::kOwn)),
      .config = config_text(product.tiling, product.call.problem.m),
      .why = fmt::format("begins with the own rows, {} order", to_string(call.order))};
}

Status run_fused(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_ASSIGN(const MatmulEngine::ReadyGated product, check_fused(group, call));
  const Stream stream = call.gather.stream;
  TUTTI_ASSIGN(ArrivalLane::Turn turn, group.begin_arrivals(stream, shards_of(group, call).chunks));
  const Status status = gather_and_multiply(group, call, product, turn);
  const Status ended = group.end_arrivals(std::move(turn), stream);
  return status.is_ok() ? ended : status;
}

}  // namespace tutti
