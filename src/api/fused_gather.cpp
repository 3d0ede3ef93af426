#include "api/fused_gather.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"
#include "drivers/cuda.hpp"
#include "executors/copy_engine/arrival_lane.hpp"
#include "topology/topology.hpp"

namespace tutti {
namespace {

// A chunk costs its copy engine a few microseconds. A short first chunk lets the first tiles that
// wait begin earlier.
constexpr std::size_t kLeastChunkBytes = std::size_t{4} << 20;
constexpr std::size_t kMostChunks = 4;

// A barrier kernel needs room, and so does a copy within the GPU, which is a kernel of the
// driver's. The matmul then leaves the two SMs of a cluster to them.
constexpr int kSpareForKernels = 2;

// The kernel waits longer than the all-gather does, which knows better what is missing.
constexpr std::chrono::milliseconds kGatePatience{2000};

struct Shards {
  std::size_t rows, row_bytes;
  int chunks;
};

Shards shards_of(const CommunicatorImpl& group, const FusedGather& call) {
  const std::size_t rows = call.product.m / static_cast<std::size_t>(group.size());
  const std::size_t row_bytes = call.product.k * size_of(call.product.dtype);
  return {rows, row_bytes, chunks_of_shard(rows, row_bytes, group.size())};
}

// What the kernel waits for; without the words, which a turn has.
Arrival arrival_of(const CommunicatorImpl& group, const FusedGather& call) {
  return {.plan = {.shards = group.size(),
                   .chunks = shards_of(group, call).chunks,
                   .own = group.rank(),
                   .order = call.order},
          .own_a = call.gather.input,
          .own_lda = call.product.k};
}

Call gather_in(const ArrivalLane::Turn& turn, const CommunicatorImpl& group,
               const FusedGather& call) {
  const Shards shards = shards_of(group, call);
  const std::size_t chunk_rows = ceil_div(shards.rows, static_cast<std::size_t>(shards.chunks));
  Call gather = call.gather;
  gather.stream = turn.side;
  gather.options.algorithm = "copy_engine";
  gather.options.sm_budget = 0;
  gather.arrivals = {.words = turn.words,
                     .value = turn.number,
                     .piece_bytes = shards.rows * shards.row_bytes,
                     .chunk_bytes = chunk_rows * shards.row_bytes,
                     .chunks = shards.chunks,
                     .with_own = call.with_own};
  return gather;
}

// SMs that the matmul leaves to others.
Result<int> spare_of(CommunicatorImpl& group, const PlannedOperation& gather) {
  const bool copies_own = gather.call.arrivals.with_own && !gather.in_place;
  const bool uses_kernels = !gather.plan.stream_barrier || gather.plan.staged || copies_own;
  const int sharers = group.topology().ranks_per_gpu;
  if (sharers <= 1) return uses_kernels ? kSpareForKernels : 0;
  // The matmuls of all ranks that share the GPU have room beside each other.
  TUTTI_ASSIGN(const CudaDeviceProperties gpu, group.cuda()->properties(group.device()));
  const int share = gpu.multiprocessors / sharers / kMatmulCluster * kMatmulCluster;
  return gpu.multiprocessors - std::max(share - kSpareForKernels, kMatmulCluster);
}

Status gather_and_multiply(CommunicatorImpl& group, const FusedGather& call,
                           const ArrivalLane::Turn& turn) {
  TUTTI_ASSIGN(PlannedOperation gather, group.prepare(gather_in(turn, group, call)));
  const std::chrono::nanoseconds patience =
      group.timeout_of(gather.operation).value + kGatePatience;
  const Result<int> spare = spare_of(group, gather);
  const Status started = spare.is_ok() ? group.start(gather) : spare.status();
  TUTTI_TRY(group.settle(gather, started));
  TUTTI_TRY(started);
  Arrival arrival = arrival_of(group, call);
  arrival.flags = turn.words;
  arrival.epoch = turn.number;
  arrival.timeout_ns = static_cast<std::uint64_t>(patience.count());
  arrival.abort = turn.abort;
  arrival.failure = turn.failure;
  return call.engine.run_gated(call.gather.stream, call.product, arrival, *spare);
}

Status unsupported_fused(std::string_view why) {
  return {StatusCode::kUnsupported, fmt::format("all_gather_matmul/fused: {}", why)};
}

Status check_fused(const CommunicatorImpl& group, const FusedGather& call) {
  if (group.cuda() == nullptr) return unsupported_fused("runs on GPUs");
  if (call.product.m % static_cast<std::size_t>(group.size()) != 0) {
    return unsupported_fused(
        fmt::format("M {} is not a multiple of {} ranks", call.product.m, group.size()));
  }
  TUTTI_ASSIGN(const CudaCapture capture, group.cuda()->capture_of(call.gather.stream));
  if (capture.state == CudaCapture::State::kNone) return Status::ok();
  return unsupported_fused("a captured constant cannot count calls: not in a stream capture");
}

}  // namespace

int chunks_of_shard(std::size_t rows, std::size_t row_bytes, int shards) {
  const std::size_t fit = kMostArrivalFlags / static_cast<std::size_t>(shards);
  const std::size_t most = std::min({kMostChunks, fit, std::max(rows, std::size_t{1})});
  return static_cast<int>(std::clamp(rows * row_bytes / kLeastChunkBytes, std::size_t{1}, most));
}

Result<MatmulPlan> plan_fused(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_TRY(check_fused(group, call));
  TUTTI_TRY(group.arrivals().status());
  return call.engine.plan_gated(call.product, arrival_of(group, call));
}

Status run_fused(CommunicatorImpl& group, const FusedGather& call) {
  TUTTI_TRY(plan_fused(group, call).status());
  TUTTI_ASSIGN(ArrivalLane* const lane, group.arrivals());
  TUTTI_ASSIGN(const ArrivalLane::Turn turn, lane->begin(call.gather.stream));
  const Status status = gather_and_multiply(group, call, turn);
  const Status ended = lane->end(call.gather.stream);
  return status.is_ok() ? ended : status;
}

}  // namespace tutti
