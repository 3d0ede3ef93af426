#include "planning/model.hpp"

#include <gtest/gtest.h>

#include "base/units.hpp"
#include "unit/planning/entries.hpp"

namespace tutti {
namespace {

double all_to_all_wire(int ranks) { return ranks - 1; }
double shards_wire(int ranks) { return 2.0 * (ranks - 1) / ranks; }

constexpr Algorithm kOneShot = {
    .id = "all_reduce/one", .cost = {.steps = 2, .wire = all_to_all_wire}, .text = "for this test"};
constexpr Algorithm kTwoShot = {
    .id = "all_reduce/two", .cost = {.steps = 3, .wire = shards_wire}, .text = "for this test"};

TEST(Model, IsBasePlusHopsPlusBytesOnTheWire) {
  const Topology topology = eight_h200();
  const MachineModel machine = machine_model(topology);
  EXPECT_NEAR(predicted_us(kOneShot, {8, 0}, topology), machine.base_us + 2 * machine.hop_us, 1e-9);
  const double mebibyte_us = 7 * 1048576 / (machine.bandwidth_gbps * 1e3);
  EXPECT_NEAR(predicted_us(kOneShot, {8, MiB}, topology) - predicted_us(kOneShot, {8, 0}, topology),
              mebibyte_us, 1e-9);
}

TEST(Model, FewStepsWinSmallFewBytesWinLarge) {
  for (const Backend backend : {Backend::kCuda, Backend::kHost}) {
    Topology topology = eight_h200();
    topology.backend = backend;
    EXPECT_LT(predicted_us(kOneShot, {8, 64}, topology), predicted_us(kTwoShot, {8, 64}, topology));
    EXPECT_GT(predicted_us(kOneShot, {8, 16 * MiB}, topology),
              predicted_us(kTwoShot, {8, 16 * MiB}, topology));
  }
}

// 64 MiB by two-shot on 8x H200 was measured at 378 us.
TEST(Model, IsNearWhatWasMeasured) {
  EXPECT_NEAR(predicted_us(kTwoShot, {8, 64 * MiB}, eight_h200()), 378, 0.1 * 378);
}

TEST(Model, MoreAndFasterLinksCarryMore) {
  Topology topology = eight_h200();
  const double h200 = machine_model(topology).bandwidth_gbps;
  topology.nvlinks = 12;
  EXPECT_NEAR(machine_model(topology).bandwidth_gbps, h200 * 12 / 18, 1e-9);
  topology.nvlinks = 18;
  topology.compute = 100;
  EXPECT_NEAR(machine_model(topology).bandwidth_gbps, 2 * h200, 1e-9);
  topology.nvlinks = 0;  // PCIe
  EXPECT_LT(machine_model(topology).bandwidth_gbps, 32);
}

constexpr Algorithm kLibrary = {.id = "all_reduce/library",
                                .cost = {.steps = 2, .steps_per_rank = 1.5, .wire = shards_wire},
                                .text = "for this test",
                                .peers_read_input = false};
constexpr Algorithm kWriter = {.id = "all_reduce/writer",
                               .cost = {.steps = 3, .wire = shards_wire},
                               .text = "for this test",
                               .peers_write_output = true};

TEST(Model, StepsMayGrowWithTheRanks) {
  Topology topology = eight_h200();
  const MachineModel machine = machine_model(topology);
  for (const int ranks : {2, 8}) {
    topology.ranks = ranks;
    EXPECT_NEAR(predicted_us(kLibrary, {ranks, 0}, topology),
                machine.base_us + (2 + 1.5 * ranks) * machine.hop_us, 1e-9);
  }
}

TEST(Model, StagingIsPaidPerPassAndPerByteAndCopy) {
  const Topology topology = eight_h200();
  const MachineModel machine = machine_model(topology);
  const auto surcharge = [&](const Algorithm& row, std::size_t bytes, std::size_t staging) {
    return predicted_us(row, {8, bytes, staging}, topology) -
           predicted_us(row, {8, bytes}, topology);
  };
  const double mebibyte_us = MiB / (machine.copy_gbps * 1e3);
  // In one pass only the copies: in, and where peers write the output, out.
  EXPECT_NEAR(surcharge(kOneShot, MiB, MiB), machine.copy_us + mebibyte_us, 1e-9);
  EXPECT_NEAR(surcharge(kWriter, MiB, MiB), 2 * (machine.copy_us + mebibyte_us), 1e-9);
  // Each further pass has both barriers again.
  EXPECT_NEAR(surcharge(kWriter, MiB, MiB / 4) - surcharge(kWriter, MiB, MiB),
              3 * (3 * machine.hop_us + 2 * machine.copy_us), 1e-9);
  EXPECT_EQ(passes_of({8, MiB, 0}), 0u);
  EXPECT_EQ(passes_of({8, 0, KiB}), 1u);
  EXPECT_EQ(passes_of({8, MiB, MiB}), 1u);
  EXPECT_EQ(passes_of({8, MiB + 1, MiB}), 2u);
  EXPECT_EQ(passes_of({.ranks = 8, .bytes = 8 * MiB, .staging_bytes = MiB}), 8u);
  EXPECT_EQ(passes_of({.ranks = 8, .bytes = 8 * MiB, .staging_bytes = MiB, .staged_bytes = MiB}),
            1u);
}

double own_and_peers(int ranks) { return ranks; }

TEST(Model, OnTheHostOwnMemoryCountsToo) {
  Algorithm reader = kOneShot;
  reader.cost.local = own_and_peers;
  Topology topology = eight_h200();
  EXPECT_EQ(predicted_us(reader, {8, MiB}, topology), predicted_us(kOneShot, {8, MiB}, topology));
  topology.backend = Backend::kHost;
  const double more_us = 8 / 2.0 * MiB / (machine_model(topology).bandwidth_gbps * 1e3);
  EXPECT_NEAR(predicted_us(reader, {8, MiB}, topology) - predicted_us(kOneShot, {8, MiB}, topology),
              more_us, 1e-9);
}

TEST(Model, OneRankSendsNothing) {
  Topology topology = eight_h200();
  topology.ranks = 1;
  EXPECT_EQ(predicted_us(kTwoShot, {1, MiB}, topology), machine_model(topology).base_us);
}

TEST(Model, ARowWithoutAWireFormulaCostsItsStepsAlone) {
  constexpr Algorithm kBarrier = {
      .id = "all_reduce/none", .cost = {.steps = 1, .wire = nullptr}, .text = "for this test"};
  EXPECT_EQ(predicted_us(kBarrier, {8, 64 * MiB}, eight_h200()),
            predicted_us(kBarrier, {8, 0}, eight_h200()));
}

}  // namespace
}  // namespace tutti
