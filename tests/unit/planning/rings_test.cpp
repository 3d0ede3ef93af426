// Which of two rings is meant where one is taken: TUTTI_RING_BIDIRECTIONAL_MAX_BYTES.
#include "planning/rings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <fstream>
#include <map>

#include "base/units.hpp"
#include "unit/planning/entries.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr std::string_view kOne = "all_reduce/ring", kBoth = "all_reduce/ring_bidirectional";

// A group, and what its tables say; of the catalogue's rows unless others are told.
struct RingCase {
  Topology topology = eight_h200();
  TuningTable table = TuningTable::empty();
  std::int64_t limit = kSizeAutomatic;
  Rows rows = catalogue();

  Request request(std::size_t bytes) const {
    Request request = bytes_of(bytes);
    request.dtype = DataType::kBfloat16;
    request.count = bytes / 2;
    request.ring_bytes = 8 * MiB;
    request.bidirectional_bytes = limit;
    return request;
  }
  // Whatever of the two is asked about, the answer is the same.
  std::string meant(std::size_t bytes, const TuningEntry* entry = nullptr) const {
    const Request asked = request(bytes);
    const Selection question{asked, topology, table, rows};
    const RingChoice one = ring_meant(question, row(kOne), entry);
    const RingChoice both = ring_meant(question, row(kBoth), entry);
    EXPECT_EQ(one.row, both.row);
    EXPECT_EQ(one.why, both.why);
    return std::string(one.row->id);
  }
  const Algorithm& row(std::string_view id) const {
    return **find_algorithm(Collective::kAllReduce, id, rows);
  }
  std::string chosen(std::size_t bytes) const {
    return choose(request(bytes), topology, table, rows)->algorithm;
  }
  std::string explained(std::size_t bytes) const {
    return explain(request(bytes), topology, table, rows);
  }
};

TuningTable naming(std::string_view first, std::string_view next, double us, double next_us) {
  TuningEntry entry = entry_of(0, SIZE_MAX, std::string(first));
  entry.runner_up = next;
  entry.time_us = us;
  entry.runner_up_us = next_us;
  return table_of({{PlanSource::kShipped, "shipped h200.json", {entry}}});
}

TEST(Rings, NeverAlwaysOrUpToSoManyBytesWhateverATableNames) {
  for (const std::string_view named : {kOne, kBoth}) {
    const std::string_view next = named == kOne ? kBoth : kOne;
    for (const int ranks : {2, 3, 8}) {
      RingCase c;
      c.topology.ranks = ranks;
      TuningEntry entry = entry_of(0, SIZE_MAX, std::string(named), ranks);
      entry.runner_up = next;
      c.table = table_of({{PlanSource::kShipped, "shipped", {entry}}});
      EXPECT_EQ(c.chosen(MiB), named);
      c.limit = kSizeNever;
      EXPECT_EQ(c.chosen(MiB), kOne);
      EXPECT_EQ(c.chosen(0), kOne);
      c.limit = kSizeAlways;
      EXPECT_EQ(c.chosen(GiB), kBoth);
      c.limit = MiB;
      EXPECT_EQ(c.chosen(MiB), kBoth) << "inclusive";
      EXPECT_EQ(c.chosen(MiB + 2), kOne);
    }
  }
}

TEST(Rings, OnTheHostAsWell) {
  RingCase c;
  c.topology = {};
  c.topology.ranks = 4;
  c.topology.within_nodes = peer_ways(Backend::kCuda);
  EXPECT_EQ(c.meant(1024), kOne);
  c.limit = kSizeAlways;
  EXPECT_EQ(c.meant(GiB), kBoth);
  c.limit = 4096;
  EXPECT_EQ(c.meant(4096), kBoth);
  EXPECT_EQ(c.meant(4098), kOne);
}

TEST(Rings, AutomaticIsWhatATableMeasuredOfBoth) {
  RingCase c;
  c.table = naming(kBoth, kOne, 400, 410);  // where the model would have it the other way
  EXPECT_EQ(c.chosen(GiB), kBoth);
  c.table = naming(kOne, kBoth, 4, 5);
  EXPECT_EQ(c.chosen(1024), kOne);
  // Of the one-way ring alone it says that it is ahead of other rows, and not which way round.
  c.table = naming(kOne, "all_reduce/two_shot", 4, 5);
  EXPECT_EQ(c.chosen(MiB), kBoth);
  EXPECT_EQ(c.chosen(GiB), kOne);
  // The other one is not named unless it was measured.
  c.table = naming(kBoth, "", 4, 0);
  EXPECT_EQ(c.chosen(MiB), kBoth);
  EXPECT_EQ(c.chosen(GiB), kBoth);
}

