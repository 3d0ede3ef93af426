// What the engine sends, and when: credits, signs of life and chunks.
#include <algorithm>
#include <array>
#include <utility>

#include "executors/network/engine_impl.hpp"

namespace tutti {
namespace {

std::size_t bytes_in_all(const NetworkPartitions& partitions, int peer) {
  const auto at = static_cast<std::size_t>(peer);
  const std::size_t last = partitions.last.bytes_from[at];
  return partitions.count == 1 ? last
                               : last + (partitions.count - 1) * partitions.full.bytes_from[at];
}

}  // namespace

// The peers that bring something to this partition learn that it is open if they may not send all
// of it unasked. They also learn, now and then, which operations this rank has begun: else they
// would not know how far they may go ahead.
void NetworkEngine::Impl::give_credits(RunningOperation& operation, std::uint32_t partition) {
  if (partition >= 2 && group_.omitted == NetworkRule::kRepeat) return;
  NetworkDomain& in = domain(operation.place().domain);
  const std::uint64_t sequence = operation.place().sequence;
  const auto& program = operation.partitions().program(partition);
  for (int rank = 0; rank < group_.ranks; ++rank) {
    if (program.bytes_from[static_cast<std::size_t>(rank)] == 0) continue;
    const bool is_large =
        operation.what().on_gpu || bytes_in_all(operation.partitions(), rank) > kUnaskedBytes;
    if (partition != 0) {
      // The peer would forget it, had it not begun the operation.
      if (is_large && in.begun(rank) < sequence) operation.flow(rank).owed = partition;
      if (is_large && in.begun(rank) >= sequence) queue_credit(operation, rank, partition);
    } else if (is_large ? in.told(rank) < sequence
                        : in.told(rank) + kOperationsAhead / 2 <= sequence) {
      queue_credit(operation, rank, 0);
      in.told(rank) = sequence;
    }
  }
}

void NetworkEngine::Impl::queue_credit(const RunningOperation& operation, int rank,
                                       std::uint32_t partition) {
  NetworkMessage message;
  message.kind = NetworkMessage::Kind::kCredit;
  message.domain = domain(operation.place().domain).kind;
  message.sequence = operation.place().sequence;
  message.signature = operation.what().signature;
  message.partition = partition;
  controls_.push_back({rank, message});
}

bool NetworkEngine::Impl::post_controls() {
  for (int rank = 0; rank < group_.ranks; ++rank) {
    NetworkMessage answer;
    answer.kind = NetworkMessage::Kind::kAlive;
    answer.chunk = NetworkMessage::Sign::kAnswer;
    if (std::exchange(peer(rank).asks, false)) controls_.push_back({rank, answer});
    answer.chunk = NetworkMessage::Sign::kHasAll;
    if (std::exchange(peer(rank).leaves, false)) controls_.push_back({rank, answer});
  }
  const bool any = !controls_.empty();
  WireTicket ticket = 0;  // nobody waits for it
  for (const Control& control : controls_) {
    if (!peer(control.peer).is_lost) post(control.peer, control.message, {}, ticket);
  }
  controls_.clear();
  return any;
}

// A peer to which nothing can be sent is lost, which matters to those operations that need it.
bool NetworkEngine::Impl::post(int rank, NetworkMessage message, ByteView payload,
                               WireTicket& ticket, bool from_gpu) {
  message.group = group_.id;
  message.from = group_.rank;
  const NetworkHeader header = to_header(message);
  const auto posted =
      from_gpu ? wire_.post_from_gpu(rank, header, payload) : wire_.post(rank, header, payload);
  if (!posted.is_ok()) {
    lose(rank, posted.status());
    return false;
  }
  ticket = *posted;
  return true;
}

// A chunk to each peer in turn, until none may be sent.
bool NetworkEngine::Impl::post_chunks() {
  bool any = false;
  for (bool more = true; more && failure_.is_ok();) {
    more = false;
    for (int k = 1; k < group_.ranks && failure_.is_ok(); ++k) {
      more |= post_chunk_to((group_.rank + k) % group_.ranks);
    }
    any |= more;
  }
  return any;
}

bool NetworkEngine::Impl::post_chunk_to(int rank) {
  Peer& to = peer(rank);
  if (to.is_lost || to.posted_messages >= kPostedMessages) return false;
  for (std::size_t k = 0; k < to.waiting.size(); ++k) {
    RunningOperation& operation = *to.waiting[k];
    std::array<Outgoing, 2> sends;
    const std::size_t found = operation.outgoing(rank, sends);
    for (std::size_t n = 0; n < found; ++n) {
      const std::size_t bytes = operation.payload_bytes(sends[n]);
      if (to.posted_messages > 0 && to.posted_bytes + bytes > kPostedBytes) return false;
      if (!may_send(operation, sends[n], rank)) continue;
      post_chunk(operation, sends[n], rank);
      return true;
    }
    if (found == 0) to.waiting.erase(to.waiting.begin() + static_cast<std::ptrdiff_t>(k--));
  }
  return false;
}

bool NetworkEngine::Impl::may_send(RunningOperation& operation, const Outgoing& send, int rank) {
  NetworkDomain& in = domain(operation.place().domain);
  const std::uint64_t sequence = operation.place().sequence, begun = in.begun(rank);
  auto& flow = operation.flow(rank);
  const bool is_open = send.partition == 0 ? begun >= sequence : flow.credited > send.partition;
  if (is_open) return true;
  if (operation.what().on_gpu) return group_.omitted == NetworkRule::kPlaced;
  const bool is_far = begun + kOperationsAhead <= sequence;
  if (is_far && group_.omitted != NetworkRule::kAhead) return false;
  const std::size_t bytes = flow.unasked_bytes + cost_of_message(operation.payload_bytes(send));
  if (bytes > kUnaskedBytes && group_.omitted != NetworkRule::kUnasked) return false;
  flow.unasked_bytes = bytes;
  flow.last_unasked = std::max(flow.last_unasked, send.partition);
  return true;
}

void NetworkEngine::Impl::post_chunk(RunningOperation& operation, const Outgoing& send, int rank) {
  NetworkDomain& in = domain(operation.place().domain);
  Flight flight;
  flight.operation = &operation;
  flight.what = send;
  flight.peer = rank;
  flight.bytes = operation.payload_bytes(send);
  NetworkMessage message = operation.header(send);
  message.domain = in.kind;
  const ByteView payload = operation.payload(send, flight.staged);
  operation.take_outgoing(rank, send.partition);
  const bool from_gpu = operation.what().on_gpu && !payload.empty();
  if (!post(rank, message, payload, flight.ticket, from_gpu)) return;
  in.told(rank) = std::max(in.told(rank), message.sequence);
  peer(rank).was_sent_to = true;
  peer(rank).posted_bytes += flight.bytes;
  ++peer(rank).posted_messages;
  flights_.push_back(std::move(flight));
  if (group_.omitted == NetworkRule::kSent) {
    operation.sent(send.partition, send.chunk);
    flights_.back().operation = nullptr;
    settle(operation);
  }
}

bool NetworkEngine::Impl::drain_sent() {
  const bool any = !sent_.empty();
  for (const WireTicket ticket : sent_) {
    const auto earlier = [](const Flight& flight, WireTicket than) { return flight.ticket < than; };
    const auto begin = flights_.begin() + static_cast<std::ptrdiff_t>(first_flight_);
    const auto at = std::lower_bound(begin, flights_.end(), ticket, earlier);
    if (at != flights_.end() && at->ticket == ticket && !at->is_sent) finish(*at);
  }
  sent_.clear();
  while (first_flight_ < flights_.size() && flights_[first_flight_].is_sent) ++first_flight_;
  constexpr std::size_t kMostSentKept = 256;
  if (first_flight_ == flights_.size() || first_flight_ > kMostSentKept) {
    flights_.erase(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(first_flight_));
    first_flight_ = 0;
  }
  return any;
}

void NetworkEngine::Impl::finish(Flight& flight) {
  flight.is_sent = true;
  flight.staged = {};
  peer(flight.peer).posted_bytes -= flight.bytes;
  --peer(flight.peer).posted_messages;
  if (flight.operation == nullptr) return;
  flight.operation->sent(flight.what.partition, flight.what.chunk);
  settle(*flight.operation);
}

}  // namespace tutti
