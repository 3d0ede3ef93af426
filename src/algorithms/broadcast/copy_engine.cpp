#include "algorithms/broadcast/copy_engine.hpp"

#include "algorithms/broadcast/rows.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/host_program.hpp"
#include "algorithms/rooted.hpp"

namespace tutti {
namespace {

// Pass k, in bytes. What a rank has of it, it shows where that belongs in its output, or in
// staging: share by share, as it is fetched.
class Spread {
 public:
  Spread(Stages& stages, const Work& work, const RootedPasses& passes, std::size_t k)
      : stages_(stages),
        work_(work),
        pass_(stages, work, 1, passes.all(k)),
        passes_(passes),
        k_(k) {}

  void run() const {
    stages_.copies_wait(stages_.kernels());
    if (is_root()) show();
    pass_.meet_behind_copies(Publish::kStores);
    if (!is_root()) fetch(work_.root, work_.rank);
    if (work_.ranks > 2) {
      pass_.meet_behind_copies(Publish::kStores);
      if (!is_root()) fetch_others();
    }
    if (!is_root() && work_.stage_output) keep();
    pass_.end();
  }

 private:
  bool is_root() const { return work_.rank == work_.root; }
  // Where rank `rank` shows the share of rank `whose`.
  std::byte* shown(int rank, int whose) const {
    if (work_.stage_output) return work_.staging.at[rank] + passes_.slot_of(whose);
    return pass_.sums_of(rank, passes_.share_of(whose, k_).first);
  }
  std::byte* output(int whose) const { return pass_.output(passes_.share_of(whose, k_).first); }

  // The share of rank `whose`.
  void copy(std::byte* to, const std::byte* from, int whose) const {
    if (to != from) pass_.copy(to, from, passes_.share_of(whose, k_).count);
  }
  void show() const {
    for (int whose = 0; whose < work_.ranks; ++whose) {
      const std::byte* const from = work_.input + passes_.share_of(whose, k_).first;
      copy(shown(work_.rank, whose), from, whose);
      if (work_.stage_output) copy(output(whose), from, whose);
    }
  }
  void fetch(int rank, int whose) const {
    stages_.copies_wait(stages_.kernels());
    copy(shown(work_.rank, whose), shown(rank, whose), whose);
  }
  void fetch_others() const {
    pass_.for_each_other([&](int rank) {
      if (rank != work_.root) fetch(rank, rank);
    });
  }
  void keep() const {
    for (int whose = 0; whose < work_.ranks; ++whose) {
      copy(output(whose), shown(work_.rank, whose), whose);
    }
  }

  Stages& stages_;
  const Work& work_;
  const EnginePass pass_;
  const RootedPasses& passes_;
  std::size_t k_;
};

}  // namespace

void broadcast_copy_engine(Stages& stages, const Work& work, std::size_t element_bytes) {
  Work moved = work;
  moved.count = work.count * element_bytes;
  const RootedPasses passes(moved, 1,
                            work.stage_output ? work.staging_bytes : RootedPasses::kOnePass, false);
  for (std::size_t k = 0; k < passes.number; ++k) Spread(stages, moved, passes, k).run();
}

HostBody host_broadcast_copy_engine(DataType, OpKind) {
  return run_by_team<Reduction<std::uint8_t, Sum>, broadcast_copy_engine>;
}

}  // namespace tutti
