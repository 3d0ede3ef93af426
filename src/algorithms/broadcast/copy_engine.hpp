// broadcast/copy_engine: the others fetch a share each from the root, and then those of each other,
// by copy engine.
//
//   show   root: my input, in my output; staged, if peers cannot address outputs
//   meet   it is there
//   copy   my share of it
//   meet   every share is there (not where there are two ranks: then a share is all)
//   copy   the shares of the others but the root, next rank first
//   copy   all of it from staging to my output, if it is there
//   meet   nobody reads my output any more, or my staging (of more than two ranks behind the last
//          pass alone)
//
// Cost: 3 hops and a few microseconds for each copy, 1 x bytes over the root's links and then
// (n-2)/(n-1) x bytes over those of the others, all of them by copy engines: kernels only meet.
#pragma once

#include "algorithms/barrier/flags.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/rooted.hpp"

namespace tutti {

struct BroadcastCopyEngine {
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);

  static void program(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

  static constexpr Algorithm kAlgorithm{
      .id = "broadcast/copy_engine",
      .collective = Collective::kBroadcast,
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost =
          {.steps = 18, .steps_per_rank = 2, .host_steps = 4, .wire = root_wire, .local = times<2>},
      .text = "each rank fetches a share from the root, then the other shares, by copy engine",
      .peers_read_input = false,
      .peers_write_output = true,
      .only_where_measured = true,
      .takes = moves,
      .geometry = meeting_geometry,
      .host = host,
      .cuda = BarrierFlags::cuda,
      .program = program};
  static constexpr Traffic kTraffic{.hops = "3, kernels and copies",
                                    .wire = "B from the root, (n-2)/(n-1) B from others"};
};

// Pass k, in bytes. What a rank has of it, it shows where that belongs in its output, or in
// staging: share by share, as it is fetched.
class BroadcastByCopies {
 public:
  BroadcastByCopies(Stages& stages, const KernelArgs& work, const RootedPasses& passes,
                    std::size_t k)
      : stages_(stages),
        work_(work),
        pass_(stages, work, 1, passes.all(k)),
        passes_(passes),
        k_(k) {}

  void run() const { is_root() ? give() : take(); }

 private:
  bool is_root() const { return work_.rank == work_.root; }
  bool shares() const { return work_.ranks > 2; }  // else one rank takes all of it

  void give() const {
    stages_.copies_wait(stages_.kernels());
    show();
    pass_.meet_behind_copies(Publish::kStores);
    if (shares()) pass_.meet(Publish::kStores);
    if (ends()) pass_.meet(Publish::kLoads);
  }
  void take() const {
    k_ > 0 && shares() ? pass_.meet_behind_copies(Publish::kLoads) : pass_.meet(Publish::kStores);
    stages_.copies_wait(stages_.kernels());
    fetch(work_.root, work_.rank);
    if (shares()) {
      pass_.meet_behind_copies(Publish::kStores);
      stages_.copies_wait(stages_.kernels());
      fetch_others();
    }
    if (work_.stage_output) keep();
    if (ends()) pass_.end();
  }
  // Where shares are fetched from others, the next pass's first meeting says as well that nobody
  // reads here any more; and that nobody reads what the root shows, the second one did.
  bool ends() const { return !shares() || k_ + 1 == passes_.number; }

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
    copy(shown(work_.rank, whose), shown(rank, whose), whose);
  }
  void fetch_others() const {
    pass_.for_each_other([&](int rank) {
      if (rank != work_.root) fetch(rank, rank);
    });
  }
  void keep() const {
    stages_.end_batch();  // it copies what was fetched
    for (int whose = 0; whose < work_.ranks; ++whose) {
      copy(output(whose), shown(work_.rank, whose), whose);
    }
  }

  Stages& stages_;
  const KernelArgs& work_;
  const EnginePass pass_;
  const RootedPasses& passes_;
  std::size_t k_;
};

inline void BroadcastCopyEngine::program(Stages& stages, const KernelArgs& work,
                                         std::size_t element_bytes) {
  KernelArgs moved = work;
  moved.count = work.count * element_bytes;
  const RootedPasses passes(moved, 1,
                            work.stage_output ? work.staging_bytes : RootedPasses::kOnePass, false);
  for (std::size_t k = 0; k < passes.number; ++k) BroadcastByCopies(stages, moved, passes, k).run();
}

}  // namespace tutti
