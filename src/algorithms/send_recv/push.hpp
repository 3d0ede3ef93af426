// send_recv/push: the sender stores the message into the taker's memory.
//
//   short messages  in words that are their own flags (on the host: a chunk, then a flag)
//   others          into the taker's output, where the sender reaches that: the taker posts where
//                   it is, the sender stores there
//                   else chunk by chunk, as slots become free
//
// A lane does whatever can be done next, of all messages of the operation: none waits for another
// one but those to, or from, the same peer.
//
// Cost: 1 hop (packets), else 2 (the data, then a flag) or 3 (the post before them); the message
// over the sender's links, twice as much in packets.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "device/messages.hpp"

namespace tutti {

struct SendRecvPush {
  using Kernel = MessageKernel;
  using Types = MovedBytes;
  using Beside = Messages;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  // Lanes, as many as find a packets' chunk each.
  static Geometry geometry(const Extent& extent) {
    const std::size_t chunks = std::max<std::size_t>(ceil_div(extent.bytes, kPacketChunk), 1);
    return {static_cast<int>(std::min<std::size_t>(chunks, kLanes)), kMaxThreads};
  }

  static constexpr Algorithm kAlgorithm{
      .id = "send_recv/push",
      .collective = Collective::kSendRecv,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 3, .host_steps = 4, .wire = times<1>, .local = times<3>},
      .text = "the sender stores chunks into the receiver's slots, short messages as packets",
      .peers_read_input = false,
      .starts_early = true,
      .sends_messages = true,
      .min_threads = 128,
      .takes = moves,
      .geometry = geometry,
      .host = host,
      .cuda = cuda};
  // A chunk into a slot, or to its place, or from a slot: as many vectors as a thread has under
  // way.
  static constexpr KernelPromises kPromises{.loads = 8, .stores = 8, .barriers = 2, .loops = 2};
  static constexpr Traffic kTraffic{.hops = "3", .wire = "the message"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work, const Messages& messages);
};

template <class Team>
TUTTI_BODY Outcome carry_out(Team& team, const Messages& messages, const MessageMove& move) {
  const Message& message = messages.at[move.message];
  const bool whole = move.place != nullptr;
  const Range part = whole ? message.part(team.lane()) : message.chunk(team.lane(), move.index);
  const std::uint32_t mark = mark_of(move.chunk);
  if (move.kind == MessageMove::kOwn) {
    team.copy_chunk(message.output + part.first, message.input + part.first, part.count);
  } else if (move.kind == MessageMove::kSend) {
    const std::byte* const from = message.input + part.first;
    if (whole) {
      team.copy_chunk(move.place + part.first, from, part.count);
      return Outcome::kDone;
    }
    std::byte* const to = team.slot_at_taker(message, move.chunk);
    if (!message.in_packets) team.copy_chunk(to, from, part.count);
    if (message.in_packets) team.push_marked(to, from, part.count, mark);
  } else if (move.kind == MessageMove::kTake && !whole) {
    std::byte* const to = message.output + part.first;
    const std::byte* const from = team.own_slot(message, move.chunk);
    if (message.in_packets) return team.take_marked(to, from, part.count, {mark, message.peer});
    team.copy_chunk(to, from, part.count);
  }
  return Outcome::kDone;
}

template <class, class Team>
TUTTI_BODY Outcome SendRecvPush::run(Team& team, const KernelArgs&, const Messages& messages) {
  team.open_messages(messages);
  for (;;) {
    MessageMove move = {};
    if (team.next_move(move) != Outcome::kDone) return Outcome::kFailed;
    if (move.kind == MessageMove::kNothing) break;
    const Outcome carried = carry_out(team, messages, move);
    if (team.pass(move, carried) != Outcome::kDone) return Outcome::kFailed;
  }
  return team.close_messages();
}

}  // namespace tutti
