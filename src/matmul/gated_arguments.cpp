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

RowRange own_rows(const ArrivalChunks& chunks) {
  const auto row_of = [&](long long shard) {
    return static_cast<int>(std::min<long long>(chunks.m, shard * chunks.shard_rows));
  };
  return {row_of(chunks.own), row_of(chunks.own + 1)};
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
  // shards, counted in the order of arrival. The groups' keys grow along the order of rows.
  int key_at(int position) const {
    if (plan_.order == ArrivalOrder::kPlain) return 0;
    const SegmentedOrder& order = gate_.sweep;
    const int row = (position + order.rotation) % order.rows;
    unsigned last = 0;  // of the shards that the row needs: 0 is the own one
    for (int rank = 0; rank < arguments_.cluster; ++rank) {
      const TileRows rows = gate_.parts.rows(row * arguments_.cluster + rank, tiling_.tile->m);
      const int end = std::min(rows.row + tiling_.tile->m, rows.end);
      for (int at = rows.row; at < end; at = gate_.chunks.at(at).end) {
        const int shard = at / gate_.chunks.shard_rows;
        last = std::max(last,
                        static_cast<unsigned>((shard - plan_.own + plan_.shards) % plan_.shards));
      }
    }
    return static_cast<int>(plan_.order == ArrivalOrder::kFrontier ? std::bit_width(last) : last);
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
  const ArrivalPlan& plan = arrival.plan;
  if (plan.shards < 1 || plan.shards > kMostArrivalShards) {
    return invalid_arrival(
        fmt::format("{} shards: at least 1, at most {}", plan.shards, kMostArrivalShards));
  }
  if (plan.chunks < 1 || plan.chunks > kMostArrivalFlags / plan.shards) {
    return invalid_arrival(fmt::format("{} shards of {} chunks: at least 1, at most {} in all",
                                       plan.shards, plan.chunks, kMostArrivalFlags));
  }
  if (plan.own < 0 || plan.own >= plan.shards) {
    return invalid_arrival(fmt::format("own shard {} of {}", plan.own, plan.shards));
  }
  if (plan.order > ArrivalOrder::kFrontier) return invalid_arrival("unknown order");
  if (arrival.flags == nullptr) return invalid_arrival("null flags");
  if (arrival.failure == nullptr) return invalid_arrival("null failure");
  if (arrival.timeout_ns == 0) return invalid_arrival("a timeout of 0");
  if (arrival.replayed < 0 || (arrival.replayed > 0 && arrival.replay == nullptr)) {
    return invalid_arrival(fmt::format("{} replayed arrivals, null replay", arrival.replayed));
  }
  if (arrival.own_a == nullptr) return Status::ok();
  if (arrival.own_lda < call.problem.k) {
    return invalid_arrival(
        fmt::format("own_lda {} is less than k {}", arrival.own_lda, call.problem.k));
  }
  const std::size_t distance = arrival.own_lda * size_of(call.problem.dtype);
  if (reinterpret_cast<std::uintptr_t>(arrival.own_a) % kTmaAlignment != 0 ||
      distance % kTmaAlignment != 0 || distance > kMostTmaDistanceBytes) {
    return invalid_arrival(
        fmt::format("own_a and own_lda have to be multiples of {} bytes", kTmaAlignment));
  }
  return Status::ok();
}

ArrivalChunks chunks_of(const ArrivalPlan& plan, std::size_t m) {
  const std::size_t shard_rows = ceil_div(m, static_cast<std::size_t>(plan.shards));
  const std::size_t chunk_rows = ceil_div(shard_rows, static_cast<std::size_t>(plan.chunks));
  return {.m = static_cast<int>(m),
          .shard_rows = static_cast<int>(shard_rows),
          .chunk_rows = static_cast<int>(chunk_rows),
          .chunks = plan.chunks,
          .own = plan.own};
}

Status fill_gated_arguments(CudaDriver& cuda, const GatedMatmul& matmul,
                            OwnMatmulArguments& arguments, ArrivalGate& gate) {
  const auto& [call, tiling, arrival] = matmul;
  const MatmulProblem& problem = call.problem;
  const ArrivalPlan& plan = arrival.plan;
  TUTTI_TRY(fill_own_arguments(cuda, call, tiling, arguments));
  gate.chunks = chunks_of(plan, problem.m);
  gate.waits = {.flags = arrival.flags,
                .abort = arrival.abort,
                .failure = arrival.failure,
                .timeout_ns = arrival.timeout_ns,
                .epoch = arrival.epoch};
  gate.replayed = arrival.replay;
  gate.replays = arrival.replayed;
  gate.rounds_of_tries = rounds_within(arrival.timeout_ns, plan.shards * plan.chunks);
  const auto [own_begin, own_end] = own_rows(gate.chunks);
  const bool own_part = arrival.own_a != nullptr && own_end > own_begin;
  ArrivalSweep(tiling, arguments, gate, plan).fill(own_part);
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
