#include "bootstrap/inbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/try.hpp"
#include "bootstrap/failure_notice.hpp"
#include "bootstrap/shrink_message.hpp"

namespace tutti {
namespace {

std::string excluded_text(const RankNames& names, int by, int self) {
  return fmt::format(
      "{} went on without {}: shrink() did not hear from it in time; it can only "
      "join a new group",
      names.of(by), names.of(self));
}

Status protocol_error(std::string text) { return {StatusCode::kMismatch, std::move(text)}; }

}  // namespace

Inbox::Inbox(int self, int size) : self_(self), peers_(static_cast<std::size_t>(size)) {}

Inbox::~Inbox() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  notifier_.join();
}

int Inbox::Group::rank_of(int member) const {
  const auto at = std::find(members.begin(), members.end(), member);
  return at == members.end() ? -1 : static_cast<int>(at - members.begin());
}

Inbox::Group& Inbox::find_or_make(std::uint64_t id) {
  Group& group = groups_[id];
  group.id = id;
  if (group.senders.empty()) group.senders = std::vector<Sender>(peers_.size());
  return group;
}

Status Inbox::deliver(int from, Message message) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_.contains(message.group)) return Status::ok();
    if (!groups_.contains(message.group) && groups_.size() >= kMaxGroups) {
      return protocol_error("it uses too many groups");
    }
    Group& group = find_or_make(message.group);
    if (!group.members.empty() && group.rank_of(from) < 0) {
      return protocol_error("it writes to a group that it does not belong to");
    }
    if (message.kind == FrameKind::kFailure || message.kind == FrameKind::kLeave) {
      TUTTI_TRY(take_notice(group, from, message));
    } else if (message.kind == FrameKind::kShrink || message.kind == FrameKind::kExclude) {
      TUTTI_TRY(take_shrink(group, from, message));
    } else {
      std::deque<Message>& queue = group.senders[from].queue;
      if (queue.size() >= kMaxQueued) return protocol_error("it runs ahead of its group");
      queue.push_back(std::move(message));
    }
  }
  changed_.notify_all();
  start_notifying();
  return Status::ok();
}

Status Inbox::take_notice(Group& group, int from, const Message& message) {
  if (message.kind == FrameKind::kLeave) {
    Sender& sender = group.senders[from];
    if (sender.left) return Status::ok();
    TUTTI_ASSIGN(sender.last, decode_last_words(*message.payload));
    sender.left = true;
    if (!sender.last.empty()) group.news.emplace_back(Left{from});
    return Status::ok();
  }
  TUTTI_ASSIGN(GroupFailure failure,
               decode_failure(*message.payload, static_cast<int>(peers_.size())));
  if (group.senders[from].announced++ < kMaxAnnounced) fail_locked(group, std::move(failure));
  return Status::ok();
}

void Inbox::fail_locked(Group& group, GroupFailure failure) {
  remember_locked(group, failure);
  group.news.emplace_back(std::move(failure));
}

// Parts that are split from the group and not found yet fail with it: a member that has heard of
// the failure before it opened the part never opens it.
void Inbox::remember_locked(Group& group, const GroupFailure& failure) {
  for (auto& [id, part] : groups_) {
    const bool is_part = part.split_from != 0 && part.split_from == group.id;
    if (is_part) fail_as_part_locked(part, group, failure);
  }
  if (!group.failure) group.failure = failure;
}

void Inbox::fail_as_part_locked(Group& part, const Group& whole, GroupFailure failure) {
  const auto rank = static_cast<std::size_t>(failure.rank);  // a member may have said anything
  failure.rank = rank < whole.members.size() ? part.rank_of(whole.members[rank]) : -1;
  fail_locked(part, std::move(failure));
}

Status Inbox::take_shrink(Group& group, int from, Message& message) {
  if (message.kind == FrameKind::kExclude) {
    if (group.excluded_by >= 0) return Status::ok();
    group.excluded_by = from;
    if (!group.members.empty()) fail_excluded_locked(group);
    fail_creation_locked(group, from);
    return Status::ok();
  }
  check_creation_locked(group, from, *message.payload);
  if (++group.senders[from].shrinking > kMaxShrinkMessages) {
    return protocol_error("it calls shrink() without end");
  }
  group.shrinking.emplace_back(from, std::move(message.payload));
  return Status::ok();
}

void Inbox::fail_excluded_locked(Group& group) {
  const int by = group.rank_of(group.excluded_by);
  if (by >= 0) {
    fail_locked(
        group, {by, StatusCode::kPeerFailed, excluded_text(group.names, by, group.rank_of(self_))});
  }
}

void Inbox::check_creation_locked(const Group& group, int from, const Bytes& message) {
  const auto child = groups_.find(group.creating);
  if (child == groups_.end() || child->second.rank_of(from) < 0) return;
  const auto said = decode_shrink_message(message, static_cast<int>(group.members.size()));
  const bool stays = said.is_ok() && said->kind != ShrinkMessage::Kind::kGiveUp;
  if (!stays) fail_creation_locked(group, from);
}

