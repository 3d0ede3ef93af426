#include "matmul/gated_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <climits>

#include "base/names.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "drivers/tensor_map.hpp"
#include "matmul/own_arguments.hpp"

namespace tutti {
namespace {

constexpr Name<ArrivalOrder> kArrivalOrders[] = {{ArrivalOrder::kPlain, "plain"},
                                                 {ArrivalOrder::kRotated, "rotated"},
                                                 {ArrivalOrder::kFrontier, "frontier"}};

Status invalid_arrival(std::string_view text) {
  return {StatusCode::kInvalidArgument, fmt::format("gated matmul: {}", text)};
}

// How often 2^24 tries at a barrier may pass while a gate waits for each of its flags. So many
// tries take more than 100 ms.
int rounds_within(std::uint64_t timeout_ns, int flags) {
  constexpr std::uint64_t kLeastRoundNs = 100'000'000;
  const std::uint64_t each = timeout_ns / kLeastRoundNs + 1;
  const auto most = static_cast<std::uint64_t>(INT_MAX / (kMostArrivalFlags + 1));
  return static_cast<int>(std::min(each, most)) * (flags + 1);
}

struct OwnRows {
  int begin, end;
};

OwnRows own_rows(const ArrivalChunks& chunks) {
  const auto row_of = [&](long long shard) {
    return static_cast<int>(std::min<long long>(chunks.m, shard * chunks.shard_rows));
  };
  return {row_of(chunks.own), row_of(chunks.own + 1)};
}

bool tma_takes(const void* matrix, std::size_t distance_bytes) {
  return reinterpret_cast<std::uintptr_t>(matrix) % kTmaAlignment == 0 &&
         distance_bytes % kTmaAlignment == 0 && distance_bytes <= kMostTmaDistanceBytes;
}

Status check_pull(const CheckedMatmul& call, const Arrival& arrival) {
  const ArrivalPlan& plan = arrival.plan;
  const PulledArrival& pull = arrival.pull;
  const MatmulProblem& problem = call.problem;
  if (pull.pullers < 0 || pull.pullers % kMatmulCluster != 0) {
    return invalid_arrival(
        fmt::format("{} pullers: a multiple of {}", pull.pullers, kMatmulCluster));
  }
  if (plan.shards < 2 || plan.chunks != 1 || arrival.replayed > 0) {
    return invalid_arrival("pullers bring two or more shards of one chunk, and replay nothing");
  }
  if (pull.counters == nullptr) return invalid_arrival("null counters");
  if (pull.to == nullptr || pull.to != call.a) return invalid_arrival("pullers bring the call's A");
  // They copy units of 16 bytes.
  if (problem.k * size_of(problem.dtype) % kTmaAlignment != 0) {
    return invalid_arrival(
        fmt::format("pullers need rows of a multiple of {} bytes", kTmaAlignment));
  }
  const std::size_t distance = pull.lda * size_of(problem.dtype);
  for (int shard = 0; shard < plan.shards; ++shard) {
    const void* const from = pull.shard[shard];
    if (shard == plan.own) continue;
    if (from == nullptr || pull.lda < problem.k || !tma_takes(from, distance)) {
      return invalid_arrival(fmt::format(
          "shard {} has to be at a multiple of {} bytes, and its rows multiples apart, at least k",
          shard, kTmaAlignment));
    }
  }
  return Status::ok();
}

ArrivalPull pull_of(const CheckedMatmul& call, const Arrival& arrival) {
  const PulledArrival& from = arrival.pull;
  const auto pitch = [&](std::size_t elements) {
    return static_cast<std::int64_t>(elements * size_of(call.problem.dtype));
  };
  ArrivalPull pull{.to = static_cast<std::byte*>(from.to),
                   .shard_pitch = pitch(from.lda),
                   .pitch = pitch(call.problem.lda),
                   .counters = from.counters,
                   .groups = groups_of(arrival.plan),
                   .pullers = from.pullers,
                   .columns = static_cast<int>(call.problem.k)};
  std::ranges::transform(from.shard, pull.shard,
                         [](const void* shard) { return static_cast<const std::byte*>(shard); });
  return pull;
}

// Places of rows: which of them the kernel computes where, and what they wait for.
class ArrivalSweep {
 public:
  ArrivalSweep(const MatmulTiling& tiling, const OwnMatmulArguments& arguments, ArrivalGate& gate,
               const ArrivalPlan& plan)
      : tiling_(tiling), arguments_(arguments), gate_(gate), plan_(plan) {}

