#include "matmul/arrival_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti {
namespace {

Status invalid_trace(std::string text) { return {StatusCode::kInvalidArgument, std::move(text)}; }

struct ShardRows {
  std::size_t of_shard = 0, of_chunk = 0;
};
ShardRows shard_rows(const ArrivalPlan& plan, std::size_t m) {
  const std::size_t of_shard = ceil_div(m, static_cast<std::size_t>(plan.shards));
  return {of_shard, ceil_div(of_shard, static_cast<std::size_t>(plan.chunks))};
}

// Of a full k-group.
std::size_t group_bytes(const ArrivalPlan& plan, const GatheredRows& rows) {
  constexpr std::size_t kElement = 2;
  return k_group_columns(plan, ceil_div(rows.bytes_per_row, kElement)) * kElement;
}

std::uint64_t whole_chunk_bytes(const ArrivalPlan& plan, const GatheredRows& rows) {
  return shard_rows(plan, rows.m).of_chunk * std::min(group_bytes(plan, rows), rows.bytes_per_row);
}

std::uint64_t bytes_of(const ArrivalPlan& plan, const GatheredRows& rows, int flag) {
  const std::size_t of_group = group_bytes(plan, rows);
  const std::size_t first = static_cast<std::size_t>(flag % plan.k_groups) * of_group;
  const std::size_t left = rows.bytes_per_row - std::min(first, rows.bytes_per_row);
  return rows_of_chunk(plan, rows.m, flag).count() * std::min(of_group, left);
}

// The flags of the other shards in the order of arrival.
std::vector<int> flags_in_order(const ArrivalPlan& plan) {
  std::vector<int> flags;
  const ShardGroups groups = groups_of(plan);
  for (int group = 0; group < groups.groups; ++group) {
    for (int k_group = 0; k_group < plan.k_groups; ++k_group) {
      for (int position = groups.first(group); position < groups.first(group + 1); ++position) {
        const int shard = (plan.own + position) % plan.shards;
        for (int chunk = 0; chunk < plan.chunks; ++chunk) {
          flags.push_back((shard * plan.chunks + chunk) * plan.k_groups + k_group);
        }
      }
    }
  }
  return flags;
}

// -1 to 1, the same on every machine.
double unit_noise(std::uint64_t seed, int chunk) {
  const std::uint64_t word =
      WordHash().add(seed).add(static_cast<std::uint64_t>(chunk)).add(0).value();
  return static_cast<double>(word >> 11U) * 0x1p-52 - 1;
}

}  // namespace

ChunkRows rows_of_chunk(const ArrivalPlan& plan, std::size_t m, int flag) {
  const ShardRows rows = shard_rows(plan, m);
  const int chunk = flag / plan.k_groups;
  const auto shard = static_cast<std::size_t>(chunk / plan.chunks);
  const auto within = static_cast<std::size_t>(chunk % plan.chunks);
  const std::size_t end = std::min(m, (shard + 1) * rows.of_shard);
  const std::size_t first = shard * rows.of_shard + within * rows.of_chunk;
  return {.first = std::min(first, end), .last = std::min(first + rows.of_chunk, end)};
}

int chunk_of_row(const ArrivalPlan& plan, std::size_t m, std::size_t row) {
  const ShardRows rows = shard_rows(plan, m);
  const auto chunks = static_cast<std::size_t>(plan.chunks);
  return static_cast<int>(row / rows.of_shard * chunks + row % rows.of_shard / rows.of_chunk) *
         plan.k_groups;
}

ShardGroups groups_of(const ArrivalPlan& plan) {
  const int others = std::max(plan.shards - 1, 1);
  return {.shards = plan.shards, .groups = plan.shard_groups == 0 ? others : plan.shard_groups};
}

Status check_arrival_plan(const ArrivalPlan& plan) {
  if (plan.shards < 1 || plan.shards > kMostArrivalShards) {
    return invalid_trace(
        fmt::format("{} shards: not between 1 and {}", plan.shards, kMostArrivalShards));
  }
  const int most = kMostArrivalFlags / plan.shards;
  if (plan.chunks < 1 || plan.chunks > most) {
    return invalid_trace(
        fmt::format("{} chunks per shard: not between 1 and {}", plan.chunks, most));
  }
  if (plan.k_groups < 1 || plan.k_groups > most / plan.chunks) {
    return invalid_trace(fmt::format("{} k-groups of {} chunks per shard: not between 1 and {}",
                                     plan.k_groups, plan.chunks, most / plan.chunks));
  }
  const int others = std::max(plan.shards - 1, 1);
  if (plan.shard_groups < 0 || plan.shard_groups > others) {
    return invalid_trace(
        fmt::format("{} groups of shards: not between 0 and {}", plan.shard_groups, others));
  }
  if (plan.order > ArrivalOrder::kFrontier) return invalid_trace("unknown order");
  if (plan.shard_groups != 0 && plan.order != ArrivalOrder::kRotated) {
    return invalid_trace("only the rotated order has groups of shards");
  }
  if (plan.own < 0 || plan.own >= plan.shards) {
    return invalid_trace(fmt::format("own shard {}: there are {}", plan.own, plan.shards));
  }
  return Status::ok();
}

