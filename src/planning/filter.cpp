#include "planning/filter.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/units.hpp"
#include "planning/access.hpp"

namespace tutti {
namespace {

// The ranks that an algorithm's limit counts: those that share memory.
int ranks_in_reach(const Topology& topology) {
  return topology.all_reach(Reach::kPeerMemory) ? topology.ranks : topology.most_ranks_on_a_node();
}

std::string why_not_on_backend(const Algorithm& row, const Topology& topology) {
  const bool cuda = topology.backend == Backend::kCuda;
  const int most = cuda ? row.max_ranks_cuda : row.max_ranks_host;
  const bool has_body = cuda ? row.cuda != nullptr : row.host != nullptr;
  if (most == 0 || (!has_body && executor_of(row) == kPeerExecutor)) {
    return fmt::format("not available on the {} backend", to_string(topology.backend));
  }
  if (const int ranks = ranks_in_reach(topology); ranks > most) {
    return fmt::format("supports at most {} ranks per node, and a node has {}", most, ranks);
  }
  return {};
}

std::string why_no_peer_access(const Topology& topology) {
  const auto apart = topology.pair_without(Reach::kPeerMemory);
  if (!apart) return {};
  if (topology.nodes() > 1) {
    return fmt::format("needs access to the memory of all ranks, which are on {} nodes",
                       topology.nodes());
  }
  if (topology.limited.empty()) {
    return "needs peer access between all GPUs, which is missing (`tutti doctor` says why)";
  }
  return fmt::format(
      "needs peer access between all GPUs, and rank {} cannot access rank {} (`tutti doctor` says "
      "why)",
      apart->first, apart->second);
}

std::string why_not_on_machine(const Algorithm& row, const Topology& topology) {
  if ((row.needs & kNeedsPeerAccess) != 0) {
    std::string reason = why_no_peer_access(topology);
    if (!reason.empty()) return reason;
  }
  if (row.program != nullptr && topology.backend == Backend::kCuda) {
    if (const auto apart = topology.pair_without(Reach::kCopyEngine)) {
      return fmt::format(
          "needs copy engines between all GPUs, and those of rank {} cannot access "
          "rank {}",
          apart->first, apart->second);
    }
  }
  if (topology.backend == Backend::kCuda && topology.compute < row.least_compute) {
    return fmt::format("needs GPUs of compute capability {}.{} or newer, and the oldest is {}.{}",
                       row.least_compute / 10, row.least_compute % 10, topology.compute / 10,
                       topology.compute % 10);
  }
  if ((row.needs & kNeedsNccl) != 0 && topology.ranks_per_gpu > 1) {
    return "needs a GPU per rank, as NCCL does, and ranks share one";
  }
  if ((row.needs & kNeedsNccl) != 0 && !topology.nccl) {
    return "needs NCCL, which not every rank could load (install libnccl2, or set "
           "TUTTI_NCCL_LIBRARY to its path)";
  }
  return {};
}

std::string why_not_over_network(const Algorithm& row, const Topology& topology) {
  if ((row.needs & kNeedsNetwork) == 0) return {};
  if (!topology.network) {
    if (topology.nodes() == 1) {
      return "sends messages over the network, which is opened between nodes, and all ranks are on "
             "one (TUTTI_TOPOLOGY=nolocal takes them for several)";
    }
    return fmt::format(
        "sends messages over the network, which not every rank can ({})",
        topology.why_no_network.empty() ? "`tutti doctor` says why" : topology.why_no_network);
  }
  if ((row.needs & kNeedsEvenNodes) == 0 || topology.has_even_nodes()) return {};
  if (topology.nodes() < 2) return "needs two nodes or more, and all ranks are on one";
  return fmt::format("needs equally many ranks on each node, and nodes have {} to {}",
                     topology.least_ranks_on_a_node(), topology.most_ranks_on_a_node());
}

// The driver gives graphs too few queues for more: the kernels of one would wait behind those of
// another, which wait for them.
constexpr int kMostCapturedThreads = 3;

std::string why_not_captured(const Algorithm& row, const Request& request,
                             const Topology& topology) {
  if (request.capturing && row.network != nullptr) {
    return "cannot be captured: a thread of the host sends its messages, and graphs do not wait "
           "for "
           "it";
  }
  const bool threads_share = topology.one_process && topology.ranks_per_gpu > kMostCapturedThreads;
  if (!request.capturing || !threads_share) return {};
  return fmt::format(
      "cannot be captured where more than {} ranks of one process share a GPU, and {} do: give "
      "each rank a process of its own",
      kMostCapturedThreads, topology.ranks_per_gpu);
}

// NCCL 2.28.3 scales for a rank alone in a kernel that leaves the last of 65537 8-byte elements as
// it was. Whatever else it may leave: no other row is slower there.
bool nccl_scales_alone(const Algorithm& row, const Request& request, const Topology& topology) {
  const bool scales = request.op == OpKind::kAvg || request.op == OpKind::kPreMulSum;
  return (row.needs & kNeedsNccl) != 0 && topology.ranks == 1 && scales;
}

std::string why_not_in_windows(const Algorithm& row, const Request& request,
                               const Topology& topology) {
  const bool copies = (row.needs & kNeedsNcclCopyEngines) != 0;
  const Request::Windows& windows = copies ? request.copies : request.windows;
  if (topology.nccl_version < (copies ? kFirstNcclWithCopyEngines : kFirstNcclWithWindows)) {
    return fmt::format("needs NCCL {} or newer on every rank, and the oldest is {}",
                       copies ? "2.28" : "2.27", nccl_text(topology));
  }
  if (topology.ranks == 1) return "needs two ranks or more";
  if (!windows.none.empty()) {
    return fmt::format("needs windows of NCCL's, and there are none: {}", windows.none);
  }
  // In place, other pieces would be aligned on some ranks and not on others.
  if (width_of_pieces(request, topology) < kVectorBytes) {
    return fmt::format("needs a multiple of {} bytes per rank, and there are {}", kVectorBytes,
                       request.bytes() / static_cast<std::size_t>(topology.ranks));
  }
  if (!request.symmetric() || !request.in_blocks) {
    return "needs both buffers in memory that this communicator allocated, aligned to 16 bytes: "
           "NCCL's windows hold no other";
  }
  if (!windows.ready) {
    return "needs windows of NCCL's, which cannot be made inside a capture: call prepare_nccl() "
           "with this row in TUTTI_TUNE or in a table, or take it once outside";
  }
  if (copies && request.default_stream) {
    return "needs a stream other than the default stream: NCCL's copy engines do not support that";
  }
  return {};
}

// Of reduce_scatter, which splits a matrix along its last dimension where its rows are told.
std::string why_not_of_rows(const Algorithm& row, const Request& request) {
  if (request.collective != Collective::kReduceScatter) return {};
  if (row.splits_rows && request.hidden == 0) {
    return "only splits a matrix along its last dimension";
  }
  if (!row.splits_rows && request.hidden > 0) {
    return "gives each rank a contiguous block, and this call splits rows";
  }
  return {};
}

std::string why_not_in_packets(const Algorithm& row, const Request& request, int ranks) {
  const std::size_t needed = packet_use(row, request.extent(ranks), request.dtype).bytes();
  if (row.packets == nullptr || (request.packet_bytes > 0 && needed <= request.packet_bytes)) {
    return {};
  }
  return fmt::format(
      "sends packets: a message of {} needs {} of them, and there is room for {} "
      "(TUTTI_PACKET_BYTES{})",
      format_bytes(request.bytes()), format_bytes(needed), format_bytes(request.packet_bytes),
      request.capturing ? ", and on how many streams this communicator was captured" : "");
}

// On the host no budget is looked at: it has no multiprocessors.
std::optional<int> budget_of(const Request& request, const Topology& topology) {
  return topology.backend == Backend::kCuda ? request.sm_budget : std::nullopt;
}

std::string why_not_in_budget(const Algorithm& row, const Request& request,
                              const Topology& topology) {
  const auto budget = budget_of(request, topology);
  if (!budget || only_meets(row) || (row.needs & kNeedsNcclCopyEngines) != 0) return {};
  if ((row.needs & kNeedsNccl) != 0) {
    return fmt::format("uses as many SMs as NCCL decides, and the budget is {}", *budget);
  }
  if (*budget == 0 && row.network != nullptr) {
    return "occupies one SM until its messages have come, and the budget is 0";
  }
  if (*budget == 0) {
    return row.program != nullptr ? "reduces on SMs between its copies, and the budget is 0"
                                  : "moves bytes on SMs, and the budget is 0";
  }
  if (row.then.kernels > 0) {
    return fmt::format("has a second kernel of as many blocks as tokens, and the budget is {} SMs",
                       *budget);
  }
  return {};
}

}  // namespace

std::string why_not(const Algorithm& row, const Request& request, const Topology& topology) {
  std::string reason = why_not_on_backend(row, topology);
  if (reason.empty() && row.takes != nullptr && !row.takes(request.dtype, request.op)) {
    reason =
        fmt::format("does not support {} of {}", to_string(request.op), to_string(request.dtype));
  }
  if (reason.empty()) reason = why_not_on_machine(row, topology);
  if (reason.empty()) reason = why_not_over_network(row, topology);
  if (reason.empty()) reason = why_not_captured(row, request, topology);
  if (reason.empty() && nccl_scales_alone(row, request, topology)) {
    reason = fmt::format("leaves elements unwritten in {} of one rank", to_string(request.op));
  }
  if (reason.empty()) reason = why_not_of_rows(row, request);
  if (reason.empty() && request.counts_on_device && row.counts_on_host) {
    reason = "needs counts on the host, and they lie on the device";
  }
  if (reason.empty()) reason = why_not_in_packets(row, request, topology.ranks);
  if (reason.empty() && row.sends_messages && !request.has_lanes) {
    reason = "needs slots for messages, and TUTTI_MESSAGE_BYTES leaves no room for them";
  }
  if (reason.empty() && has_ring_slots(row) && request.ring_bytes == 0) {
    reason =
        "needs staging for its chunks, which captures on further streams of a communicator do not "
        "have";
  }
  if (!reason.empty()) return reason;

  if ((row.needs & kNeedsNccl) != 0 && !request.nccl_ready) {
    return "needs NCCL's communicator, which cannot be made inside a capture, nor by two ranks: "
           "call "
           "prepare_nccl() first";
  }
  if ((row.needs & kNeedsAnyWindows) != 0) {
    reason = why_not_in_windows(row, request, topology);
  }
  if (!reason.empty()) return reason;
  reason = why_not_in_budget(row, request, topology);
  if (!reason.empty()) return reason;
  if (request.deterministic && row.order != Order::kRankOrder) {
    return fmt::format("reduces in the order '{}', and deterministic results need rank_order",
                       to_string(row.order));
  }
  // NCCL has no barrier.
  const bool may_be_nccls = request.collective != Collective::kBarrier;
  if (request.only_nccl && may_be_nccls && (row.needs & kNeedsNccl) == 0) {
    return "disabled: TUTTI_DISABLE=1 leaves every operation to NCCL";
  }
  return {};
}

bool is_emulated(const Algorithm& row, const Topology& topology) {
  return (row.needs & kNeedsMulticast) != 0 && !topology.multicast;
}

std::string why_not_unnamed(const Algorithm& row, const Request& request,
                            const Topology& topology) {
  std::string reason = why_not(row, request, topology);
  if (reason.empty() && is_emulated(row, topology)) {
    reason =
        "needs NVLink multicast, which is off or missing; requested by name, it is emulated by a "
        "loop over the peers";
  }
  return reason;
}

int blocks_within(const Request& request, const Topology& topology) {
  return std::max(budget_of(request, topology).value_or(std::numeric_limits<int>::max()), 1);
}

int width_of_pieces(const Request& request, const Topology& topology) {
  const bool equal = has_pieces(request.collective) && !is_uneven(request.collective);
  if (topology.backend != Backend::kCuda || !equal) return kVectorBytes;
  const std::size_t piece = request.bytes() / static_cast<std::size_t>(topology.ranks);
  int width = kVectorBytes;
  while (piece % static_cast<std::size_t>(width) != 0) width /= 2;
  return width;
}

namespace {

// Whether the model may choose the row because pieces are no whole vectors. Copy engines are as
// fast wherever a piece begins. But if threads share a GPU, a copy may wait for another rank's
// kernel; and if buffers are registered late, each captured call would exchange handles.
bool suits_narrow_pieces(const Algorithm& row, const Request& request, const Topology& topology) {
  if (width_of_pieces(request, topology) >= kVectorBytes) return false;
  if (row.cost.narrow > 0) return true;
  return only_fetches(row) && !topology.threads_share_gpus() && !request.registers_late;
}

}  // namespace

std::string why_not_by_itself(const Algorithm& row, const Request& request,
                              const Topology& topology, MeasuredWith measured) {
  // Whoever gives no SM has asked for copy engines, whatever else would be faster.
  const bool meant = only_fetches(row) && budget_of(request, topology) == 0;
  const bool compared =
      topology.backend == Backend::kHost && topology.ranks <= row.compared_on_host;
  const bool known_well = compared || meant || suits_narrow_pieces(row, request, topology);
  if (row.only_where_measured && !known_well && measured == MeasuredWith::kNothing) {
    return "selected automatically only by a tuning table";
  }
  if ((row.needs & kNeedsNetwork) != 0 && topology.nodes() == 1) {
    return "selected automatically only between nodes";
  }
  if ((row.needs & kNeedsNcclWindows) != 0 && topology.nccl_version < kFirstNcclThatAbortsThem) {
    return fmt::format(
        "selected automatically only with NCCL 2.29.7 or newer: {} cannot abort its kernels",
        nccl_text(topology));
  }
  if ((row.needs & kNeedsNcclCopyEngines) != 0) {
    return "used only if requested by name: an abort cannot end a wait in NCCL's copy engines";
  }
  // Through slots its chunks are short. On GPUs it loses less by that than others do by staging
  // (docs/internals/performance_notes.md).
  const bool known = measured == MeasuredWith::kPlain ||
                     (measured == MeasuredWith::kSymmetric && topology.backend == Backend::kCuda);
  const bool through_slots =
      has_ring_slots(row) && access_to(row, request, topology) == BufferAccess::kStaged;
  if (through_slots && row.peers_write_output && !known) {
    return "selected automatically only out of place with symmetric buffers, or by a tuning table";
  }
  return {};
}

}  // namespace tutti
