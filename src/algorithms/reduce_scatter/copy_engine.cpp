#include "algorithms/reduce_scatter/copy_engine.hpp"

#include "algorithms/engine_passes.hpp"
#include "algorithms/pieces.hpp"
#include "algorithms/reduce_scatter/rows.hpp"

namespace tutti {
namespace {

// One pass over a part of every piece. Places are elements of a piece.
class Scatter {
 public:
  // Chunks are as long as a slot.
  Scatter(Stages& stages, const KernelArgs& work, const EnginePass& pass, std::size_t slot)
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

}  // namespace

void reduce_scatter_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes) {
  const std::size_t piece = piece_of(work);
  const std::size_t slot = slot_of(work, Scatter::slots(work), element_bytes);
  const std::size_t length = work.stage_input ? slot : piece;
  for (std::size_t done = 0; done < piece || done == 0; done += length) {
    const EnginePass pass(stages, work, element_bytes, cut(Range{done, length}, piece));
    Scatter(stages, work, pass, slot).run();
    if (length == 0) break;
  }
}

}  // namespace tutti
