#include "matmul/arrival_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr ArrivalPlan kFourShards{.shards = 4, .chunks = 2, .own = 1};

ArrivalTrace modelled(const ArrivalPlan& plan, const GatheredRows& rows,
                      const ArrivalModel& model) {
  auto trace = modelled_arrival(plan, rows, model, "8 x H200");
  EXPECT_TRUE(trace.is_ok()) << trace.status().to_string();
  return trace.is_ok() ? *trace : ArrivalTrace{};
}

TEST(ArrivalChunks, CutTheRowsByCeilDividedShards) {
  // 10 rows in shards of 3, 3, 3 and 1, and these in chunks of 2 and 1.
  std::vector<ChunkRows> rows;
  rows.reserve(8);
  for (int chunk = 0; chunk < 8; ++chunk) rows.push_back(rows_of_chunk(kFourShards, 10, chunk));
  EXPECT_THAT(rows, testing::ElementsAre(ChunkRows{0, 2}, ChunkRows{2, 3}, ChunkRows{3, 5},
                                         ChunkRows{5, 6}, ChunkRows{6, 8}, ChunkRows{8, 9},
                                         ChunkRows{9, 10}, ChunkRows{10, 10}));
}

TEST(ArrivalChunks, HaveEveryRowOnce) {
  for (const ArrivalPlan& plan : {kFourShards, ArrivalPlan{.shards = 7, .chunks = 3},
                                  ArrivalPlan{.shards = 1, .chunks = 5}}) {
    for (std::size_t m = 1; m < 60; ++m) {
      std::size_t next = 0;
      for (int chunk = 0; chunk < plan.shards * plan.chunks; ++chunk) {
        const ChunkRows rows = rows_of_chunk(plan, m, chunk);
        if (rows.count() == 0) continue;
        ASSERT_EQ(rows.first, next) << m;
        for (; next < rows.last; ++next) ASSERT_EQ(chunk_of_row(plan, m, next), chunk) << m;
      }
      ASSERT_EQ(next, m);
    }
  }
}

TEST(ModelledArrival, IsOneCopyAfterTheOther) {
  // 4000 rows of 1000 bytes: chunks of 500 rows take 5 us at 100 GB/s, and 2 us each besides.
  const ArrivalTrace trace =
      modelled(kFourShards, {.m = 4000, .bytes_per_row = 1000},
               {.start_us = 6, .operation_us = 2, .gigabytes_per_second = 100, .jitter = 0});
  EXPECT_EQ(trace.bytes_per_chunk, 500000u);
  EXPECT_EQ(trace.arrivals, (std::vector<ArrivedChunk>{{4, 2, 500000, 13000},
                                                       {5, 2, 500000, 20000},
                                                       {6, 3, 500000, 27000},
                                                       {7, 3, 500000, 34000},
                                                       {0, 0, 500000, 41000},
                                                       {1, 0, 500000, 48000}}));
  EXPECT_DOUBLE_EQ(trace.last_us(), 48);
}

TEST(ModelledArrival, OfAGroupOfShardsComesKGroupByKGroup) {
  // 3 stages of 64 columns in 2 k-groups: 256 and 104 bytes of a row. Groups of 1 and 2 shards.
  const ArrivalPlan plan{.shards = 4, .own = 1, .k_groups = 2, .shard_groups = 2};
  const ArrivalTrace trace =
      modelled(plan, {.m = 400, .bytes_per_row = 360},
               {.start_us = 0, .operation_us = 1, .gigabytes_per_second = 1000, .jitter = 0});
  std::vector<std::array<std::uint64_t, 2>> flags;
  for (const ArrivedChunk& each : trace.arrivals) {
    flags.push_back({static_cast<std::uint64_t>(each.chunk), each.bytes});
    EXPECT_EQ(each.source, each.chunk / 2);
  }
  EXPECT_THAT(flags,
              testing::ElementsAre(
                  std::array<std::uint64_t, 2>{4, 25600}, std::array<std::uint64_t, 2>{5, 10400},
                  std::array<std::uint64_t, 2>{6, 25600}, std::array<std::uint64_t, 2>{0, 25600},
                  std::array<std::uint64_t, 2>{7, 10400}, std::array<std::uint64_t, 2>{1, 10400}));
  EXPECT_EQ(trace.bytes_per_chunk, 25600u);
  EXPECT_EQ(trace.plan(ArrivalOrder::kRotated), plan);
  EXPECT_TRUE(check_arrival_of(trace, {.m = 400, .bytes_per_row = 360}).is_ok());
  EXPECT_FALSE(check_arrival_of(trace, {.m = 400, .bytes_per_row = 400}).is_ok());
  const auto again = arrival_trace_from_json_text(to_json_text(trace), "trace.json");
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(*again, trace);
}

