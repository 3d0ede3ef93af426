// The exhaustive search: as many schedules as differ, and none of those that matter left out.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "laboratory/campaigns.hpp"
#include "simulator/simulation.hpp"

namespace tutti::laboratory {
namespace {

using simulated::ExhaustiveSchedule;
using simulated::Simulation;

// One flag from rank 0 to rank 1, epochs 1 to `flags`; rank 1 waits for the first only and says
// which epoch it saw. Every one it could see must turn up, each once.
TEST(Exhaustive, SeesEveryEpochThatCouldBeSeen) {
  for (const std::uint64_t flags : {1u, 2u, 5u}) {
    Simulation simulation(2, 1);
    Flag flag{};
    simulation.memory().add_flags(&flag, 1);
    ExhaustiveSchedule schedule;
    std::multiset<std::uint64_t> seen;
    do {
      const bool whole = simulation.run(schedule, [&](int rank, int) {
        if (rank == 1) {
          simulation.wait_for_flag(1, &flag, 1);
          seen.insert(flag.epoch);
          return;
        }
        for (std::uint64_t epoch = 1; epoch <= flags; ++epoch) {
          simulation.memory().send(0, Publish::kLoads);
          simulation.memory().store_flag(0, &flag, {epoch, epoch});
        }
        simulation.wait_until_delivered(0);
      });
      EXPECT_TRUE(whole);
    } while (schedule.advance());
    std::multiset<std::uint64_t> expected;
    for (std::uint64_t epoch = 1; epoch <= flags; ++epoch) expected.insert(epoch);
    EXPECT_EQ(seen, expected);
  }
}

// Ranks that share nothing: one schedule stands for all.
TEST(Exhaustive, OrdersOfIndependentStepsCountOnce) {
  Simulation simulation(4, 1);
  Flag flags[4] = {};
  simulation.memory().add_flags(flags, 4);
  ExhaustiveSchedule schedule;
  int runs = 0;
  do {
    simulation.run(schedule, [&](int rank, int) {
      for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        simulation.memory().send(rank, Publish::kLoads);
        simulation.memory().store_flag(rank, &flags[rank], {epoch, epoch});
        simulation.wait_for_flag(rank, &flags[rank], epoch);
      }
    });
    ++runs;
  } while (schedule.advance());
  EXPECT_EQ(runs, 1);
}

// Of an operation of 20 bytes: two, or three where it is pushed through staging and its sums are
// pushed back, or where a root deals shares by stores, in two passes; of packets, which are
// announced, and of a barrier one.
int barriers_of(const Algorithm& row) {
  if (row.packets != nullptr || row.collective == Collective::kBarrier) return 1;
  const bool pushes_back = row.pushes_through_staging && row.peers_write_output;
  const bool deals = root_side(row.collective) == RootSide::kInput &&
                     row.family == Family::kTwoShot && row.program == nullptr;
  return pushes_back || deals ? 3 : 2;
}

// At each barrier but the last, either rank may see the other's next flag already, or neither does:
// three ways per barrier.
TEST(Exhaustive, BarriersOfTwoRanksMeetInThreeWaysEach) {
  for (const Algorithm& row : catalogue()) {
    if (row.host == nullptr || row.ring_directions > 0 || row.sends_messages)
      continue;  // chunks meet in more ways
    const int barriers = barriers_of(row);
    for (const int operations : {1, 2, 3}) {
      const Buffers buffers = runs(row, Buffers::kDirect) ? Buffers::kDirect : Buffers::kStaged;
      const laboratory::Setup setup{&row, 2, 1, 5, operations, buffers, OpKind::kSum};
      const Exhausted all = run_exhaustive(setup, 100'000);
      EXPECT_TRUE(all.complete) << setup.name();
      EXPECT_FALSE(all.finding.found()) << all.finding.violation.text;
      const double expected = std::pow(3, barriers * operations - 1);
      EXPECT_EQ(static_cast<double>(all.finding.schedules), expected) << setup.name();
    }
  }
}

// A defect that only shows if one rank is a whole barrier ahead: the search comes to it.
TEST(Exhaustive, ComesToWhatOnlyOneOrderShows) {
  Simulation simulation(2, 1);
  Flag flag{};
  simulation.memory().add_flags(&flag, 1);
  ExhaustiveSchedule schedule;
  int late = 0, runs = 0;
  do {
    simulation.run(schedule, [&](int rank, int) {
      if (rank == 0) {
        for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
          simulation.memory().send(0, Publish::kLoads);
          simulation.memory().store_flag(0, &flag, {epoch, epoch});
        }
        return;
      }
      simulation.wait_for_flag(1, &flag, 1);
      const std::uint64_t first = flag.epoch;
      simulation.wait_for_flag(1, &flag, 1);
      if (first == 1 && flag.epoch == 3) ++late;
    });
    ++runs;
  } while (schedule.advance());
  EXPECT_EQ(late, 1);
  EXPECT_EQ(runs, 6) << "epochs 1..3 seen twice, never falling";
}

}  // namespace
}  // namespace tutti::laboratory