void Inbox::fail_creation_locked(const Group& group, int culprit) {
  const auto child = groups_.find(group.creating);
  if (child == groups_.end()) return;  // or its creation has failed
  fail_locked(child->second,
              {child->second.rank_of(culprit), StatusCode::kPeerFailed,
               fmt::format("{} takes part no more", group.names.of(group.rank_of(culprit)))});
}

void Inbox::watch_creation(std::uint64_t id, std::uint64_t child) {
  const std::lock_guard lock(mutex_);
  Group& group = groups_.at(id);
  group.creating = child;
  if (child == 0) return;
  if (group.excluded_by >= 0) fail_creation_locked(group, group.excluded_by);
  for (const auto& [from, message] : group.shrinking) check_creation_locked(group, from, *message);
}

std::vector<int> Inbox::lost_locked(const Group& group) const {
  std::vector<int> lost;
  for (std::size_t rank = 0; rank < group.members.size(); ++rank) {
    const int member = group.members[rank];
    const Peer& peer = peers_[member];
    if (peer.gone || peer.said_goodbye || group.senders[member].left) {
      lost.push_back(static_cast<int>(rank));
    }
  }
  return lost;
}

Inbox::ShrinkNews Inbox::take_shrink_news(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Group& group = groups_.at(id);
  ShrinkNews news{std::exchange(group.shrinking, {}), lost_locked(group),
                  group.excluded_by < 0 ? -1 : group.rank_of(group.excluded_by)};
  for (auto& [from, payload] : news.messages) {
    group.senders[from].shrinking = 0;
    from = group.rank_of(from);
  }
  return news;
}

Status Inbox::exclusion(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const Group& group = groups_.at(id);
  return {StatusCode::kPeerFailed,
          excluded_text(group.names, group.rank_of(group.excluded_by), group.rank_of(self_))};
}

void Inbox::await_shrink_news(std::uint64_t id, std::size_t lost, Deadline until) {
  std::unique_lock lock(mutex_);
  const Group& group = groups_.at(id);
  until.wait(changed_, lock, [&] {
    return !group.shrinking.empty() || group.excluded_by >= 0 || lost_locked(group).size() > lost;
  });
}

void Inbox::peer_lost_locked(Group& group, int peer) {
  const int rank = group.rank_of(peer);
  if (rank < 0 || group.left || group.senders[peer].left || peers_[peer].said_goodbye) return;
  fail_locked(group, {rank, StatusCode::kPeerFailed,
                      fmt::format("{} is gone without having left the group: {}; make a new "
                                  "communicator without it",
                                  group.names.of(rank), peers_[peer].why)});
}

void Inbox::peer_gone(int peer, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (peers_[peer].gone) return;
    peers_[peer].gone = true;
    peers_[peer].why = why;
    for (auto& [id, group] : groups_) peer_lost_locked(group, peer);
  }
  changed_.notify_all();
  start_notifying();
}

void Inbox::peer_said_goodbye(int peer) {
  {
    const std::lock_guard lock(mutex_);
    peers_[peer].said_goodbye = true;
  }
  changed_.notify_all();
}

void Inbox::open(std::uint64_t id, std::vector<int> members, RankNames names,
                 std::uint64_t split_from) {
  {
    const std::lock_guard lock(mutex_);
    opened_.insert(id);
    Group& group = find_or_make(id);
    group.members = std::move(members);
    group.names = std::move(names);
    group.split_from = split_from;
    const auto whole = groups_.find(split_from);
    if (whole != groups_.end() && whole->second.failure) {
      fail_as_part_locked(group, whole->second, *whole->second.failure);
    }
    for (const int member : group.members) {
      if (peers_[member].gone) peer_lost_locked(group, member);
    }
    if (group.excluded_by >= 0) fail_excluded_locked(group);
  }
  start_notifying();
}

void Inbox::found(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Group& group = groups_.at(id);
  group.names.found();
  group.split_from = 0;
}

RankNames Inbox::names(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return groups_.at(id).names;
}

void Inbox::close(std::uint64_t id) {
  std::unique_lock lock(mutex_);
  Group& group = groups_.at(id);
  group.handler = nullptr;
  wait_for_handler(lock, group);
  groups_.erase(id);
  closed_.insert(opened_.extract(id));
}

bool Inbox::complete(const Group& group) const {
  return std::all_of(group.members.begin(), group.members.end(),
                     [&](int member) { return !group.senders[member].queue.empty(); });
}

