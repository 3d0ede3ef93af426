#include "bootstrap/shrink_agreement.hpp"

#include <algorithm>
#include <utility>

namespace tutti {
namespace {

// After these the ranks that are left try again; others would only come back.
bool is_loss(StatusCode code) {
  return code == StatusCode::kPeerFailed || code == StatusCode::kTimeout;
}

}  // namespace

ShrinkAgreement::ShrinkAgreement(const Terms& terms, Time now)
    : terms_(terms),
      peers_(static_cast<std::size_t>(terms.size)),
      round_(terms.round),
      follow_until_(now + terms.within),
      lead_until_(follow_until_) {
  peer(terms.self).present = true;
  peer(terms.self).join_end = now + terms.within;
}

ShrinkAgreement::Time ShrinkAgreement::join_end() const {
  Time end = peer(terms_.self).join_end;
  for (const Peer& each : peers_) {
    if (each.present) end = std::min(end, each.join_end);
  }
  return end;
}

bool ShrinkAgreement::awaits_absent() const {
  return phase_ == Phase::kJoined &&
         std::any_of(peers_.begin(), peers_.end(), [](const Peer& each) {
           return !(each.present || each.lost || each.silent || each.excluded);
         });
}

bool ShrinkAgreement::may_go_on(int rank) const {
  const Peer& it = peer(rank);
  return rank == terms_.self || !(it.lost || it.excluded || it.silent);
}

bool ShrinkAgreement::is_member(int rank) const {
  return std::binary_search(members_.begin(), members_.end(), rank);
}

void ShrinkAgreement::send(int to, const ShrinkMessage& message) {
  if (to != terms_.self && !peer(to).lost) outgoing_.push_back({to, false, message});
}

void ShrinkAgreement::send_to_all(const ShrinkMessage& message) {
  for (int rank = 0; rank < terms_.size; ++rank) send(rank, message);
}

std::vector<ShrinkAgreement::Outgoing> ShrinkAgreement::take_outgoing() {
  return std::exchange(outgoing_, {});
}

void ShrinkAgreement::lost(int rank) {
  if (!is_mutated(ShrinkMutation::kIgnoresEnds)) peer(rank).lost = true;
}

void ShrinkAgreement::take(int from, const ShrinkMessage& message, Time now) {
  round_ = std::max(round_, message.ballot.round);
  Peer& sender = peer(from);
  switch (message.kind) {
    case ShrinkMessage::Kind::kJoin:
      return take_join(from, message, now);
    case ShrinkMessage::Kind::kPropose:
      if (from == message.ballot.coordinator &&
          std::binary_search(message.members.begin(), message.members.end(), terms_.self)) {
        sender.proposal = message;
      }
      return;
    case ShrinkMessage::Kind::kReady:
      if (message.ballot == accepted_) sender.ready = true;
      return;
    case ShrinkMessage::Kind::kCommit:
      if (message.ballot == accepted_) sender.committed = true;
      return;
    case ShrinkMessage::Kind::kGiveUp:
      sender.present = sender.ready = false;
      sender.silent = true;
      sender.follows = -1;
      if (message.code != StatusCode::kOk && message.ballot == accepted_ &&
          from == accepted_.coordinator && phase_ != Phase::kEnded) {
        fail({message.code, message.text});
      }
      return;
  }
}

void ShrinkAgreement::take_join(int from, const ShrinkMessage& message, Time now) {
  Peer& sender = peer(from);
  sender.present = true;
  sender.silent = false;
  sender.join_end = now + Duration(std::max<std::int64_t>(message.left_ns, 0));
  // Sent before it had this rank's proposal: it says nothing of that.
  if (leads() && !collecting_ && message.follows == terms_.self && message.ballot != accepted_)
    return;
  sender.follows = message.follows;
  sender.accepted = message.ballot;
  sender.ready = false;
  // It begins anew, and whatever it has proposed is void: also what this rank has yet to accept. It
  // waits for an answer that it did not have before.
  const bool is_void = from == follow_ && sender.proposal.ballot > accepted_;
  sender.proposal = {};
  if (is_void || from == accepted_.coordinator) must_join_ = true;
}

// Who has joined another coordinator has promised it to wait for what it says.
bool ShrinkAgreement::may_commit() const {
  if (phase_ != Phase::kReady) return false;
  const bool promised = follow_ != accepted_.coordinator;
  if (promised && !is_mutated(ShrinkMutation::kNoPromise)) return peer(follow_).committed;
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& each) { return each.committed; });
}

// As far as those that have joined this rank are concerned, and some other has.
bool ShrinkAgreement::all_may_commit() const {
  bool some = false;
  for (int rank = 0; rank < terms_.size; ++rank) {
    const Peer& it = peer(rank);
    some = some || it.committed;
    const bool beyond = may_go_on(rank) && !it.committed && it.accepted != accepted_;
    if (beyond && rank != terms_.self) return false;
  }
  return some && phase_ == Phase::kReady;
}

ShrinkAgreement::Step ShrinkAgreement::look(Time now) {
  if (phase_ == Phase::kJoined || phase_ == Phase::kReady) {
    advance(now);
  }
  switch (phase_) {
    case Phase::kFencing:
      return Step::kFence;
    case Phase::kCreating:
      return Step::kCreate;
    case Phase::kEnded:
      return Step::kDone;
    default:
      return Step::kWait;
  }
}

void ShrinkAgreement::advance(Time now) {
  if (excluded_) return fail_excluded();
  if (may_commit()) return succeed();
  suspect(now);
  choose_leader(now);
  if (leads()) return lead(now);
  if (may_commit()) return succeed();  // as the new leader has said before
  if (peer(follow_).proposal.ballot > accepted_) accept(peer(follow_).proposal);
}

