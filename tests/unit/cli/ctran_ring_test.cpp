// torchcomms' ring: its tuner against rows that its own tests have or that follow from its rules;
// its schedules are complete and without races.
#include "model/ctran_ring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "support/network_world.hpp"

namespace tutti::model {
namespace {

using enum CtranArchitecture;

constexpr std::size_t kKilo = 1024, kMega = 1024 * kKilo;

struct GoldenRow {
  std::size_t bytes;
  CtranArchitecture architecture;
  int ranks;
  CtranTuning tuning;
};

constexpr GoldenRow kGolden[] = {
    // Published ones.
    {1 * kMega, kHopper, 8, {2, 64 * kKilo, 16, 1}},
    {4 * kMega, kHopper, 8, {2, 256 * kKilo, 16, 2}},
    {16 * kMega, kHopper, 8, {4, 512 * kKilo, 32, 4}},
    {64 * kMega, kHopper, 8, {1, 4 * kMega, 8, 4}},
    {1024 * kMega, kHopper, 8, {1, 4 * kMega, 8, 4}},
    {4 * kMega, kHopper, 64, {2, 32 * kKilo, 128, 1}},
    {256 * kMega, kBlackwell, 8, {1, 16 * kMega, 2, 8}},
    {1024 * kMega, kBlackwell, 64, {2, 2 * kMega, 16, 8}},
    // On both sides of each limit of the depth: 32 KiB, 1, 4, 8 and 32 MiB of a share.
    {128 * kKilo, kHopper, 8, {1, 16 * kKilo, 8, 1}},
    {256 * kKilo, kHopper, 8, {2, 16 * kKilo, 16, 1}},
    {8 * kMega, kHopper, 8, {4, 256 * kKilo, 32, 2}},
    {32 * kMega, kHopper, 8, {2, 2 * kMega, 16, 4}},
    {64 * kMega, kHopper, 64, {4, 128 * kKilo, 256, 2}},
    {128 * kKilo, kBlackwell, 8, {1, 16 * kKilo, 8, 2}},
    {256 * kKilo, kBlackwell, 8, {2, 16 * kKilo, 16, 2}},
    {128 * kMega, kBlackwell, 8, {2, 8 * kMega, 4, 8}},
    // Half way between two powers of two the greater one counts; below that the smaller one.
    {3 * kMega, kHopper, 8, {2, 256 * kKilo, 16, 2}},
    {3 * kMega - 1, kHopper, 8, {2, 128 * kKilo, 16, 2}},
    {4 * kMega, kHopper, 6, {2, 256 * kKilo, 16, 2}},
    {4 * kMega, kHopper, 5, {2, 512 * kKilo, 8, 4}},
    // Chunks grow with more than 32 ranks alone, and where a share is cut into more than the depth.
    {1024 * kMega, kBlackwell, 32, {1, 4 * kMega, 8, 8}},
    {128 * kMega, kBlackwell, 64, {2, 1 * kMega, 32, 8}},
};

TEST(CtranRing, TunerSelectsWhatTheOriginalSelects) {
  for (const GoldenRow& row : kGolden) {
    const CtranTuning tuning = tune_ctran_ring(row.bytes, row.ranks, row.architecture);
    EXPECT_EQ(tuning, row.tuning) << row.bytes << " bytes, " << row.ranks << " ranks: depth "
                                  << tuning.depth << ", chunk " << tuning.chunk_bytes << ", slots "
                                  << tuning.slots << ", blocks " << tuning.blocks;
  }
}

TEST(CtranRing, PartitionsMakeUpTheMessageAndLeaveNoShareEmpty) {
  const CtranTuning tuning{.depth = 1, .chunk_bytes = 64, .slots = 4, .blocks = 1};
  EXPECT_EQ(ctran_partitions(2048, 8, tuning), std::vector<std::size_t>{2048});
  EXPECT_EQ(ctran_partitions(4096 + 512, 8, tuning), (std::vector<std::size_t>{2048, 2048, 512}));
  EXPECT_EQ(ctran_partitions(4096 + 8, 8, tuning), (std::vector<std::size_t>{2048, 1928, 128}));
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{2049}, 5 * kMega + 3}) {
    const std::vector<std::size_t> parts = ctran_partitions(bytes, 8, tuning);
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::size_t{0}), bytes);
  }
}