Status Inbox::first_obstacle(const Group& group, const Call& call) const {
  if (group.failure) return to_status(*group.failure);  // final, whatever has come since
  for (std::size_t rank = 0; rank < group.members.size(); ++rank) {
    const Sender& sender = group.senders[group.members[rank]];
    if (sender.queue.empty()) continue;
    const Message& front = sender.queue.front();
    if (front.kind != call.kind || front.sequence != call.sequence) {
      return {StatusCode::kMismatch,
              fmt::format("{} is at {} #{}, this rank at {} #{}: all ranks must make the same "
                          "calls in the same order",
                          group.names.of(rank), to_string(front.kind), front.sequence,
                          to_string(call.kind), call.sequence)};
    }
  }
  if (complete(group)) return Status::ok();
  for (std::size_t rank = 0; rank < group.members.size(); ++rank) {
    const int member = group.members[rank];
    const Sender& sender = group.senders[member];
    if (sender.queue.empty() && (sender.left || peers_[member].said_goodbye)) {
      return {StatusCode::kPeerFailed,
              fmt::format("{} has left the group{}{} and cannot take part in {} #{}",
                          group.names.of(rank), sender.last.empty() ? "" : " ", sender.last,
                          to_string(call.kind), call.sequence)};
    }
  }
  return Status::ok();
}

Status Inbox::timeout(const Group& group, const Call& call,
                      Deadline::Clock::time_point began) const {
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < group.members.size(); ++rank) {
    if (group.senders[group.members[rank]].queue.empty()) missing.push_back(static_cast<int>(rank));
  }
  const std::chrono::duration<double> waited = Deadline::Clock::now() - began;
  return {StatusCode::kTimeout,
          fmt::format("{} #{}: {} waited {:.3f} s and did not hear from {} of {}: stopped, late, "
                      "or not making this call",
                      to_string(call.kind), call.sequence, group.names.of(group.rank_of(self_)),
                      waited.count(), group.names.of(missing), group.members.size())};
}

Result<std::vector<Message>> Inbox::receive(const Call& call, Deadline deadline) {
  const auto began = Deadline::Clock::now();
  std::unique_lock lock(mutex_);
  Group& group = groups_.at(call.group);
  for (;;) {
    TUTTI_TRY(first_obstacle(group, call));
    if (complete(group)) break;
    if (deadline.passed()) return timeout(group, call, began);
    changed_.wait_until(lock, deadline.next_look());
  }
  std::vector<Message> messages;
  for (const int member : group.members) {
    messages.push_back(std::move(group.senders[member].queue.front()));
    group.senders[member].queue.pop_front();
  }
  return messages;
}

void Inbox::set_handler(std::uint64_t id, Bootstrap::FailureHandler handler) {
  {
    std::unique_lock lock(mutex_);
    Group& group = groups_.at(id);
    group.handler = std::move(handler);
    if (!group.handler) wait_for_handler(lock, group);
  }
  start_notifying();
}

void Inbox::set_leave_handler(std::uint64_t id, Bootstrap::LeaveHandler handler) {
  const std::lock_guard lock(mutex_);
  groups_.at(id).leave_handler = std::move(handler);
}

void Inbox::fail(std::uint64_t id, const GroupFailure& failure) {
  {
    const std::lock_guard lock(mutex_);
    remember_locked(groups_.at(id), failure);
  }
  changed_.notify_all();
}

void Inbox::leave(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  groups_.at(id).left = true;
}

std::optional<GroupFailure> Inbox::first_failure(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return groups_.at(id).failure;
}

int Inbox::departed(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const Group& group = groups_.at(id);
  for (std::size_t rank = 0; rank < group.members.size(); ++rank) {
    const int member = group.members[rank];
    const bool left = member == self_ ? group.left : group.senders[member].left;
    if (left || peers_[member].said_goodbye) return static_cast<int>(rank);
  }
  return -1;
}

Inbox::Group* Inbox::next_due() {
  for (auto& [id, group] : groups_) {
    if (!group.news.empty() && group.handler && !group.left) return &group;
  }
  return nullptr;
}

void Inbox::wait_for_handler(std::unique_lock<std::mutex>& lock, const Group& group) {
  if (notifier_.is_this_thread()) return;  // a handler that clears itself
  changed_.wait(lock, [&] { return !group.in_handler; });
}

std::function<void()> Inbox::next_call(Group& group) {
  const News news = std::move(group.news.front());
  group.news.pop_front();
  if (const auto* failure = std::get_if<GroupFailure>(&news)) {
    return [handler = group.handler, failure = *failure] { handler(failure); };
  }
  const int member = std::get<Left>(news).member;
  return [handler = group.leave_handler, rank = group.rank_of(member),
          last = group.senders[member].last] {
    if (handler) handler(rank, last);
  };
}

void Inbox::notify_all_due(std::unique_lock<std::mutex>& lock) {
  while (Group* group = next_due()) {
    const std::function<void()> call = next_call(*group);
    group->in_handler = true;
    lock.unlock();
    guarded(call);
    lock.lock();
    group->in_handler = false;
    changed_.notify_all();
  }
}

void Inbox::notify_until_stopped() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    notify_all_due(lock);
    changed_.wait(lock, [&] { return stopping_ || next_due() != nullptr; });
  }
}

void Inbox::start_notifying() {
  std::unique_lock lock(mutex_);
  if (next_due() == nullptr || stopping_) return;
  if (notifier_.started()) {
    changed_.notify_all();
    return;
  }
  // Without a thread to spare the failure is told on this one, rather than not at all.
  if (!notifier_.start([this] { notify_until_stopped(); })) notify_all_due(lock);
}

}  // namespace tutti