void ShrinkAgreement::suspect(Time now) {
  if (phase_ == Phase::kJoined && now >= join_end()) {
    for (Peer& each : peers_) each.silent |= !each.present;
  }
  if (follow_ >= 0 && !leads() && now >= follow_until_) peer(follow_).silent = true;
}

void ShrinkAgreement::choose_leader(Time now) {
  int lowest = 0;
  while (!may_go_on(lowest)) ++lowest;
  if (lowest == follow_ && !must_join_) return;
  if (lowest != follow_) collecting_ = true;
  follow_ = lowest;
  join(now);
}

void ShrinkAgreement::join(Time now) {
  must_join_ = false;
  const Time from = std::max(join_end(), now);
  lead_until_ = from + step_limit();
  follow_until_ = from + 3 * step_limit();
  ShrinkMessage message{
      .kind = ShrinkMessage::Kind::kJoin, .ballot = accepted_, .follows = follow_};
  message.left_ns = std::max(Duration::zero(), Duration(join_end() - now)).count();
  send_to_all(message);
}

void ShrinkAgreement::lead(Time now) {
  if (leads_ballot()) check_members(now);
  if (phase_ != Phase::kEnded && !leads_ballot()) collect(now);
}

void ShrinkAgreement::check_members(Time now) {
  bool all_ready = true, is_broken = false;
  for (const std::int32_t member : members_) {
    if (member == terms_.self) continue;
    const Peer& it = peer(member);
    all_ready = all_ready && it.ready;
    is_broken = is_broken || !may_go_on(member);
    // It joined after it had accepted, so it could not create the group.
    is_broken = is_broken || (!it.ready && it.follows >= 0);
  }
  if (!is_broken && (all_ready || is_mutated(ShrinkMutation::kCommitsEarly))) return succeed();
  const bool is_late = now >= lead_until_;
  if (!is_broken && !is_late) return;
  for (const std::int32_t member : members_) {
    Peer& it = peer(member);
    if (is_late && member != terms_.self && !it.ready && it.follows < 0) it.silent = true;
  }
  collecting_ = true;
  join(now);
}

// The next proposal: of all that follow this rank, once there are no others to wait for.
void ShrinkAgreement::collect(Time now) {
  ShrinkMessage proposal{.kind = ShrinkMessage::Kind::kPropose};
  for (int rank = 0; rank < terms_.size; ++rank) {
    if (!may_go_on(rank)) continue;
    Peer& it = peer(rank);
    const bool follows = rank == terms_.self || it.follows == terms_.self ||
                         (it.present && is_mutated(ShrinkMutation::kProposesEarly));
    if (follows) {
      proposal.members.push_back(rank);
    } else if (it.committed) {
      continue;
    } else if (now >= lead_until_ && it.present) {
      it.silent = true;
    } else {
      return;
    }
  }
  if (all_may_commit()) return succeed();
  proposal.ballot = {round_ + 1, terms_.self, terms_.nonce + round_};
  for (const std::int32_t member : proposal.members) send(member, proposal);
  accept(proposal);
}

void ShrinkAgreement::accept(const ShrinkMessage& proposal) {
  accepted_ = proposal.ballot;
  members_ = proposal.members;
  round_ = std::max(round_, accepted_.round);
  collecting_ = false;
  for (int rank = 0; rank < terms_.size; ++rank) {
    Peer& it = peer(rank);
    it.ready = it.committed = false;
    if (leads()) it.follows = -1;
    if (is_member(rank) || it.excluded) continue;
    it.excluded = true;
    const bool tells = !it.lost && !is_mutated(ShrinkMutation::kForgetsToExclude);
    if (tells) outgoing_.push_back({rank, true, {}});
  }
  phase_ = Phase::kFencing;
}

void ShrinkAgreement::fenced() {
  if (phase_ != Phase::kFencing) return;
  if (excluded_) return fail_excluded();
  phase_ = Phase::kCreating;
}

void ShrinkAgreement::created(const Outcome& outcome, Time now) {
  if (phase_ != Phase::kCreating) return;
  if (outcome.code == StatusCode::kOk) {
    phase_ = Phase::kReady;
    follow_until_ = now + 4 * terms_.patience;
    lead_until_ = now + 2 * terms_.patience;
    if (!leads())
      send(accepted_.coordinator, {.kind = ShrinkMessage::Kind::kReady, .ballot = accepted_});
    return;
  }
  const bool goes_on = is_loss(outcome.code) && ++failures_ <= 2 * terms_.size;
  if (!goes_on && (leads() || failures_ > 2 * terms_.size)) return fail(outcome);
  phase_ = Phase::kJoined;
  collecting_ = must_join_ = true;
}

// All members fail with their coordinator; nobody waits for any other rank that has.
void ShrinkAgreement::fail(const Outcome& outcome) {
  ShrinkMessage message{.kind = ShrinkMessage::Kind::kGiveUp, .ballot = accepted_};
  if (accepted_.coordinator == terms_.self && !excluded_) {
    message.code = outcome.code;
    message.text = outcome.text;
  }
  send_to_all(message);
  outcome_ = outcome;
  phase_ = Phase::kEnded;
}

void ShrinkAgreement::fail_excluded() { fail({StatusCode::kPeerFailed, {}}); }

void ShrinkAgreement::succeed() {
  if (leads() || !is_mutated(ShrinkMutation::kKeepsCommit)) {
    for (const std::int32_t member : members_) {
      send(member, {.kind = ShrinkMessage::Kind::kCommit, .ballot = accepted_});
    }
  }
  phase_ = Phase::kEnded;
}

ShrinkAgreement::Time ShrinkAgreement::until() const {
  const Time limit = leads() ? lead_until_ : follow_until_;
  return awaits_absent() ? std::min(join_end(), limit) : limit;
}

}  // namespace tutti