  void fill(bool own_part) {
    fill_parts(own_part);
    SegmentedOrder& order = gate_.sweep;
    order.rows = ceil_div(blocks_, arguments_.cluster);
    order.wide_rows =
        tiling_.narrow == nullptr ? order.rows : std::min(tiling_.wide_rows, order.rows);
    if (plan_.order != ArrivalOrder::kPlain) {
      // The first row of tiles without rows of the shard before the own one. A row of tiles that
      // has rows of both waits for the shard that comes last, and is last.
      order.rotation = ceil_div(own_block_, arguments_.cluster) % order.rows;
    }
    for (int begin = 0; begin < order.rows;) {
      const int key = key_at(begin);
      int end = begin + 1;
      while (end < order.rows && end != order.wide_rows && key_at(end) == key) ++end;
      add_segment(begin, end);
      begin = end;
    }
  }

 private:
  static int ceil_div(int a, int b) { return (a + b - 1) / b; }

  void fill_parts(bool own_part) {
    const int tile_rows = tiling_.tile->m;
    const int m = gate_.chunks.m;
    const auto [own_begin, own_end] = own_rows(gate_.chunks);
    RowParts& parts = gate_.parts;
    own_block_ = ceil_div(own_begin, tile_rows);
    if (own_part) {
      parts = {.end = {own_begin, own_end, m}, .first_block = {0, own_block_, 0}};
      parts.first_block[2] = own_block_ + ceil_div(own_end - own_begin, tile_rows);
      blocks_ = parts.first_block[2] + ceil_div(m - own_end, tile_rows);
    } else {
      blocks_ = ceil_div(m, tile_rows);
      parts = {.end = {m, m, m}, .first_block = {0, blocks_, blocks_}};
    }
  }

  // Rows with the same key are swept together: those that have to wait for the same group of
  // shards, counted in the order of arrival. The keys grow along the order of rows.
  int key_at(int position) const {
    if (plan_.order == ArrivalOrder::kPlain) return 0;
    const SegmentedOrder& order = gate_.sweep;
    const int row = (position + order.rotation) % order.rows;
    int last = 0;  // of the shards that the row needs: 0 is the own one
    for (int rank = 0; rank < arguments_.cluster; ++rank) {
      const TileRows rows = gate_.parts.rows(row * arguments_.cluster + rank, tiling_.tile->m);
      const int end = std::min(rows.row + tiling_.tile->m, rows.end);
      for (int at = rows.row; at < end; at = gate_.chunks.at(at).end) {
        const int shard = at / gate_.chunks.shard_rows;
        last = std::max(last, (shard - plan_.own + plan_.shards) % plan_.shards);
      }
    }
    if (plan_.order == ArrivalOrder::kFrontier) return std::bit_width(static_cast<unsigned>(last));
    return last == 0 ? 0 : 1 + groups_of(plan_).at(last);
  }

  void add_segment(int begin, int end) {
    SegmentedOrder& order = gate_.sweep;
    const GroupedOrder& of_width =
        begin < order.wide_rows ? arguments_.order.wide : arguments_.order.narrow;
    GroupedOrder sweep = {
        .rows = end - begin, .columns = of_width.columns, .group = of_width.group};
    if (plan_.order != ArrivalOrder::kPlain) {  // groups of about the same height
      sweep.group = ceil_div(sweep.rows, ceil_div(sweep.rows, sweep.group));
    }
    order.segment[order.segments++] = {order.tiles, begin, sweep};
    order.tiles += sweep.count();
  }