TEST(CtranRing, SchedulesAreCompleteAndWithoutRaces) {
  Algorithm row = **find_algorithm(Collective::kAllReduce, "network_ring");
  for (const NetworkSchedule schedule : {&ctran_ring, &ctran_ring_bidirectional}) {
    row.network = schedule;
    for (const int ranks : {1, 2, 3, 4, 5, 8, 13}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{48}}) {
        test::NetworkTrial trial{
            .row = &row, .shape = {.ranks = ranks, .count = count}, .chunk = 2};
        for (const bool in_place : {false, true}) {
          trial.in_place = in_place;
          EXPECT_EQ(test::check_network(trial, count), "");
        }
      }
    }
  }
}

// The sends of a rank to each neighbour: all of the reduce-scatter and half of the rest forwards.
TEST(CtranRing, GoesBothWaysInTheAllGatherPhaseAlone) {
  const NetworkProgram program = ctran_ring_bidirectional({.rank = 0, .ranks = 8, .count = 64});
  int forwards = 0, back = 0;
  for (const NetworkStep& step : program.steps) {
    if (step.kind != NetworkStep::Kind::kSend) continue;
    ++(step.peer == 1 ? forwards : back);
  }
  EXPECT_EQ(forwards, 7 + 4);
  EXPECT_EQ(back, 3);
}

nlohmann::json results(const std::string& name) {
  std::ifstream file(std::string(TUTTI_RESULTS) + "/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  return nlohmann::json::parse(file);
}

// Of a row of a file, with the costs that results/model/ctran_ring.json has of its architecture.
double simulated_us(const nlohmann::json& costs, const nlohmann::json& row, bool both_ways) {
  const std::string architecture = row.at("architecture");
  const nlohmann::json& own = costs.at(architecture);
  const CtranRun run{.bytes = row.at("bytes"),
                     .architecture = architecture == "hopper" ? kHopper : kBlackwell,
                     .both_ways = both_ways,
                     .costs = {.start_us = own.at("start_us"),
                               .block_gb_per_s = own.at("block_gb_per_s"),
                               .chunk_us = own.at("chunk_us"),
                               .reverse_us = own.at("reverse_us")}};
  Link between;
  between.gbit_per_s = own.at("gbit_per_s");
  between.delay_us = own.at("delay_us");
  const auto time = simulate_ctran_ring(run, row.at("nodes"), between);
  EXPECT_TRUE(time.is_ok()) << time.status().message();
  return time.is_ok() ? time->us : 1;
}

double simulated_gain(const nlohmann::json& costs, const nlohmann::json& row) {
  return 100 * (simulated_us(costs, row, false) / simulated_us(costs, row, true) - 1);
}

TEST(CtranRing, SimulatedResultsAreCurrent) {
  const nlohmann::json model = results("model/ctran_ring.json");
  for (const nlohmann::json& row : model.at("gains")) {
    EXPECT_NEAR(simulated_gain(model.at("costs"), row), row.at("percent"), 0.06) << row;
  }
  for (const nlohmann::json& row : model.at("times")) {
    EXPECT_NEAR(simulated_us(model.at("costs"), row, false), row.at("us"), 0.06) << row;
  }
}

// Costs are fitted to 8 nodes; 16, 32 and 64 are predicted.
TEST(CtranRing, PublishedGainsArePredicted) {
  constexpr double kOfEightNodes = 1.5, kOfMore = 4.5;  // in percent of the bandwidth
  const nlohmann::json costs = results("model/ctran_ring.json").at("costs");
  const nlohmann::json published = results("published/ctran_ring.json");
  for (const nlohmann::json& row : published.at("gains")) {
    const double gain = simulated_gain(costs, row);
    const double within = row.at("nodes") == 8 ? kOfEightNodes : kOfMore;
    EXPECT_GT(gain, row.at("least").get<double>() - within) << row;
    EXPECT_LT(gain, row.at("most").get<double>() + within) << row;
  }
  // What makes both ways lose: without it they do not.
  nlohmann::json without = costs;
  without["hopper"]["reverse_us"] = 0;
  const nlohmann::json loss = {{"architecture", "hopper"}, {"nodes", 16}, {"bytes", 16 * kMega}};
  EXPECT_GT(simulated_gain(without, loss), simulated_gain(costs, loss) + 5);
}

TEST(CtranRing, FewerElementsThanNodesAreRefused) {
  const auto time = simulate_ctran_ring({.bytes = 28}, 8, {.gbit_per_s = 400});
  EXPECT_EQ(time.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(time.status().message(), testing::HasSubstr("28 bytes"));
}

}  // namespace
}  // namespace tutti::model
