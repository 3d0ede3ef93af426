#include "executors/network/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "executors/network/engine_impl.hpp"

namespace tutti {

NetworkEngine::Impl::Impl(Group group, Wire& wire)
    : group_(std::move(group)),
      wire_(wire),
      domains_(1 + 2 * static_cast<std::size_t>(group_.ranks)),
      peers_(static_cast<std::size_t>(group_.ranks)),
      life_(group_.ranks) {
  wire_.set_handlers({
      [this](ByteView header, ByteView payload) { arrived(header, payload); },
      [this](WireTicket ticket) { sent_.push_back(ticket); },
      [this](int rank, const Status& why) { lose(rank, why); },
      [this](ByteView header, std::size_t bytes) { return place(header, bytes); },
  });
}

void NetworkEngine::Impl::fail(Status why, int missing) {
  if (!failure_.is_ok()) return;
  failure_ = std::move(why);
  missing_ = missing;
}

std::size_t NetworkEngine::Impl::domain_index(const NetworkOperation& operation) const {
  if (!operation.pair) return 0;
  const bool sends = operation.pair->sender == group_.rank;
  const int other = sends ? operation.pair->receiver : operation.pair->sender;
  return 1 + 2 * static_cast<std::size_t>(other) + (sends ? 0 : 1);
}

std::size_t NetworkEngine::Impl::domain_index(const NetworkMessage& message) const {
  if (message.domain == NetworkMessage::Domain::kGroup) return 0;
  const bool this_rank_sends = message.domain == NetworkMessage::Domain::kToSender;
  return 1 + 2 * static_cast<std::size_t>(message.from) + (this_rank_sends ? 0 : 1);
}

NetworkDomain& NetworkEngine::Impl::domain(std::size_t index) {
  auto& found = domains_[index];
  if (!found) {
    using Kind = NetworkMessage::Domain;
    const Kind kind = index == 0       ? Kind::kGroup
                      : index % 2 == 1 ? Kind::kToReceiver
                                       : Kind::kToSender;
    found = std::make_unique<NetworkDomain>(kind, index == 0 ? peers_.size() : 1);
  }
  return *found;
}

// Otherwise it is a stranger's, or an ended group's.
bool NetworkEngine::Impl::is_of_group(const Result<NetworkMessage>& parsed) const {
  return parsed.is_ok() && parsed->group == group_.id && parsed->from < group_.ranks &&
         parsed->from != group_.rank;
}

void NetworkEngine::Impl::arrived(ByteView header, ByteView payload) {
  const auto parsed = parse_network_message(header);
  if (!is_of_group(parsed)) return;
  something_came_ = true;
  life_.heard(parsed->from, now_);
  switch (parsed->kind) {
    case NetworkMessage::Kind::kProof:  // was taken before there was an engine
      return;
    case NetworkMessage::Kind::kAlive:
      take_sign(*parsed);
      return;
    case NetworkMessage::Kind::kData:
    case NetworkMessage::Kind::kCredit:
      if (failure_.is_ok()) take(*parsed, payload);
      return;
  }
}

// Whatever has no place here arrives on the host, and fails there.
std::byte* NetworkEngine::Impl::place(ByteView header, std::size_t bytes) {
  const auto parsed = parse_network_message(header);
  const bool is_data = is_of_group(parsed) && parsed->kind == NetworkMessage::Kind::kData;
  if (!is_data || !failure_.is_ok()) return nullptr;
  const RunningOperation* operation = domain(domain_index(*parsed)).find(parsed->sequence);
  if (operation == nullptr || operation->what().signature != parsed->signature) return nullptr;
  return operation->place(*parsed, bytes);
}

void NetworkEngine::Impl::take_sign(const NetworkMessage& message) {
  using Sign = NetworkMessage::Sign;
  Peer& from = peer(message.from);
  if (message.chunk == Sign::kQuestion) from.asks = true;
  if (message.chunk == Sign::kLeaving) from.leaves = true;
  if (message.chunk == Sign::kHasAll) from.is_asked = false;
}

void NetworkEngine::Impl::take(const NetworkMessage& message, ByteView payload) {
  NetworkDomain& in = domain(domain_index(message));
  note_begun(in, message);
  const bool is_credit = message.kind == NetworkMessage::Kind::kCredit;
  if (message.sequence >= in.next()) {
    if (!is_credit) hold_early(in, message, payload);
    return;
  }
  RunningOperation* operation = in.find(message.sequence);
  if (operation == nullptr && group_.omitted == NetworkRule::kSequence) operation = in.oldest();
  if (operation == nullptr || !has_same_signature(*operation, message)) return;
  if (is_credit) {
    auto& flow = operation->flow(message.from);
    flow.credited = std::max(flow.credited, message.partition + 1);
    if (message.partition >= flow.last_unasked) flow.unasked_bytes = 0;
    return;
  }
  if (message.partition >= operation->opened() &&
      message.partition < operation->partitions().count) {
    hold(*operation, message, payload);
    return;
  }
  const auto taken = operation->arrived(message, payload);
  if (!taken.is_ok()) fail(taken.status().with_context(group_.name(message.from)));
  settle(*operation);
}

namespace {

Status too_much(const std::string& sender, const NetworkMessage& message) {
  return {StatusCode::kMismatch,
          fmt::format("{} has sent more of operation {} than was agreed before this rank began it: "
                      "all ranks must run the same version of tutti",
                      sender, message.sequence)};
}

}  // namespace

void NetworkEngine::Impl::hold_early(NetworkDomain& in, const NetworkMessage& message,
                                     ByteView payload) {
  const bool is_far = message.sequence >= in.opened + kOperationsAhead;
  auto& early = in.early[message.sequence];
  std::size_t& bytes = early.bytes[message.from];
  bytes += cost_of_message(payload.size());
  if (is_far || bytes > kUnaskedBytes) {
    fail(too_much(group_.name(message.from), message));
    return;
  }
  if (group_.omitted == NetworkRule::kKeep) return;
  early.held.push_back({message, to_bytes(payload)});
}

void NetworkEngine::Impl::hold(RunningOperation& operation, const NetworkMessage& message,
                               ByteView payload) {
  std::size_t& bytes = operation.flow(message.from).held_bytes;
  bytes += cost_of_message(payload.size());
  if (bytes > kUnaskedBytes) {
    fail(too_much(group_.name(message.from), message));
    return;
  }
  operation.held().push_back({message, to_bytes(payload)});
}

void NetworkEngine::Impl::note_begun(NetworkDomain& in, const NetworkMessage& message) {
  std::uint64_t& begun = in.begun(message.from);
  for (; begun < message.sequence; ++begun) {
    if (begun + 1 >= in.next()) {
      begun = message.sequence;
      return;
    }
    RunningOperation* operation = in.find(begun + 1);
    if (operation == nullptr) continue;
    std::uint32_t& owed = operation->flow(message.from).owed;
    if (owed != 0) queue_credit(*operation, message.from, owed);
    owed = 0;
    auto& flow = operation->flow(message.from);
    if (flow.last_unasked == 0) flow.unasked_bytes = 0;
  }
}

bool NetworkEngine::Impl::has_same_signature(const RunningOperation& operation,
                                             const NetworkMessage& message) {
  if (operation.what().signature == message.signature) return true;
  fail({StatusCode::kMismatch,
        fmt::format("{}: run by {} (signature {:08x}), and {} runs another operation in its place "
                    "(signature {:08x}): all ranks must make the same calls in the same order",
                    operation.what().text, group_.name(group_.rank), operation.what().signature,
                    group_.name(message.from), message.signature)});
  return false;
}

void NetworkEngine::Impl::lose(int rank, const Status& why) {
  something_came_ = true;
  if (!peer(rank).is_lost) peer(rank).lost_at = now_;
  peer(rank).is_lost = true;
  peer(rank).why_lost = why;
}

std::uint64_t NetworkEngine::Impl::start(NetworkOperation operation) {
  const std::uint64_t ticket = first_ticket_ + operations_.size();
  const std::size_t index = domain_index(operation);
  NetworkDomain& in = domain(index);
  const auto partitions =
      cache_.find({operation.schedule, operation.shape, size_of(operation.dtype),
                   operation.chunk_bytes, group_.most_scratch_bytes, group_.omitted});
  if (!partitions.is_ok()) {
    fail(partitions.status().with_context(operation.text));
    operations_.push_back(std::make_unique<RunningOperation>());
    return ticket;
  }
  if (spare_.empty()) spare_.push_back(std::make_unique<RunningOperation>());
  auto running = std::move(spare_.back());
  spare_.pop_back();
  first_deadline_ = std::min(first_deadline_, operation.deadline);
  running->begin(std::move(operation), *partitions, {ticket, index, in.next()}, group_.omitted);
  const auto early = in.early.find(in.next());
  in.add(running.get());
  if (early != in.early.end()) {
    for (auto& held : early->second.held) {
      if (!has_same_signature(*running, held.message)) break;
      running->flow(held.message.from).held_bytes += cost_of_message(held.payload.size());
    }
    running->held() = std::move(early->second.held);
    in.early.erase(early);
  }
  operations_.push_back(std::move(running));
  may_open_more_ = true;
  return ticket;
}

bool NetworkEngine::Impl::may_open(const RunningOperation& operation) {
  if (!operation.may_open()) return false;
  const auto& place = operation.place();
  if (operation.opened() == 0 && domain(place.domain).opened + 1 != place.sequence) return false;
  // Only operations of the group come in the same order on all ranks, so only they may wait for
  // memory.
  const std::size_t bytes = operation.scratch_bytes();
  return bytes == 0 || place.domain != 0 || scratch_in_use_ == 0 ||
         scratch_in_use_ + bytes <= 2 * group_.most_scratch_bytes;
}

bool NetworkEngine::Impl::open_partitions() {
  bool opened = false;
  while (may_open_more_ && failure_.is_ok()) {
    may_open_more_ = false;
    for (const auto& operation : operations_) {
      while (operation && failure_.is_ok() && may_open(*operation)) {
        open(*operation);
        opened = true;
      }
    }
  }
  return opened;
}

void NetworkEngine::Impl::open(RunningOperation& operation) {
  const std::uint32_t partition = operation.opened();
  if (partition == 0) {
    domain(operation.place().domain).opened = operation.place().sequence;
    operation.began_at = now_;
    next_question_ = std::min(next_question_, now_ + life_interval());
  }
  operation.open(take_scratch(operation.scratch_bytes()));
  give_credits(operation, partition);
  auto& held = operation.held();
  for (std::size_t k = 0; k < held.size(); ++k) {
    if (held[k].message.partition != partition) continue;
    const auto one = std::move(held[k]);
    if (k + 1 != held.size()) held[k] = std::move(held.back());
    held.pop_back();
    --k;
    operation.flow(one.message.from).held_bytes -= cost_of_message(one.payload.size());
    const auto taken = operation.arrived(one.message, one.payload);
    if (!taken.is_ok()) fail(taken.status().with_context(group_.name(one.message.from)));
  }
  settle(operation);
}

NetworkScratch NetworkEngine::Impl::take_scratch(std::size_t bytes) {
  if (bytes == 0) return {};
  scratch_in_use_ += bytes;
  for (auto& spare : spare_scratch_) {
    if (spare.bytes != bytes) continue;
    std::swap(spare, spare_scratch_.back());
    NetworkScratch found = std::move(spare_scratch_.back());
    spare_scratch_.pop_back();
    scratch_spare_ -= bytes;
    return found;
  }
  return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
}

// What the operation has said since the last call.
void NetworkEngine::Impl::settle(RunningOperation& operation) {
  for (const int rank : operation.new_outgoing()) {
    auto& waiting = peer(rank).waiting;
    const auto later = [](const RunningOperation* a, const RunningOperation* b) {
      return a->place().ticket < b->place().ticket;
    };
    const auto at = std::lower_bound(waiting.begin(), waiting.end(), &operation, later);
    if (at == waiting.end() || *at != &operation) waiting.insert(at, &operation);
  }
  operation.new_outgoing().clear();
  for (NetworkScratch& scratch : operation.free_scratch()) {
    may_open_more_ = true;
    const std::size_t bytes = scratch.bytes;
    if (bytes == 0) continue;
    scratch_in_use_ -= bytes;
    while (!spare_scratch_.empty() && scratch_spare_ + bytes > 2 * group_.most_scratch_bytes) {
      scratch_spare_ -= spare_scratch_.front().bytes;
      spare_scratch_.erase(spare_scratch_.begin());
    }
    scratch_spare_ += bytes;
    spare_scratch_.push_back(std::move(scratch));
  }
  if (!operation.free_scratch().empty() && operation.ended()) ended_.push_back(&operation);
  operation.free_scratch().clear();
}

void NetworkEngine::Impl::retire() {
  constexpr std::size_t kMostSpare = 16;
  for (RunningOperation* operation : ended_) {
    domain(operation->place().domain).remove(operation->place().sequence);
    auto& place = operations_[static_cast<std::size_t>(operation->place().ticket - first_ticket_)];
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(place));
    place.reset();
  }
  ended_.clear();
  while (!operations_.empty() && !operations_.front()) {
    operations_.pop_front();
    ++first_ticket_;
  }
  if (operations_.empty()) {
    first_deadline_ = next_question_ = Clock::time_point::max();
  }
}