  const MatmulTiling& tiling_;
  const OwnMatmulArguments& arguments_;
  ArrivalGate& gate_;
  const ArrivalPlan& plan_;
  int blocks_ = 0;     // blocks' rows of tiles
  int own_block_ = 0;  // the first that has no rows before the own shard
};

}  // namespace

std::string_view to_string(ArrivalOrder order) {
  return name_of<ArrivalOrder>(kArrivalOrders, order);
}

Result<ArrivalOrder> parse_arrival_order(std::string_view text) {
  return parse_name<ArrivalOrder>(kArrivalOrders, {}, "order", text);
}

Status check_arrival(const CheckedMatmul& call, const Arrival& arrival) {
  TUTTI_TRY(check_arrival_plan(arrival.plan).with_context("gated matmul"));
  if (arrival.flags == nullptr) return invalid_arrival("null flags");
  if (arrival.failure == nullptr) return invalid_arrival("null failure");
  if (arrival.timeout_ns == 0) return invalid_arrival("a timeout of 0");
  if (arrival.replayed < 0 || (arrival.replayed > 0 && arrival.replay == nullptr)) {
    return invalid_arrival(fmt::format("{} replayed arrivals, null replay", arrival.replayed));
  }
  if (arrival.pull.pullers != 0) TUTTI_TRY(check_pull(call, arrival));
  if (arrival.own_a == nullptr) return Status::ok();
  if (arrival.own_lda < call.problem.k) {
    return invalid_arrival(
        fmt::format("own_lda {} is less than k {}", arrival.own_lda, call.problem.k));
  }
  const std::size_t distance = arrival.own_lda * size_of(call.problem.dtype);
  if (!tma_takes(arrival.own_a, distance)) {
    return invalid_arrival(
        fmt::format("own_a and own_lda have to be multiples of {} bytes", kTmaAlignment));
  }
  return Status::ok();
}

ArrivalChunks chunks_of(const ArrivalPlan& plan, std::size_t m, std::size_t k) {
  const std::size_t shard_rows = ceil_div(m, static_cast<std::size_t>(plan.shards));
  const std::size_t chunk_rows = ceil_div(shard_rows, static_cast<std::size_t>(plan.chunks));
  return {.m = static_cast<int>(m),
          .shard_rows = static_cast<int>(shard_rows),
          .chunk_rows = static_cast<int>(chunk_rows),
          .chunks = plan.chunks,
          .own = plan.own,
          .k_groups = plan.k_groups,
          .k_group = static_cast<int>(k_group_columns(plan, k))};
}

void fill_sweep(const MatmulTiling& tiling, const OwnMatmulArguments& arguments,
                const ArrivalPlan& plan, bool own_part, ArrivalGate& gate) {
  ArrivalSweep(tiling, arguments, gate, plan).fill(own_part);
}

Status fill_gated_arguments(CudaDriver& cuda, const GatedMatmul& matmul,
                            OwnMatmulArguments& arguments, ArrivalGate& gate) {
  const auto& [call, tiling, arrival] = matmul;
  const MatmulProblem& problem = call.problem;
  const ArrivalPlan& plan = arrival.plan;
  TUTTI_TRY(fill_own_arguments(cuda, call, tiling, arguments));
  gate.chunks = chunks_of(plan, problem.m, problem.k);
  gate.waits = {.flags = arrival.flags,
                .abort = arrival.abort,
                .failure = arrival.failure,
                .timeout_ns = arrival.timeout_ns,
                .epoch = arrival.epoch};
  gate.replayed = arrival.replay;
  gate.replays = arrival.replayed;
  if (arrival.pull.pullers > 0) gate.pulled = pull_of(call, arrival);
  gate.rounds_of_tries = rounds_within(arrival.timeout_ns, plan.flags());
  const auto [own_begin, own_end] = own_rows(gate.chunks);
  const bool own_part = arrival.own_a != nullptr && own_end > own_begin;
  fill_sweep(tiling, arguments, plan, own_part, gate);
  if (!own_part) return Status::ok();
  return cuda.encode_tensor_map({.dtype = problem.dtype,
                                 .address = arrival.own_a,
                                 .columns = problem.k,
                                 .rows = static_cast<std::size_t>(own_end - own_begin),
                                 .leading = arrival.own_lda,
                                 .box_columns = kMatmulTileK,
                                 .box_rows = tiling.tile->m},
                                gate.own);
}

}  // namespace tutti
