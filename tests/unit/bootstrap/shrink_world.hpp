// Ranks that run a ShrinkAgreement each, the connections between them, and everything that can
// happen next, as a value: for tests that try all of it, or much at random.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/shrink_agreement.hpp"

namespace tutti::testing {

struct ShrinkRules {
  int ranks = 3;
  int deaths = 0;         // that may still happen
  int stalls = 0;         // times that a rank's deadline passes although something is under way
  bool one_host = true;   // at most one group may go on; else only groups without a common rank
  bool fences = true;     // a fence sees all that was sent before; else messages may take longer
  std::vector<int> late;  // ranks that call shrink() only once the others have ended
  ShrinkMutation mutation = ShrinkMutation::kNone;
  friend auto operator<=>(const ShrinkRules&, const ShrinkRules&) = default;
};

class ShrinkWorld {
 public:
  explicit ShrinkWorld(ShrinkRules rules);

  struct Event {
    enum class Kind : std::uint8_t {
      kDeliver,     // the next thing from `other`
      kDeliverAll,  // that `other` has sent: a slow rank finds it at once
      kProceed,     // with the fence, or the creation
      kFail,        // the creation
      kDie,         // the last `other` of its last messages, or first, do not get away
      kStall,       // its deadline passes
      kQuiet,       // nothing is under way: time passes, or those who are late come
    };
    Kind kind = Kind::kQuiet;
    int rank = -1, other = -1;
  };
  std::vector<Event> possible() const;
  void happen(const Event& event);

  // Once nothing is possible any more; empty where all is as it should be.
  std::string complaint() const;
  bool has_ended(int rank) const { return node(rank).step == Step::kDone; }

  friend auto operator<=>(const ShrinkWorld&, const ShrinkWorld&) = default;

 private:
  using Time = ShrinkAgreement::Time;
  using Step = ShrinkAgreement::Step;
  struct Sent {
    enum class Kind : std::uint8_t { kMessage, kExclude, kAbandon, kEnd };
    Kind kind = Kind::kMessage;
    ShrinkMessage message;  // kAbandon: its ballot
    friend auto operator<=>(const Sent&, const Sent&) = default;
  };
  struct Node {
    bool alive = true, called = false;
    Time now;
    std::optional<ShrinkAgreement> agreement;
    Step step = Step::kWait;
    std::vector<ShrinkBallot> created, left;  // groups that it took part in; that others left
    std::vector<std::deque<Sent>> incoming;   // by sender
    std::vector<int> knows_lost, gave_up, last_receivers;
    bool excluded = false;
    friend auto operator<=>(const Node&, const Node&) = default;
  };
  Node& node(int rank) { return nodes_[static_cast<std::size_t>(rank)]; }
  const Node& node(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
  void call(int rank);
  void look(int rank);
  void push(int to, int from, Sent sent);
  void deliver(int rank, int from, std::size_t count = 1);
  void take_next(int rank, int from);
  void die(int rank, int unsent);
  void proceed(int rank, bool succeeds);
  void abandon(int rank);
  void pass_time();
  bool has_created(int rank, const ShrinkBallot& ballot) const;
  bool may_create(int rank) const;
  bool may_fail(int rank) const;
  bool succeeded(int rank) const;
  bool goes_on(int rank) const;  // and so do all living members of its group
  std::string describe() const;

  ShrinkRules rules_;
  bool is_gentle_ = true;  // only deaths: no deadline passes, and all that live go on
  int deaths_ = 0, quiet_times_ = 0;
  Time now_;
  std::vector<Node> nodes_;
};

}  // namespace tutti::testing