TEST(ModelledArrival, PullersShareTheLink) {
  EXPECT_EQ(pulled_arrival_model(8).gigabytes_per_second, 8 * 22);
  EXPECT_EQ(pulled_arrival_model(20).gigabytes_per_second, 359);
  EXPECT_EQ(pulled_arrival_model(20, 4).gigabytes_per_second, 200);
  EXPECT_EQ(pulled_arrival_model(8).operation_us, 0);
}

TEST(ModelledArrival, AStragglerAndAllAfterItAreLate) {
  ArrivalModel model{.jitter = 0};
  const GatheredRows rows{.m = 4000, .bytes_per_row = 1000};
  const ArrivalTrace usual = modelled(kFourShards, rows, model);
  model.straggler = 3;
  model.straggler_us = 20;
  const ArrivalTrace late = modelled(kFourShards, rows, model);
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_EQ(late.arrivals[k].ns, usual.arrivals[k].ns + (k < 2 ? 0u : 20000u)) << k;
  }
}

TEST(ModelledArrival, JitterIsWithinItsBoundAndOfItsSeed) {
  const ArrivalPlan plan{.shards = 16, .chunks = 4};
  const GatheredRows rows{.m = 16 * 4 * 1000, .bytes_per_row = 1000};
  ArrivalModel model{.start_us = 0, .operation_us = 0, .gigabytes_per_second = 1, .jitter = 0.05};
  const ArrivalTrace trace = modelled(plan, rows, model);
  std::uint64_t before = 0;
  double least = 1e9, most = 0;
  for (const ArrivedChunk& each : trace.arrivals) {
    const auto us = static_cast<double>(each.ns - before) / 1e3;
    least = std::min(least, us);
    most = std::max(most, us);
    before = each.ns;
  }
  EXPECT_GE(least, 949.99);
  EXPECT_LE(most, 1050.01);
  EXPECT_GT(most - least, 60);  // of 100, among 60 copies
  EXPECT_EQ(modelled(plan, rows, model), trace);
  ++model.seed;
  EXPECT_NE(modelled(plan, rows, model).arrivals, trace.arrivals);
}

TEST(ModelledArrival, EmptyChunksDoNotArrive) {
  const ArrivalTrace trace = modelled({.shards = 4, .chunks = 2}, {.m = 2, .bytes_per_row = 8}, {});
  ASSERT_EQ(trace.arrivals.size(), 1u);
  EXPECT_EQ(trace.arrivals[0].chunk, 2);
  EXPECT_TRUE(modelled({.shards = 1}, {.m = 2, .bytes_per_row = 8}, {}).arrivals.empty());
}

