// all_reduce/two_shot_copy_engine: each rank fetches its share of everybody's input by copy engine,
// reduces it, and fetches the others' sums.
//
//   show       my input: staged, if peers cannot address it
//   meet       every input is there
//   for each chunk k of a share:
//     fetch k  my share of every other rank's input, to where that rank's sums will be in my output
//   for each chunk k, once it is there:
//     reduce k with the own one, to where everyone sees it; meet: every sum k is there
//     fetch k  every other rank's sums, over what was reduced
//   reduce     what is left behind the last share, on every rank; meet: nobody reads mine any more
//
// Copies wait for kernels only to fetch sums: while chunk k is reduced, the next one comes.
//
// Shares are equal and of whole vectors, so that the inputs of the others have room where their
// sums come to lie; less than a vector for each rank is left. In place, inputs would be overwritten
// that others still have to fetch: that is staged, and sums as well.
//
// Cost: 3 hops and a few microseconds for each copy, 2(n-1)/n x bytes over each link, all of them
// by copy engines.
#pragma once

#include "algorithms/between_copies.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct AllReduceTwoShotCopyEngine {
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);

  static Geometry geometry(const Extent& extent) { return copy_engine_geometry(share_of(extent)); }
  static double local(int ranks) { return 2.0 + 2.0 / ranks; }

  static void program(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/two_shot_copy_engine",
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      // Four kernels, copies, and what they wait for each other: measured on 2 H200s, where each
      // share takes two copies more.
      .cost = {.steps = 19,
               .steps_per_rank = 8,
               .host_steps = 6,
               .wire = two_shot_wire,
               .local = local},
      .text = "each rank fetches its share of every input by copy engine, then all sums",
      .peers_write_output = true,
      .in_place_needs_staging = true,
      .only_where_measured = true,
      .takes = takes_no_multipliers,
      .geometry = geometry,
      .host = host,
      .cuda = BetweenCopies::cuda,
      .program = program};
  static constexpr Traffic kTraffic{.hops = "3, kernels and copies", .wire = "2 (n-1)/n B"};
};

class TwoShotByCopies {
 public:
  TwoShotByCopies(Stages& stages, const KernelArgs& work, const EnginePass& pass)
      : stages_(stages),
        work_(work),
        pass_(pass),
        share_(pass.all().count / static_cast<std::size_t>(work.ranks) / pass.unit() * pass.unit()),
        chunks_(pass.chunks_of(share_)),
        rest_{place(work.ranks, 0), pass.all().first + pass.all().count - place(work.ranks, 0)} {}

  void run() {
    pass_.begin([this] {
      for (int r = 0; r < work_.ranks; ++r) pass_.show({place(r, 0), share_});
      pass_.show(rest_);
    });
    stages_.copies_wait(stages_.kernels());

    Stages::Mark fetched[EngineChunks::kMost];
    for (std::size_t k = 0; k < chunks_.number; ++k) {
      pass_.for_each_other([&](int rank) { fetch_input(rank, k); });
      fetched[k] = stages_.copies();
    }
    for (std::size_t k = 0; k < chunks_.number; ++k) {
      stages_.kernels_wait(fetched[k]);
      reduce(k);
      stages_.copies_wait(stages_.kernels());
      pass_.for_each_other([&](int rank) { fetch_sums(rank, k); });
      if (work_.stage_output) fetch_sums(work_.rank, k);
    }
    stages_.kernels_wait(stages_.copies());
    reduce_rest();
  }

 private:
  // Where chunk k of the share of rank `owner` begins.
  std::size_t place(int owner, std::size_t k) const {
    return pass_.all().first + share_ * static_cast<std::size_t>(owner) + chunks_.first(k);
  }

  void fetch_input(int rank, std::size_t k) const {
    pass_.copy(pass_.output(place(rank, k)), pass_.input_of(rank, place(work_.rank, k)),
               chunks_.length(k));
  }
  void fetch_sums(int rank, std::size_t k) const {
    pass_.copy(pass_.output(place(rank, k)), pass_.sums_of(rank, place(rank, k)),
               chunks_.length(k));
  }

  void reduce(std::size_t k) const {
    const std::size_t own = place(work_.rank, k);
    KernelArgs part = pass_.part(pass_.sums_of(work_.rank, own), chunks_.length(k));
    pass_.for_each_other([&](int rank) { part.inputs.at[rank] = pass_.output(place(rank, k)); });
    part.inputs.at[work_.rank] = pass_.input_of(work_.rank, own);
    part.meets = true;
    stages_.reduce(part, Publish::kStores);
  }
  void reduce_rest() const {
    KernelArgs part = pass_.part(pass_.output(rest_.first), rest_.count);
    for (int r = 0; r < work_.ranks; ++r) part.inputs.at[r] = pass_.input_of(r, rest_.first);
    part.meets = true;
    stages_.reduce(part, Publish::kLoads);
  }

  Stages& stages_;
  const KernelArgs& work_;
  const EnginePass& pass_;
  std::size_t share_;
  EngineChunks chunks_;
  Range rest_;
};

inline void AllReduceTwoShotCopyEngine::program(Stages& stages, const KernelArgs& work,
                                                std::size_t element_bytes) {
  for_each_pass(stages, work, element_bytes,
                [&](const EnginePass& pass) { TwoShotByCopies(stages, work, pass).run(); });
}

}  // namespace tutti
