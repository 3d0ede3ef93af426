#include "executors/peer/host.hpp"

namespace tutti {

Outcome run_on_host(HostBody body, const KernelArgs& work, const ProtocolMutation* weakening,
                    std::uint64_t* waits_for) {
  for (int block = 0; block < work.blocks; ++block) {
    HostTeam team(work, block, weakening, waits_for);
    if (body(team, work) != Outcome::kDone) return Outcome::kFailed;
  }
  return Outcome::kDone;
}

}  // namespace tutti