// Measured: 2 H200s; 4 H200s, each of which reads 25, 50 and 101 MB in 130, 235 and 365 us. Why
// copy engines take so long to start with more than two ranks is not known.
ArrivalModel copy_engine_model(int ranks) {
  ArrivalModel model;
  if (ranks > 2) {
    model.start_us = 45;
    model.gigabytes_per_second = 290;
  }
  return model;
}

// Measured: 2 H200s; 4 H200s, each of which pulls 25, 50 and 101 MB in 120, 270 and 500 us.
ArrivalModel pulled_arrival_model(int pullers, int ranks) {
  constexpr double kOfOneBlock = 22;  // GB/s over NVLink
  constexpr double kOfSeveral = 200;
  ArrivalModel model{.operation_us = 0};
  if (ranks > 2) model.gigabytes_per_second = kOfSeveral;
  model.gigabytes_per_second = std::min(model.gigabytes_per_second, pullers * kOfOneBlock);
  return model;
}

Status check_arrival_model(const ArrivalModel& model, int shards) {
  constexpr double kMostUs = 1e6, kMostRate = 1e6;
  const auto within = [](double value, double least, double most) {
    return value >= least && value <= most;  // never of what is no number
  };
  if (!within(model.start_us, 0, kMostUs) || !within(model.operation_us, 0, kMostUs) ||
      !within(model.straggler_us, 0, kMostUs)) {
    return invalid_trace("a model's times are 0 to 1000000 us");
  }
  if (!within(model.gigabytes_per_second, 1e-3, kMostRate)) {
    return invalid_trace("a model's gigabytes_per_second is 0.001 to 1000000");
  }
  if (!within(model.jitter, 0, 1)) return invalid_trace("a model's jitter is 0 to 1");
  if (model.straggler < -1 || model.straggler >= shards) {
    return invalid_trace(
        fmt::format("straggler {}: there is no such shard, of {}", model.straggler, shards));
  }
  return Status::ok();
}

Result<ArrivalTrace> modelled_arrival(const ArrivalPlan& plan, const GatheredRows& rows,
                                      const ArrivalModel& model, std::string_view machine) {
  TUTTI_TRY(check_arrival_plan(plan));
  TUTTI_TRY(check_arrival_model(model, plan.shards));
  if (rows.m > kMostBytes || rows.bytes_per_row > kMostBytes / std::max<std::size_t>(1, rows.m)) {
    return invalid_trace(fmt::format("{} rows of {} bytes", rows.m, rows.bytes_per_row));
  }
  ArrivalTrace trace{.machine = std::string(machine),
                     .ranks = plan.shards,
                     .own = plan.own,
                     .chunks_per_shard = plan.chunks,
                     .k_groups = plan.k_groups,
                     .shard_groups = plan.shard_groups,
                     .bytes_per_chunk = whole_chunk_bytes(plan, rows),
                     .model = model};
  double us = model.start_us;
  bool late = false;  // the straggler has begun
  for (const int flag : flags_in_order(plan)) {
    const int shard = flag / plan.flags_of_shard();
    if (shard == model.straggler && !std::exchange(late, true)) us += model.straggler_us;
    const std::uint64_t bytes = bytes_of(plan, rows, flag);
    if (bytes == 0) continue;
    const double copy_us = static_cast<double>(bytes) / model.gigabytes_per_second / 1e3;
    us += model.operation_us + copy_us * (1 + model.jitter * unit_noise(model.seed, flag));
    if (us * 1e3 > static_cast<double>(kMostArrivalNs)) {
      return invalid_trace(fmt::format("chunk {} arrives after more than 10 s", flag));
    }
    trace.arrivals.push_back({.chunk = flag,
                              .source = shard,
                              .bytes = bytes,
                              .ns = static_cast<std::uint64_t>(std::llround(us * 1e3))});
  }
  return trace;
}

Status check_arrival_of(const ArrivalTrace& trace, const GatheredRows& rows) {
  const ArrivalPlan plan = trace.plan(ArrivalOrder::kRotated);
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(plan.flags()));
  for (const ArrivedChunk& each : trace.arrivals) {
    bytes[static_cast<std::size_t>(each.chunk)] = each.bytes;
  }
  for (int chunk = 0; chunk < plan.flags(); ++chunk) {
    if (chunk / plan.flags_of_shard() == plan.own) continue;
    const std::uint64_t wanted = bytes_of(plan, rows, chunk);
    const std::uint64_t there = bytes[static_cast<std::size_t>(chunk)];
    if (there == wanted) continue;
    return invalid_trace(fmt::format(
        "the trace is of another A: its chunk {} has {} bytes, that of {} rows of {} bytes has {}",
        chunk, there, rows.m, rows.bytes_per_row, wanted));
  }
  return Status::ok();
}

std::vector<ReplayedArrival> replay_of(const ArrivalTrace& trace) {
  std::vector<ReplayedArrival> replay;
  replay.reserve(trace.arrivals.size());
  for (const ArrivedChunk& each : trace.arrivals) {
    replay.push_back({.ns = each.ns, .chunk = each.chunk});
  }
  return replay;
}

}  // namespace tutti
