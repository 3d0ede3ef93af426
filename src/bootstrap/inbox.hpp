// What one rank has received and not yet used, per group and sender, and what it knows of its
// peers: who has left, who is gone, which failure was announced. All waiting of bootstrap happens
// here.
//
// Whoever carries messages (sockets, or the other ranks of this process) fills it; the views of the
// groups take from it. Ranks are those of the mesh, except where it says "of the group".
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/frame.hpp"
#include "bootstrap/worker.hpp"

namespace tutti {

class Inbox {
 public:
  Inbox(int self, int size);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // A failure means that `from` broke the protocol: nothing it sends can be used any more.
  Status deliver(int from, Message message);
  // The process of `peer` has ended, or can no longer be heard; `why` is for people.
  void peer_gone(int peer, const std::string& why);
  // `peer` has left every group: its end is no failure.
  void peer_said_goodbye(int peer);

  // A group of which this rank is a member. Messages for it may have come before. Until found(), it
  // fails with the group that it was split from.
  void open(std::uint64_t group, std::vector<int> members, RankNames names,
            std::uint64_t split_from = 0);
  // See Bootstrap.
  void found(std::uint64_t group);
  RankNames names(std::uint64_t group);
  // Waits for a handler in progress; drops what comes later.
  void close(std::uint64_t group);

  struct Call {
    std::uint64_t group = 0;
    std::uint64_t sequence = 0;
    FrameKind kind = FrameKind::kGather;
  };
  // One message from every member, in the group's order. Leaves all in place on failure.
  Result<std::vector<Message>> receive(const Call& call, Deadline deadline);

  void set_handler(std::uint64_t group, Bootstrap::FailureHandler handler);
  // Called only while there is a handler for failures, too.
  void set_leave_handler(std::uint64_t group, Bootstrap::LeaveHandler handler);
  std::optional<GroupFailure> first_failure(std::uint64_t group);
  // This rank's own announcement: ends waits here, calls no handler.
  void fail(std::uint64_t group, const GroupFailure& failure);
  void leave(std::uint64_t group);

  // What shrink() is to know, in ranks of the group.
  struct ShrinkNews {
    std::vector<std::pair<int, Payload>> messages;  // since the last time
    std::vector<int> lost;  // all so far: their process has ended, or they have left the group
    int excluded_by = -1;   // for good
  };
  ShrinkNews take_shrink_news(std::uint64_t group);
  // While `child` is created by shrink() of `group`: it fails where one of its members gives up, or
  // this rank is excluded. 0: none is any more.
  void watch_creation(std::uint64_t group, std::uint64_t child);
  Status exclusion(std::uint64_t group);  // once there is excluded_by
  // Until there are messages, more than `lost` ranks are lost, this rank is excluded, or `until`.
  void await_shrink_news(std::uint64_t group, std::size_t lost, Deadline until);
  int departed(std::uint64_t group);  // of the group

 private:
  static constexpr std::size_t kMaxQueued = 4;  // two calls are at most under way
  static constexpr std::size_t kMaxGroups = 1 << 14;
  static constexpr int kMaxAnnounced = 4;  // by one member; more are dropped
  // Of one member, while this rank is not in shrink().
  static constexpr int kMaxShrinkMessages = 4096;

  struct Sender {
    std::deque<Message> queue;
    bool left = false;
    std::string last;   // words
    int announced = 0;  // failures
    int shrinking = 0;  // messages of shrink() that were not taken yet
  };
  struct Left {
    int member;
  };
  using News = std::variant<GroupFailure, Left>;
  struct Group {
    std::uint64_t id = 0;
    std::vector<int> members;  // empty until opened
    RankNames names;
    std::vector<Sender> senders;
    std::optional<GroupFailure> failure;  // the first
    std::deque<News> news;                // of other members, for the handlers
    Bootstrap::FailureHandler handler;
    Bootstrap::LeaveHandler leave_handler;
    std::vector<std::pair<int, Payload>> shrinking;  // by member
    int excluded_by = -1;                            // member
    std::uint64_t creating = 0;                      // a group, by shrink() of this one
    std::uint64_t split_from = 0;                    // a group, until this one is found; 0: none
    bool left = false, in_handler = false;
    int rank_of(int member) const;  // of the group; -1 where it is none
  };
  struct Peer {
    bool gone = false, said_goodbye = false;
    std::string why;
  };

  Group& find_or_make(std::uint64_t id);
  Status take_shrink(Group& group, int from, Message& message);
  void fail_excluded_locked(Group& group);
  void fail_creation_locked(const Group& group, int culprit);
  void check_creation_locked(const Group& group, int from, const Bytes& message);
  std::vector<int> lost_locked(const Group& group) const;
  Status take_notice(Group& group, int from, const Message& message);
  void fail_locked(Group& group, GroupFailure failure);
  void remember_locked(Group& group, const GroupFailure& failure);
  void fail_as_part_locked(Group& part, const Group& whole, GroupFailure failure);
  void peer_lost_locked(Group& group, int peer);
  bool complete(const Group& group) const;
  Status first_obstacle(const Group& group, const Call& call) const;
  Status timeout(const Group& group, const Call& call, Deadline::Clock::time_point began) const;
  // Has handlers called on the notifier's thread. Not under the lock.
  void start_notifying();
  void notify_until_stopped();
  void notify_all_due(std::unique_lock<std::mutex>& lock);
  Group* next_due();
  static std::function<void()> next_call(Group& group);
  void wait_for_handler(std::unique_lock<std::mutex>& lock, const Group& group);

  const int self_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Group> groups_;
  std::set<std::uint64_t> opened_, closed_;  // to close a group takes no memory
  std::vector<Peer> peers_;
  Worker notifier_;  // started by the first failure that has a handler
  bool stopping_ = false;
};

}  // namespace tutti
