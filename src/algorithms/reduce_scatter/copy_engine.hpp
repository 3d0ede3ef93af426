// reduce_scatter/copy_engine: each rank fetches its piece of everybody's input by copy engine, and
// reduces it.
//
//   show       my input: staged, if peers cannot address it
//   meet       every input is there
//   for each chunk k of my piece, copies ahead of kernels:
//     fetch k  from every other rank, next rank first, into slots of my staging
//     reduce k with the own one, to output; after the last chunk meet: nobody reads mine any more
//
// Chunks take turns with two halves of staging, so that one is fetched while the one before is
// reduced. A staged input takes passes of one chunk each, since it lies there, too.
//
// Cost: 2 hops and a few microseconds for each copy, (n-1)/n x bytes over each rank's links, all of
// them by copy engines. In place is safe: nobody else reads my piece of my input.
#pragma once

#include "algorithms/between_copies.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceScatterCopyEngine {
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);

  // As all_reduce's programs have it; chunks are as long as staging allows.
  static Geometry geometry(const Extent& extent) { return spread(share_of(extent), 512, 64); }

  static void program(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter/copy_engine",
      .collective = Collective::kReduceScatter,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 12,
               .steps_per_rank = 4,
               .host_steps = 4,
               .wire = pieces_wire,
               .local = times<2>},
      .text = "each rank fetches its block of every rank's input by copy engine and reduces it",
      .only_where_measured = true,
      .takes = takes_no_multipliers,
      .geometry = geometry,
      .host = host,
      .cuda = BetweenCopies::cuda,
      .program = program};
  static constexpr Traffic kTraffic{.hops = "2, kernels and copies", .wire = "(n-1)/n B"};
};

// One pass over a part of every piece. Places are elements of a piece.
class ReduceScatterByCopies {
 public:
  // Chunks are as long as a slot.
  ReduceScatterByCopies(Stages& stages, const KernelArgs& work, const EnginePass& pass,
                        std::size_t slot)
      : stages_(stages),
        work_(work),
        pass_(pass),
        element_bytes_(16 / pass.unit()),
        chunks_{pass.all().count, slot, slot == 0 ? 0 : ceil_div(pass.all().count, slot)} {}

  void run() {
    pass_.begin([this] {
      pass_.for_each_other([&](int rank) {
        pass_.copy(shown_by(work_.rank, rank, 0), input_for(rank, 0), pass_.all().count);
      });
    });
    const bool fetches = work_.ranks > 1 && chunks_.number > 0;
    if (fetches) stages_.copies_wait(stages_.kernels());

    Stages::Mark reduced[kHalves];
    for (std::size_t k = 0; k < chunks_.number; ++k) {
      if (fetches && k >= kHalves) stages_.copies_wait(reduced[k % kHalves]);
      pass_.for_each_other([&](int rank) {
        pass_.copy(fetched_from(rank, k), shown_by(rank, work_.rank, k), chunks_.length(k));
      });
      if (fetches) stages_.kernels_wait(stages_.copies());
      reduce(k);
      reduced[k % kHalves] = stages_.kernels();
    }
  }

  static constexpr std::size_t kHalves = 2;
  // Of the parts that are fetched, without the own one, and behind them of those that are shown.
  static int slots(const KernelArgs& work) {
    const int others = std::max(work.ranks - 1, 1);
    return others + (work.stage_input ? work.ranks : others);
  }

 private:
  std::byte* slot_at(int owner, std::size_t index) const {
    return work_.staging.at[owner] + index * chunks_.chunk * element_bytes_;
  }
  // Where chunk k of rank `owner`'s piece of my input begins.
  std::byte* input_for(int owner, std::size_t k) const {
    return const_cast<std::byte*>(work_.input) + offset(owner, k);
  }
  // Where rank `rank` shows chunk k of its input for rank `owner`.
  std::byte* shown_by(int rank, int owner, std::size_t k) const {
    const auto others = static_cast<std::size_t>(work_.ranks) - 1;
    if (work_.stage_input) return slot_at(rank, others + static_cast<std::size_t>(owner));
    return work_.inputs.at[rank] + offset(owner, k);
  }
  std::byte* fetched_from(int rank, std::size_t k) const {
    const auto others = static_cast<std::size_t>(work_.ranks) - 1;
    const auto index = static_cast<std::size_t>(rank < work_.rank ? rank : rank - 1);
    return slot_at(work_.rank, k % kHalves * others + index);
  }
  std::size_t offset(int owner, std::size_t k) const {
    const std::size_t piece = static_cast<std::size_t>(owner) * piece_of(work_);
    return (piece + pass_.all().first + chunks_.first(k)) * element_bytes_;
  }

  void reduce(std::size_t k) const {
    KernelArgs part =
        pass_.part(pass_.output(pass_.all().first + chunks_.first(k)), chunks_.length(k));
    pass_.for_each_other([&](int rank) { part.inputs.at[rank] = fetched_from(rank, k); });
    part.inputs.at[work_.rank] = input_for(work_.rank, k);
    part.meets = k + 1 == chunks_.number;
    stages_.reduce(part, Publish::kLoads);
  }

  Stages& stages_;
  const KernelArgs& work_;
  const EnginePass& pass_;
  std::size_t element_bytes_;
  EngineChunks chunks_;
};

inline void ReduceScatterCopyEngine::program(Stages& stages, const KernelArgs& work,
                                             std::size_t element_bytes) {
  const std::size_t piece = piece_of(work);
  const std::size_t slot = slot_of(work, ReduceScatterByCopies::slots(work), element_bytes);
  const std::size_t length = work.stage_input ? slot : piece;
  for (std::size_t done = 0; done < piece || done == 0; done += length) {
    const EnginePass pass(stages, work, element_bytes, cut(Range{done, length}, piece));
    ReduceScatterByCopies(stages, work, pass, slot).run();
    if (length == 0) break;
  }
}

}  // namespace tutti