Result<bool> NetworkEngine::Impl::progress(Clock::time_point now) {
  TUTTI_TRY(failure_);
  now_ = now;
  something_came_ = false;
  bool did = wire_.progress();
  did |= something_came_;
  do {
    did |= drain_sent();
    did |= open_partitions();
    if (!failure_.is_ok()) break;
    did |= post_controls();
    did |= post_chunks();
  } while (failure_.is_ok() && (may_open_more_ || !sent_.empty()));
  retire();
  check_lost();
  if (failure_.is_ok()) ask_for_life();
  if (failure_.is_ok()) check_deadlines(did);
  TUTTI_TRY(failure_);
  return did;
}

bool NetworkEngine::Impl::has_ended(std::uint64_t ticket) const {
  return ticket < first_ticket_ || (ticket - first_ticket_ < operations_.size() &&
                                    !operations_[static_cast<std::size_t>(ticket - first_ticket_)]);
}

std::size_t NetworkEngine::Impl::kept_bytes() const {
  std::size_t bytes = 0;
  for (const auto& operation : operations_) {
    if (!operation) continue;
    bytes += operation->kept_bytes();
    for (const auto& held : operation->held()) bytes += held.payload.size();
  }
  for (const auto& in : domains_) {
    if (!in) continue;
    for (const auto& [sequence, early] : in->early) {
      for (const auto& held : early.held) bytes += held.payload.size();
    }
  }
  return bytes;
}

