#include "algorithms/send_recv/rows.hpp"

#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "device/messages.hpp"

namespace tutti {
namespace {

double whole(int) { return 1; }
// Stored into a slot, loaded from it, stored into the output.
double through_slots(int) { return 3; }

// Lanes, as many as find a packets' chunk each.
Geometry lanes_geometry(const Extent& extent) {
  const std::size_t chunks = std::max<std::size_t>(ceil_div(extent.bytes, kPacketChunk), 1);
  return {static_cast<int>(std::min<std::size_t>(chunks, kLanes)), kMaxThreads};
}

constexpr Algorithm kRows[] = {
    {.id = "send_recv/push",
     .collective = Collective::kSendRecv,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 3, .host_steps = 4, .wire = whole, .local = through_slots},
     .text = "the sender stores chunks into slots at the taker, short ones as packets",
     .peers_read_input = false,
     .starts_early = true,
     .sends_messages = true,
     .min_threads = 128,
     .takes = moves,
     .geometry = lanes_geometry,
     .host = host_send_recv_push<HostTeam>,
     .cuda = cuda_send_recv_push},
    {.id = "send_recv/nccl",
     .collective = Collective::kSendRecv,
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .cost = {.steps = 7, .wire = whole},
     .text = "NVIDIA's library, where it is installed",
     .peers_read_input = false,
     .takes = moves,
     .geometry = library_geometry},
};

}  // namespace

std::span<const Algorithm> send_recv_rows() { return kRows; }

}  // namespace tutti
