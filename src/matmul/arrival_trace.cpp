#include "matmul/arrival_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// -1 to 1, the same on every machine.
double unit_noise(std::uint64_t seed, int chunk) {
  const std::uint64_t word =
      WordHash().add(seed).add(static_cast<std::uint64_t>(chunk)).add(0).value();
  return static_cast<double>(word >> 11U) * 0x1p-52 - 1;
}

}  // namespace

ChunkRows rows_of_chunk(const ArrivalPlan& plan, std::size_t m, int chunk) {
  const ShardRows rows = shard_rows(plan, m);
  const auto shard = static_cast<std::size_t>(chunk / plan.chunks);
  const auto within = static_cast<std::size_t>(chunk % plan.chunks);
  const std::size_t end = std::min(m, (shard + 1) * rows.of_shard);
  const std::size_t first = shard * rows.of_shard + within * rows.of_chunk;
  return {.first = std::min(first, end), .last = std::min(first + rows.of_chunk, end)};
}

int chunk_of_row(const ArrivalPlan& plan, std::size_t m, std::size_t row) {
  const ShardRows rows = shard_rows(plan, m);
  const auto chunks = static_cast<std::size_t>(plan.chunks);
  return static_cast<int>(row / rows.of_shard * chunks + row % rows.of_shard / rows.of_chunk);
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
  if (plan.own < 0 || plan.own >= plan.shards) {
    return invalid_trace(fmt::format("own shard {}: there are {}", plan.own, plan.shards));
  }
  return Status::ok();
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
                     .bytes_per_chunk = shard_rows(plan, rows.m).of_chunk * rows.bytes_per_row,
                     .model = model};
  double us = model.start_us;
  for (int step = 1; step < plan.shards; ++step) {
    const int shard = (plan.own + step) % plan.shards;
    if (shard == model.straggler) us += model.straggler_us;
    for (int within = 0; within < plan.chunks; ++within) {
      const int chunk = shard * plan.chunks + within;
      const std::size_t bytes = rows_of_chunk(plan, rows.m, chunk).count() * rows.bytes_per_row;
      if (bytes == 0) continue;
      const double copy_us = static_cast<double>(bytes) / model.gigabytes_per_second / 1e3;
      us += model.operation_us + copy_us * (1 + model.jitter * unit_noise(model.seed, chunk));
      if (us * 1e3 > static_cast<double>(kMostArrivalNs)) {
        return invalid_trace(fmt::format("chunk {} arrives after more than 10 s", chunk));
      }
      trace.arrivals.push_back({.chunk = chunk,
                                .source = shard,
                                .bytes = bytes,
                                .ns = static_cast<std::uint64_t>(std::llround(us * 1e3))});
    }
  }
  return trace;
}

Status check_arrival_of(const ArrivalTrace& trace, const GatheredRows& rows) {
  const ArrivalPlan plan = trace.plan(ArrivalOrder::kPlain);
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(plan.shards * plan.chunks));
  for (const ArrivedChunk& each : trace.arrivals) {
    bytes[static_cast<std::size_t>(each.chunk)] = each.bytes;
  }
  for (int chunk = 0; chunk < plan.shards * plan.chunks; ++chunk) {
    if (chunk / plan.chunks == plan.own) continue;
    const std::uint64_t wanted = rows_of_chunk(plan, rows.m, chunk).count() * rows.bytes_per_row;
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
