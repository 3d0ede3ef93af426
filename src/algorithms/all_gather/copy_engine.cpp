#include "algorithms/all_gather/copy_engine.hpp"

#include "algorithms/all_gather/pieces.hpp"
#include "algorithms/all_gather/rows.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/team_stages.hpp"
#include "transport/host_team.hpp"

namespace tutti {
namespace {

Outcome run_by_team(HostTeam& team, const Work& work) {
  TeamStages<Reduction<std::uint8_t, Sum>, HostTeam> stages(team, work);
  all_gather_copy_engine(stages, work, 1);
  return stages.finish();
}

}  // namespace

// Passes are over a piece; staging shows a part of it.
void all_gather_copy_engine(Stages& stages, const Work& work, std::size_t element_bytes) {
  Work one = work;
  one.count = piece_of(work);
  for_each_pass(stages, one, element_bytes, [&](const EnginePass& pass) {
    const auto fetch = [&](int rank, const std::byte* from) {
      const std::size_t place = static_cast<std::size_t>(rank) * one.count;
      pass.copy(pass.output(place + pass.all().first), from, pass.all().count);
    };
    const std::byte* const own = work.input + pass.all().first * element_bytes;
    const std::size_t own_place = static_cast<std::size_t>(work.rank) * one.count;
    const bool in_place = own == pass.output(own_place + pass.all().first);

    pass.begin([&] { pass.show(pass.all()); });
    stages.copies_wait(stages.kernels());
    for (int step = 1; step < work.ranks; ++step) {
      const int rank = (work.rank + step) % work.ranks;
      fetch(rank, pass.input_of(rank, pass.all().first));
    }
    if (!in_place) fetch(work.rank, own);
    pass.end();
  });
}

HostBody host_all_gather_copy_engine(DataType, OpKind) { return run_by_team; }

}  // namespace tutti