TEST(Rings, ANamedRingIsWhatItsNameSays) {
  RingCase c;
  c.limit = kSizeNever;
  Request request = c.request(MiB);
  request.algorithm = "ring_bidirectional";
  EXPECT_EQ(choose(request, c.topology, c.table)->algorithm, kBoth);
  request.algorithm = {};
  request.tune = "all_reduce:@ring_bidirectional";
  EXPECT_EQ(choose(request, c.topology, c.table)->algorithm, kBoth);
}

TEST(Rings, TwoRanksAreNeighboursBothWays) {
  RingCase c;
  for (const int compute : {80, 90, 100}) {
    c.topology.compute = compute;
    c.topology.ranks = 2;
    EXPECT_EQ(c.meant(1024), kOne);
  }
}

// What CTRAN measured on 8 to 64 hosts: H100 512 KiB a rank, GB200 2 MiB a rank.
std::size_t crossing(int compute, int ranks) {
  return compute >= 100 ? std::min<std::size_t>(ranks * 2 * MiB, 128 * MiB)
                        : std::min<std::size_t>(ranks * 512 * KiB, 32 * MiB);
}

TEST(Rings, WhereNothingIsMeasuredOrModelledASizeInProportionToTheRanks) {
  RingCase c;
  for (const int compute : {80, 90, 100, 103}) {
    c.topology.compute = compute;
    c.topology.nvlinks = 0;  // the model's rings are fitted to links that it knows
    for (int ranks = 3; ranks <= 64; ++ranks) {
      c.topology.ranks = ranks;
      const std::size_t most = crossing(compute, ranks);
      EXPECT_EQ(bidirectional_bytes_of(c.topology), most) << compute << ", " << ranks;
      EXPECT_EQ(c.meant(0), kBoth);
      EXPECT_EQ(c.meant(most), kBoth) << compute << ", " << ranks;
      EXPECT_EQ(c.meant(most + 2), kOne) << compute << ", " << ranks;
    }
  }
  c.topology.ranks = 8;
  c.topology.compute = 90;
  EXPECT_EQ(bidirectional_bytes_of(c.topology), 4 * MiB);
  c.topology.ranks = 64;
  EXPECT_EQ(bidirectional_bytes_of(c.topology), 32 * MiB);
  c.topology.compute = 100;
  EXPECT_EQ(bidirectional_bytes_of(c.topology), 128 * MiB);
}

// The model speaks for Hopper's NVLink, as far as one host goes, and for nothing else.
TEST(Rings, TheModelDecidesWhereItKnowsBoth) {
  RingCase c;
  for (int ranks = 3; ranks <= 64; ++ranks) {
    c.topology.ranks = ranks;
    c.topology.compute = 90;
    const std::size_t others = crossing(90, ranks);
    EXPECT_EQ(c.meant(others + 2), ranks <= 8 ? kBoth : kOne) << ranks;
    EXPECT_EQ(c.meant(GiB), kOne) << ranks;
    c.topology.compute = 100;
    EXPECT_EQ(c.meant(crossing(100, ranks)), kBoth) << ranks;
    EXPECT_EQ(c.meant(crossing(100, ranks) + 2), kOne) << ranks;
  }
}

// Without its table, what is meant on 3 and 4 H200s is the ring that was measured to be faster.
TEST(Rings, TheModelHasThemCrossWhereTheyDidOnH200s) {
  std::ifstream stream(TUTTI_RESULTS "/h200x4/all_reduce.json");
  const auto results = nlohmann::json::parse(stream);
  std::map<std::pair<int, std::size_t>, std::map<std::string, double>> us;
  for (const auto& row : results.at("rows")) {
    if (row.at("mode") != "graph" || row.at("ranks") < 3 || row.at("in_place")) continue;
    us[{row.at("ranks"), row.at("bytes")}][row.at("algorithm")] = row.at("time_us").at("p50");
  }
  int cells = 0;
  for (const auto& [where, times] : us) {
    RingCase c;
    c.topology.ranks = where.first;
    const bool both = times.at("ring_bidirectional") < times.at("ring");
    EXPECT_EQ(c.meant(where.second), both ? kBoth : kOne)
        << where.first << " ranks, " << where.second << " bytes";
    ++cells;
  }
  EXPECT_GE(cells, 40);
}

