#include "unit/bootstrap/shrink_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

namespace tutti::testing {
namespace {

using std::chrono::seconds;

bool holds(const std::vector<ShrinkBallot>& ballots, const ShrinkBallot& ballot) {
  return std::find(ballots.begin(), ballots.end(), ballot) != ballots.end();
}

bool holds(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

ShrinkWorld::ShrinkWorld(ShrinkRules rules)
    : rules_(std::move(rules)),
      is_gentle_(rules_.late.empty() && rules_.stalls == 0),
      nodes_(static_cast<std::size_t>(rules_.ranks)) {
  for (Node& each : nodes_) each.incoming.resize(nodes_.size());
  for (int rank = 0; rank < rules_.ranks; ++rank) {
    if (!holds(rules_.late, rank)) call(rank);
  }
}

void ShrinkWorld::call(int rank) {
  Node& it = node(rank);
  it.called = true;
  it.now = std::max(it.now, now_);
  it.agreement.emplace(ShrinkAgreement::Terms{.self = rank,
                                              .size = rules_.ranks,
                                              .within = seconds(1),
                                              .patience = seconds(10),
                                              .nonce = static_cast<std::uint64_t>(rank) * 1000,
                                              .mutation = rules_.mutation},
                       it.now);
  for (const int lost : it.knows_lost) it.agreement->lost(lost);
  if (it.excluded) it.agreement->was_excluded();
  look(rank);
}

void ShrinkWorld::push(int to, int from, Sent sent) {
  if (node(to).alive && node(to).step != Step::kDone)
    node(to).incoming[static_cast<std::size_t>(from)].push_back(std::move(sent));
}

void ShrinkWorld::look(int rank) {
  Node& it = node(rank);
  if (!it.alive || !it.agreement || it.step == Step::kDone) return;
  const auto step = it.agreement->look(it.now);
  const bool fails = step == Step::kDone && it.agreement->outcome().code != StatusCode::kOk;
  auto outgoing = it.agreement->take_outgoing();
  if (!outgoing.empty()) it.last_receivers.clear();
  for (auto& [to, excludes, message] : outgoing) {
    it.last_receivers.push_back(to);
    push(to, rank, {excludes ? Sent::Kind::kExclude : Sent::Kind::kMessage, std::move(message)});
  }
  if (fails) abandon(rank);
  if (step == Step::kCreate && it.step != Step::kCreate) {
    abandon(rank);
    it.created.push_back(it.agreement->ballot());
  }
  it.step = step;
  if (step == Step::kDone) {
    for (auto& queue : it.incoming) queue.clear();  // nobody listens
  }
}

void ShrinkWorld::abandon(int rank) {
  Node& it = node(rank);
  if (it.created.empty()) return;
  for (int other = 0; other < rules_.ranks; ++other) {
    ShrinkMessage message;
    message.ballot = it.created.back();
    if (other != rank) push(other, rank, {Sent::Kind::kAbandon, message});
  }
}

void ShrinkWorld::deliver(int rank, int from, std::size_t count) {
  const Node& it = node(rank);
  const bool waits = it.agreement && it.step == Step::kWait;
  for (std::size_t i = 0; i < count; ++i) take_next(rank, from);
  if (waits) look(rank);
}

void ShrinkWorld::take_next(int rank, int from) {
  Node& it = node(rank);
  auto& queue = it.incoming[static_cast<std::size_t>(from)];
  const Sent sent = queue.front();
  // What a rank is told while it does not listen stays, but ends of processes and groups count.
  if (sent.kind == Sent::Kind::kMessage && !it.agreement) return;
  queue.pop_front();
  switch (sent.kind) {
    case Sent::Kind::kMessage:
      if (sent.message.kind == ShrinkMessage::Kind::kGiveUp) it.gave_up.push_back(from);
      it.agreement->take(from, sent.message, it.now);
      break;
    case Sent::Kind::kExclude:
      it.excluded = true;
      if (it.agreement) it.agreement->was_excluded();
      break;
    case Sent::Kind::kAbandon:
      it.left.push_back(sent.message.ballot);
      break;
    case Sent::Kind::kEnd:
      it.knows_lost.push_back(from);
      if (it.agreement) it.agreement->lost(from);
      break;
  }
}

void ShrinkWorld::die(int rank, int unsent) {
  ++deaths_;
  Node& it = node(rank);
  it.alive = false;
  // The last ones of its receivers, or with a number below zero the first ones, get nothing.
  auto& receivers = it.last_receivers;
  if (unsent < 0) std::reverse(receivers.begin(), receivers.end());
  for (int i = 0; i < std::abs(unsent); ++i) {
    auto& queue = node(receivers.back()).incoming[static_cast<std::size_t>(rank)];
    if (!queue.empty()) queue.pop_back();
    receivers.pop_back();
  }
  receivers.clear();
  for (int other = 0; other < rules_.ranks; ++other) {
    if (other != rank) push(other, rank, {Sent::Kind::kEnd, {}});
  }
  for (auto& queue : it.incoming) queue.clear();
}

bool ShrinkWorld::has_created(int rank, const ShrinkBallot& ballot) const {
  return holds(node(rank).created, ballot);
}

bool ShrinkWorld::may_create(int rank) const {
  const ShrinkAgreement& agreement = *node(rank).agreement;
  return std::all_of(agreement.members().begin(), agreement.members().end(),
                     [&](int member) { return has_created(member, agreement.ballot()); });
}

bool ShrinkWorld::may_fail(int rank) const {
  const Node& it = node(rank);
  const auto& members = it.agreement->members();
  return it.excluded || holds(it.left, it.agreement->ballot()) ||
         std::any_of(members.begin(), members.end(), [&](int member) {
           return holds(it.knows_lost, member) || holds(it.gave_up, member);
         });
}

void ShrinkWorld::proceed(int rank, bool succeeds) {
  Node& it = node(rank);
  if (it.step == Step::kFence) {
    for (int from = 0; from < rules_.ranks && rules_.fences; ++from) {
      while (!it.incoming[static_cast<std::size_t>(from)].empty()) deliver(rank, from);
    }
    it.agreement->fenced();
  } else {
    const StatusCode lost = may_fail(rank) ? StatusCode::kPeerFailed : StatusCode::kTimeout;
    it.agreement->created({succeeds ? StatusCode::kOk : lost, succeeds ? "" : "lost"}, it.now);
  }
  look(rank);
}

std::vector<ShrinkWorld::Event> ShrinkWorld::possible() const {
  using Kind = Event::Kind;
  std::vector<Event> events;
  for (int rank = 0; rank < rules_.ranks; ++rank) {
    const Node& it = node(rank);
    if (!it.alive) continue;
    for (int from = 0; from < rules_.ranks; ++from) {
      const auto& queue = it.incoming[static_cast<std::size_t>(from)];
      if (queue.empty() || (!it.agreement && queue.front().kind == Sent::Kind::kMessage)) continue;
      events.push_back({Kind::kDeliver, rank, from});
      if (it.agreement && queue.size() > 1) events.push_back({Kind::kDeliverAll, rank, from});
    }
    if (it.step == Step::kFence || (it.step == Step::kCreate && may_create(rank))) {
      events.push_back({Kind::kProceed, rank, -1});
    }
    if (it.step == Step::kCreate && may_fail(rank)) events.push_back({Kind::kFail, rank, -1});
  }
  if (events.empty()) {
    const bool all_done = std::all_of(nodes_.begin(), nodes_.end(), [](const Node& each) {
      return !each.alive || each.step == Step::kDone;
    });
    if (!all_done && quiet_times_ < 100) events.push_back({Kind::kQuiet, -1, -1});
    return events;
  }
  for (int rank = 0; rank < rules_.ranks; ++rank) {
    const Node& it = node(rank);
    if (!it.alive || !it.agreement || it.step == Step::kDone) continue;
    if (rules_.stalls > 0 && it.step != Step::kFence) {
      events.push_back({Kind::kStall, rank, -1});
    }
  }
  for (int rank = 0; rank < rules_.ranks && deaths_ < rules_.deaths; ++rank) {
    const Node& it = node(rank);
    if (!it.alive) continue;
    events.push_back({Kind::kDie, rank, 0});
    const auto& to = it.last_receivers;
    const auto is_unread = [&](std::size_t receiver) {
      const auto& queue = node(to[receiver]).incoming[static_cast<std::size_t>(rank)];
      return !node(to[receiver]).alive ||
             (!queue.empty() && queue.back().kind != Sent::Kind::kAbandon);
    };
    for (std::size_t n = 0; n < to.size() && is_unread(to.size() - 1 - n); ++n) {
      events.push_back({Kind::kDie, rank, static_cast<int>(n) + 1});
    }
    for (std::size_t n = 0; n + 1 < to.size() && is_unread(n); ++n) {
      events.push_back({Kind::kDie, rank, -static_cast<int>(n) - 1});
    }
  }
  return events;
}

void ShrinkWorld::happen(const Event& event) {
  Node* const it = event.rank < 0 ? nullptr : &node(event.rank);
  switch (event.kind) {
    case Event::Kind::kDeliver:
      return deliver(event.rank, event.other);
    case Event::Kind::kDeliverAll:
      return deliver(event.rank, event.other,
                     it->incoming[static_cast<std::size_t>(event.other)].size());
    case Event::Kind::kProceed:
      return proceed(event.rank, true);
    case Event::Kind::kFail:
      return proceed(event.rank, false);
    case Event::Kind::kDie:
      return die(event.rank, event.other);
    case Event::Kind::kStall:
      --rules_.stalls;
      if (it->step == Step::kCreate) return proceed(event.rank, false);
      it->now = std::max(it->now, it->agreement->until());
      return look(event.rank);
    case Event::Kind::kQuiet:
      return pass_time();
  }
}

// Those whose deadline is the next.
void ShrinkWorld::pass_time() {
  ++quiet_times_;
  Time next = Time::max();
  for (const Node& each : nodes_) {
    if (!each.alive || !each.agreement || each.step == Step::kDone) continue;
    const bool creates = each.step == Step::kCreate;
    next = std::min(next, creates ? each.now + seconds(10) : each.agreement->until());
  }
  if (next == Time::max()) {
    for (const int rank : rules_.late) {
      if (node(rank).alive && !node(rank).called) call(rank);
    }
    return;
  }
  now_ = std::max(now_, next);
  for (int rank = 0; rank < rules_.ranks; ++rank) {
    Node& it = node(rank);
    if (!it.alive || !it.agreement || it.step == Step::kDone) continue;
    const bool gives_up = it.step == Step::kCreate && now_ >= it.now + seconds(10);
    if (it.step == Step::kCreate && !gives_up) continue;
    it.now = std::max(it.now, now_);
    if (gives_up) {
      proceed(rank, false);
    } else {
      look(rank);
    }
  }
}

bool ShrinkWorld::succeeded(int rank) const {
  const Node& it = node(rank);
  return it.alive && it.step == Step::kDone && it.agreement->outcome().code == StatusCode::kOk;
}

bool ShrinkWorld::goes_on(int rank) const {
  if (!succeeded(rank)) return false;
  const ShrinkAgreement& mine = *node(rank).agreement;
  return std::all_of(mine.members().begin(), mine.members().end(), [&](int member) {
    return !node(member).alive ||
           (succeeded(member) && node(member).agreement->ballot() == mine.ballot());
  });
}

std::string ShrinkWorld::complaint() const {
  std::vector<std::optional<ShrinkBallot>> group_of(nodes_.size());  // that goes on
  for (int rank = 0; rank < rules_.ranks; ++rank) {
    const Node& it = node(rank);
    if (!it.alive) continue;
    if (it.step != Step::kDone) return fmt::format("rank {} does not end: {}", rank, describe());
    const ShrinkAgreement& mine = *it.agreement;
    if (succeeded(rank)) {
      for (const int member : mine.members()) {
        if (has_created(member, mine.ballot())) continue;
        return fmt::format("rank {} goes on with rank {}, which knows nothing of it: {}", rank,
                           member, describe());
      }
    }
    if (!goes_on(rank)) continue;
    for (int other = 0; other < rules_.ranks; ++other) {
      auto& group = group_of[static_cast<std::size_t>(other)];
      const auto& members = mine.members();
      const bool is_in = std::binary_search(members.begin(), members.end(), other);
      const bool conflicts = group && *group != mine.ballot() && (is_in || rules_.one_host);
      if (conflicts) return "two groups go on: " + describe();
      if (is_in) group = mine.ballot();
    }
  }
  for (int rank = 0; rank < rules_.ranks; ++rank) {
    if (!node(rank).alive) continue;
    if (is_gentle_ && (!goes_on(rank) || quiet_times_ > 0)) {
      return fmt::format("rank {} does not go on, or waited for a deadline: {}", rank, describe());
    }
    // Unless all who went on have ended, maybe before they could say so to those who failed.
    const bool is_alone = std::none_of(nodes_.begin(), nodes_.end(), [&](const Node& each) {
      const int other = static_cast<int>(&each - nodes_.data());
      return other != rank && each.alive && (deaths_ == 0 || succeeded(other));
    });
    if (holds(rules_.late, rank) && succeeded(rank) && !is_alone) {
      return fmt::format("rank {} was late: {}", rank, describe());
    }
  }
  return "";
}

std::string ShrinkWorld::describe() const {
  std::string text;
  for (int rank = 0; rank < rules_.ranks; ++rank) {
    const Node& it = node(rank);
    text += fmt::format("rank {} ", rank);
    if (!it.alive) {
      text += "is dead; ";
    } else if (succeeded(rank)) {
      text += fmt::format("has {} of round {} of {}; ", it.agreement->members(),
                          it.agreement->ballot().round, it.agreement->ballot().coordinator);
    } else if (it.step == Step::kDone) {
      text += fmt::format("failed: {} {}; ", to_string(it.agreement->outcome().code),
                          it.agreement->outcome().text);
    } else {
      text += fmt::format("is in step {}; ", static_cast<int>(it.step));
    }
  }
  return text;
}

}  // namespace tutti::testing
