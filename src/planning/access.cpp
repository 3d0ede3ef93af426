#include "planning/access.hpp"

namespace tutti {

bool stages_any_buffer(const Algorithm& row) {
  const RootSide alone = root_side(row.collective);
  return (row.peers_read_input && alone == RootSide::kInput) ||
         (row.peers_write_output && alone == RootSide::kOutput);
}

// Where the root's alone lies, only the root knows: that buffer is never one that peers reach.
BufferAccess access_to(const Algorithm& row, const Request& request, const Topology& topology) {
  const bool by_switch = (row.needs & kNeedsMulticast) != 0 && topology.multicast;
  const BufferReach needed = by_switch                ? BufferReach::kSwitch
                             : row.program != nullptr ? BufferReach::kPeers
                                                      : BufferReach::kKernels;
  const RootSide alone = root_side(request.collective);
  const bool input = alone != RootSide::kInput && request.input_reach >= needed;
  const bool output = alone != RootSide::kOutput && request.output_reach >= needed;
  if (request.in_place && row.in_place_needs_staging) return BufferAccess::kStaged;
  if ((!row.peers_read_input || input) && (!row.peers_write_output || output)) {
    return BufferAccess::kMapped;
  }
  // Copies are enqueued with their addresses: for them it is not enough to know those later.
  const bool registers = row.program == nullptr ? request.registers_late : request.registers_now;
  if (stages_any_buffer(row)) return BufferAccess::kStaged;
  if (registers && !by_switch && request.count > 0) return BufferAccess::kLate;
  return request.by_address ? BufferAccess::kByAddress : BufferAccess::kStaged;
}

bool goes_through_staging(const Algorithm& row, const Request& request, const Topology& topology) {
  if (has_ring_slots(row) || row.pushes_through_staging) return false;
  return access_to(row, request, topology) == BufferAccess::kStaged;
}

}  // namespace tutti
