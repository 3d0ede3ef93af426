// Blocks that are bound to one rank each: it must be the same rank on every rank, since a block
// meets its like alone.
#include <gtest/gtest.h>

#include "algorithms/push_per_peer.hpp"
#include "laboratory/campaigns.hpp"
#include "simulator/bodies.hpp"

namespace tutti::laboratory {
namespace {

// A team whose blocks change places from rank to rank, but for what they tell each other.
class TurnedTeam {
 public:
  TurnedTeam(SimulatedTeam& team, const KernelArgs& work) : team_(team), work_(work) {}

  int block() const { return (team_.block() + work_.rank) % work_.blocks; }
  void arrive(Publish publish) { team_.arrive(publish); }
  auto buffers() const { return team_.buffers(); }
  Outcome wait() { return team_.wait(); }
  Outcome barrier(Publish publish) { return team_.barrier(publish); }
  Outcome finish() { return team_.finish(); }
  template <class T>
  void copy_alone(Range range, const std::byte* from, std::byte* to) const {
    team_.template copy_alone<T>(range, from, to);
  }

 private:
  SimulatedTeam& team_;
  const KernelArgs& work_;
};

Outcome bound_the_same(SimulatedTeam& team, const KernelArgs& work) {
  return push_pieces_bound(team, work, [&](int) { return work.input; });
}

Outcome bound_in_turn(SimulatedTeam& team, const KernelArgs& work) {
  TurnedTeam turned(team, work);
  return push_pieces_bound(turned, work, [&](int) { return work.input; });
}

Finding found_with(SimulatedBody body, int ranks, int blocks) {
  const auto rows = catalogue();
  const auto row = std::ranges::find(rows, "all_gather/push_per_peer", &Algorithm::id);
  Setup setup{&*row, ranks, blocks, 127, 3, Buffers::kStaged};
  setup.body = body;
  return run_random(setup, 1, 300);
}

TEST(Binding, SameBlocksServeARankOnEveryRank) {
  for (const auto& [ranks, blocks] : {std::pair{2, 2}, {2, 5}, {3, 3}, {3, 2}, {4, 7}}) {
    const Finding finding = found_with(bound_the_same, ranks, blocks);
    EXPECT_FALSE(finding.found()) << ranks << " ranks, " << blocks << ": "
                                  << finding.violation.text;
  }
}

TEST(Binding, OtherBlocksOnOtherRanksAreFound) {
  for (const auto& [ranks, blocks] : {std::pair{2, 2}, {2, 5}, {3, 3}, {3, 2}, {4, 7}}) {
    EXPECT_TRUE(found_with(bound_in_turn, ranks, blocks).found()) << ranks << " ranks, " << blocks;
  }
}

}  // namespace
}  // namespace tutti::laboratory