TEST(ModelledArrival, WhatCannotBeIsRefused) {
  const auto message = [](const ArrivalPlan& plan, const ArrivalModel& model) {
    const auto trace = modelled_arrival(plan, {.m = 8, .bytes_per_row = 1 << 20}, model, "");
    EXPECT_EQ(trace.status().code(), StatusCode::kInvalidArgument);
    return trace.status().message();
  };
  EXPECT_EQ(message({.shards = 17}, {}), "17 shards: not between 1 and 16");
  EXPECT_EQ(message({.chunks = 0}, {}), "0 chunks per shard: not between 1 and 128");
  EXPECT_EQ(message({.shards = 2, .own = 2}, {}), "own shard 2: there are 2");
  EXPECT_EQ(message({}, {.start_us = -1}), "a model's times are 0 to 1000000 us");
  EXPECT_EQ(message({}, {.gigabytes_per_second = 0}),
            "a model's gigabytes_per_second is 0.001 to 1000000");
  EXPECT_EQ(message({}, {.jitter = 1.5}), "a model's jitter is 0 to 1");
  EXPECT_EQ(message({}, {.straggler = 1}), "straggler 1: there is no such shard, of 1");
  const auto huge = modelled_arrival({.shards = 2}, {.m = 1 << 20, .bytes_per_row = 1 << 20},
                                     {.gigabytes_per_second = 0.001}, "");
  EXPECT_EQ(huge.status().message(), "chunk 1 arrives after more than 10 s");
}

TEST(ArrivalTraceJson, SurvivesAFile) {
  ArrivalTrace trace = modelled(kFourShards, {.m = 4001, .bytes_per_row = 1000},
                                {.straggler = 2, .straggler_us = 20.5});
  const auto again = arrival_trace_from_json_text(to_json_text(trace), "trace.json");
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(*again, trace);
  trace.model.reset();
  trace.machine = "a \"machine\"";
  const auto measured = arrival_trace_from_json_text(to_json_text(trace), "trace.json");
  ASSERT_TRUE(measured.is_ok()) << measured.status().to_string();
  EXPECT_EQ(*measured, trace);
}

TEST(ArrivalTraceJson, IsALineForEachChunk) {
  const ArrivalTrace trace{.machine = "vm",
                           .ranks = 2,
                           .bytes_per_chunk = 8,
                           .arrivals = {{.chunk = 1, .source = 1, .bytes = 8, .ns = 70}}};
  EXPECT_EQ(to_json_text(trace),
            "{\"schema\": \"tutti.arrival/1\", \"kind\": \"measured\", \"machine\": \"vm\",\n"
            " \"ranks\": 2, \"own\": 0, \"chunks_per_shard\": 1, \"bytes_per_chunk\": 8,\n"
            " \"arrivals\": [\n"
            "  {\"chunk\":1,\"source\":1,\"bytes\":8,\"ns\":70}\n]}\n");
}

// A valid trace, of two shards with two chunks each, but for one text in it.
std::string refused_with(const std::string& text, const std::string& instead) {
  std::string json =
      R"({"schema": "tutti.arrival/1", "kind": "measured", "machine": "vm", "ranks": 2, "own": 0,
          "chunks_per_shard": 2, "bytes_per_chunk": 8, "arrivals": [
          {"chunk": 2, "source": 1, "bytes": 8, "ns": 70},
          {"chunk": 3, "source": 1, "bytes": 7, "ns": 80}]})";
  EXPECT_TRUE(arrival_trace_from_json_text(json, "t.json").is_ok());
  const std::size_t at = json.find(text);
  EXPECT_NE(at, std::string::npos) << text;
  json.replace(at, text.size(), instead);
  const auto trace = arrival_trace_from_json_text(json, "t.json");
  EXPECT_EQ(trace.status().code(), StatusCode::kInvalidArgument);
  const std::string start = "t.json does not hold an arrival trace: ";
  const std::string message(trace.status().message());
  EXPECT_THAT(message, testing::StartsWith(start));
  return message.substr(std::min(start.size(), message.size()));
}