void NetworkEngine::Impl::say_goodbye() {
  NetworkMessage question;
  question.kind = NetworkMessage::Kind::kAlive;
  question.chunk = NetworkMessage::Sign::kLeaving;
  for (int rank = 0; rank < group_.ranks; ++rank) {
    if (!peer(rank).was_sent_to || peer(rank).is_lost || has_left(rank)) continue;
    WireTicket ticket = 0;  // nobody waits for it
    peer(rank).is_asked = post(rank, question, {}, ticket);
  }
}

bool NetworkEngine::Impl::may_leave() const {
  for (int rank = 0; rank < group_.ranks; ++rank) {
    const Peer& one = peers_[static_cast<std::size_t>(rank)];
    if (one.is_asked && !one.is_lost && !has_left(rank)) return false;
  }
  return true;
}

void NetworkEngine::Impl::cancel() {
  wire_.cancel_all();
  fail({StatusCode::kAborted, "the operations of this rank over the network were cancelled"});
  sent_.clear();
  flights_.clear();
  first_flight_ = 0;
  controls_.clear();
  ended_.clear();
  for (Peer& one : peers_) one = Peer{};
  domains_.clear();
  domains_.resize(1 + 2 * peers_.size());
  first_ticket_ += operations_.size();
  operations_.clear();
  spare_scratch_.clear();
  scratch_in_use_ = scratch_spare_ = 0;
  first_deadline_ = next_question_ = Clock::time_point::max();
}

NetworkEngine::NetworkEngine(Group group, Wire& wire)
    : impl_(std::make_unique<Impl>(std::move(group), wire)) {}
NetworkEngine::~NetworkEngine() = default;

std::uint64_t NetworkEngine::start(NetworkOperation operation) {
  return impl_->start(std::move(operation));
}
Result<bool> NetworkEngine::progress(Clock::time_point now) { return impl_->progress(now); }
NetworkEngine::Clock::time_point NetworkEngine::next_event() const { return impl_->next_event(); }
bool NetworkEngine::has_ended(std::uint64_t ticket) const { return impl_->has_ended(ticket); }
std::uint64_t NetworkEngine::ended_through() const { return impl_->ended_through(); }
bool NetworkEngine::idle() const { return impl_->idle(); }
std::string NetworkEngine::position() const { return impl_->position(); }
int NetworkEngine::missing() const { return impl_->missing(); }
std::size_t NetworkEngine::kept_bytes() const { return impl_->kept_bytes(); }
void NetworkEngine::say_goodbye() { impl_->say_goodbye(); }
bool NetworkEngine::may_leave() const { return impl_->may_leave(); }
void NetworkEngine::cancel() { impl_->cancel(); }

}  // namespace tutti