TEST(Rings, ExplainSaysWhichIsMeantAndWhy) {
  RingCase c;
  c.table = naming(kOne, kBoth, 100.5, 102.25);
  EXPECT_THAT(
      c.explained(16 * MiB),
      AllOf(ContainsRegex("  \\* all_reduce/ring +100.5 us .*"
                          "; TUTTI_RING_BIDIRECTIONAL_MAX_BYTES=-2: one way, measured, 100.5 us "
                          "before 102.25\n"),
            ContainsRegex("    all_reduce/ring_bidirectional +102.2 us .*; not the ring for this "
                          "call: TUTTI_RING_BIDIRECTIONAL_MAX_BYTES=-2")));
  c.limit = kSizeAlways;
  EXPECT_THAT(c.explained(16 * MiB),
              ContainsRegex("  \\* all_reduce/ring_bidirectional .*; shipped h200.json names ring; "
                            "TUTTI_RING_BIDIRECTIONAL_MAX_BYTES=-1: both ways\n"));
  c.limit = 4 * MiB;
  EXPECT_THAT(c.explained(4 * MiB), HasSubstr("_BYTES=4194304: both ways up to 4M\n"));
  c.limit = kSizeAutomatic;
  c.table = naming(kOne, "", 100.5, 0);
  EXPECT_THAT(c.explained(MiB),
              ContainsRegex("_BYTES=-2: [0-9.]+ us one way, [0-9.]+ both ways, by the model\n"));
  c.topology.compute = 100;
  EXPECT_THAT(c.explained(MiB), HasSubstr("_BYTES=-2: both ways up to 16M\n"));
}

// Whatever else is faster there: of the two rings alone.
TEST(Rings, BetweenNodesTheSettingMeansTheSame) {
  constexpr std::string_view kNetworkOne = "all_reduce/network_ring";
  constexpr std::string_view kNetworkBoth = "all_reduce/network_ring_bidirectional";
  RingCase c;
  const std::array<Algorithm, 2> rings = {c.row(kNetworkOne), c.row(kNetworkBoth)};
  c.rows = rings;
  c.topology = {.ranks = 4, .network = true, .node_of = {0, 1, 2, 3}};
  c.limit = kSizeNever;
  EXPECT_EQ(c.chosen(1024), kNetworkOne);
  c.limit = kSizeAlways;
  EXPECT_EQ(c.chosen(GiB), kNetworkBoth);
  c.limit = MiB;
  EXPECT_EQ(c.chosen(MiB), kNetworkBoth) << "inclusive";
  EXPECT_EQ(c.chosen(MiB + 2), kNetworkOne);
  c.limit = kSizeAutomatic;
  const std::size_t most = bidirectional_network_bytes_of(c.topology);
  ASSERT_GT(most, 0u);
  EXPECT_EQ(c.chosen(most), kNetworkBoth);
  EXPECT_EQ(c.chosen(most + 2), kNetworkOne);
  c.topology.ranks = 2;
  c.topology.node_of = {0, 1};
  EXPECT_EQ(c.chosen(1024), kNetworkOne) << "two ranks are neighbours both ways";
}

// A collective with one ring has nothing to decide, and a row that is no ring neither.
TEST(Rings, WhatHasNoOtherStaysAsItIs) {
  RingCase c;
  const Request request = c.request(MiB);
  const Selection question{request, c.topology, c.table, c.rows};
  for (const std::string_view name : {"reduce_scatter/ring", "reduce_scatter/pull"}) {
    const Algorithm& row = **find_algorithm(Collective::kReduceScatter, name);
    EXPECT_EQ(ring_meant(question, row, nullptr).row, &row);
    EXPECT_EQ(ring_meant(question, row, nullptr).why, "");
  }
  Algorithm both = c.row(kBoth);
  const Rows alone(&both, 1);
  Request never = request;
  never.bidirectional_bytes = kSizeNever;
  EXPECT_EQ(ring_meant({never, c.topology, c.table, alone}, both, nullptr).row, nullptr);
  EXPECT_FALSE(choose(never, c.topology, naming(kBoth, "", 1, 0), alone).is_ok());
}

}  // namespace
}  // namespace tutti