TEST(ArrivalTraceJson, WhatIsWrongIsNamed) {
  EXPECT_EQ(refused_with("arrival/1", "arrival/2"), "its schema is not tutti.arrival/1");
  EXPECT_EQ(refused_with("measured", "guessed"), "its kind is neither measured nor modelled");
  EXPECT_THAT(refused_with("measured", "modelled"), HasSubstr("'model' not found"));
  EXPECT_THAT(refused_with("\"ranks\": 2", "\"ranks\": 2.5"),
              HasSubstr("ranks must be an integer"));
  EXPECT_EQ(refused_with("\"ranks\": 2", "\"ranks\": 17"), "17 shards: not between 1 and 16");
  EXPECT_EQ(refused_with("_shard\": 2", "_shard\": 65"),
            "65 chunks per shard: not between 1 and 64");
  EXPECT_EQ(refused_with("\"measured\"",
                         "\"modelled\", \"model\": {\"start_us\": -1, \"operation_us\": 1, "
                         "\"gigabytes_per_second\": 1, \"jitter\": 0, \"seed\": 1}"),
            "a model's times are 0 to 1000000 us");
  EXPECT_EQ(refused_with("\"own\": 0", "\"own\": 2"), "own shard 2: there are 2");
  EXPECT_EQ(refused_with("\"own\": 0", "\"own\": 1"),
            "chunk 2: it is of the own shard, which does not arrive");
  EXPECT_EQ(refused_with("\"chunk\": 2", "\"chunk\": 4"), "chunk 4: there is no such chunk");
  EXPECT_EQ(refused_with("\"chunk\": 2", "\"chunk\": -1"), "chunk -1: there is no such chunk");
  EXPECT_EQ(refused_with("\"chunk\": 2", "\"chunk\": 3"), "chunk 3: it arrives twice");
  EXPECT_EQ(refused_with("\"source\": 1", "\"source\": 0"), "chunk 2: it is of shard 1, not 0");
  EXPECT_EQ(refused_with("\"bytes\": 7", "\"bytes\": 9"),
            "chunk 3: 9 bytes, where a whole chunk has 8");
  EXPECT_EQ(refused_with("\"ns\": 80", "\"ns\": 69"),
            "chunk 3: it arrives before the chunk that is listed before it");
  EXPECT_EQ(refused_with("\"ns\": 80", "\"ns\": 10000000001"),
            "chunk 3: it arrives after more than 10 s");
  EXPECT_THAT(refused_with("\"ns\": 80", "\"ns\": -1"), HasSubstr("ns must be an integer"));
  EXPECT_THAT(refused_with("[", "7, \"b\": ["), HasSubstr("type"));
  EXPECT_THAT(refused_with("}]}", "}]"),
              AllOf(HasSubstr("line "), HasSubstr("syntax error"), Not(HasSubstr("exception"))));
}

TEST(ArrivalTrace, IsOfOneShape) {
  const GatheredRows rows{.m = 10, .bytes_per_row = 8};
  const ArrivalTrace trace = modelled(kFourShards, rows, {});
  EXPECT_TRUE(check_arrival_of(trace, rows).is_ok());
  const Status other = check_arrival_of(trace, {.m = 9, .bytes_per_row = 8});
  EXPECT_EQ(other.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(other.message(),
            "the trace is of another A: its chunk 6 has 8 bytes, that of 9 rows of 8 bytes has 0");
  ArrivalTrace partial = trace;
  partial.arrivals.pop_back();  // of chunk 1: nobody would open its flag
  EXPECT_EQ(check_arrival_of(partial, rows).code(), StatusCode::kInvalidArgument);
}

TEST(ArrivalTrace, IsReplayedInOrderOfTime) {
  const ArrivalTrace trace = modelled(kFourShards, {.m = 10, .bytes_per_row = 8}, {});
  const std::vector<ReplayedArrival> replay = replay_of(trace);
  ASSERT_EQ(replay.size(), trace.arrivals.size());
  EXPECT_EQ(replay.front().chunk, 4);
  EXPECT_EQ(replay.front().ns, trace.arrivals.front().ns);
  EXPECT_TRUE(std::ranges::is_sorted(replay, {}, &ReplayedArrival::ns));
}

}  // namespace
}  // namespace tutti
