#include "algorithms/barrier/rows.hpp"

#include "algorithms/meeting.hpp"
#include "algorithms/moving.hpp"

namespace tutti {
namespace {

double nothing(int) { return 0; }

constexpr Algorithm kRows[] = {
    {.id = "barrier/flags",
     .collective = Collective::kBarrier,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 1.5, .wire = nothing},
     .text = "every rank tells every other that it has come, and waits for their word",
     .peers_read_input = false,
     .takes = moves,
     .geometry = meeting_geometry,
     .host = host_barrier_flags<HostTeam>,
     .cuda = cuda_meeting},
    {.id = "barrier/multicast",
     .collective = Collective::kBarrier,
     .family = Family::kMulticast,
     .needs = kNeedsPeerAccess | kNeedsMulticast,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 1.5, .wire = nothing},
     .text = "as flags, but the switch tells every other rank",
     .peers_read_input = false,
     .only_where_measured = true,
     .takes = moves,
     .geometry = meeting_geometry,
     .host = host_barrier_flags<HostTeam>,
     .cuda = cuda_barrier_multicast},
};

}  // namespace

std::span<const Algorithm> barrier_rows() { return kRows; }

}  // namespace tutti
