// Stages as a team of the host runs them: at once, and of each only the tiles that are the block's,
// counted from where the stage begins. Blocks run one after the other, so a tile must have the same
// place in every stage that touches it.
#pragma once

#include <vector>

#include "algorithms/reduction.hpp"
#include "device/copy_engine/stages.hpp"

namespace tutti {

// What a kernel between copies does.
template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_between_copies(Team& team, const KernelArgs& part, Publish publish) {
  using T = typename Reduction::Element;
  Pointers<Team::kMaxRanks> from;
  TUTTI_UNROLL
  for (int r = 0; r < Team::kMaxRanks; ++r) {
    if (r < part.ranks) from.at[r] = part.inputs.at[r];
  }
  const Scalars<Reduction, Team::kMaxRanks> scalars(team, part);
  team.template for_each_tile<T>(Range{0, part.count}, [&](auto access, TileAt tile) {
    const auto value = reduce_tile<Reduction>(team, from, access, tile, scalars);
    team.template store<T>(part.output, access, tile, value);
  });
  return part.meets ? team.barrier(publish) : Outcome::kDone;
}

#if !defined(__CUDACC__)

template <class Reduction, class Team>
class TeamStages : public Stages {
 public:
  using T = typename Reduction::Element;

  // Engines copy at some time before a kernel waits for them: of teams that search for what can go
  // wrong, in every other operation at once, and else as late as they may.
  TeamStages(Team& team, const KernelArgs& work)
      : team_(team), late_(Team::kCopiesLate && work.sequence % 2 == 0) {}

  void reduce(const KernelArgs& part, Publish publish) override {
    if (outcome_ != Outcome::kDone) return;
    outcome_ = reduce_between_copies<Reduction>(team_, part, publish);
  }

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (late_) {
      waiting_.push_back({to, from, bytes});
    } else {
      copy_now({to, from, bytes});
    }
  }

  void end_batch() override {}

  void copy_among_kernels(std::byte* to, const std::byte* from, std::size_t bytes) override {
    copy_now({to, from, bytes});
  }

  Mark kernels() override { return 0; }
  Mark copies() override { return 0; }
  void copies_wait(Mark) override {}
  void kernels_wait(Mark) override { end_copies(); }

  Outcome finish() {
    end_copies();
    return outcome_ == Outcome::kDone ? team_.finish() : Outcome::kFailed;
  }

 private:
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };

  void copy_now(const Copy& copy) const {
    if (outcome_ != Outcome::kDone) return;
    team_.template for_each_tile<T>(
        Range{0, copy.bytes / sizeof(T)}, [&](auto access, TileAt tile) {
          team_.template store<T>(copy.to, access, tile,
                                  team_.template load<T>(copy.from, access, tile));
        });
  }
  void end_copies() {
    for (const Copy& copy : waiting_) copy_now(copy);
    waiting_.clear();
  }

  Team& team_;
  bool late_;
  Outcome outcome_ = Outcome::kDone;
  std::vector<Copy> waiting_;
};

#endif

}  // namespace tutti
