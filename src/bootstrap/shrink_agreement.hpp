// How the ranks of a group that are left agree on who goes on: one rank's part, as a value. It has
// no thread, socket or clock. Its owner hands over what arrives and asks look() what to do.
//
//   every rank        kJoin to all: follows the lowest rank that is not known to be lost
//   that rank         waits until all have joined, or until the deadline; then kPropose(members)
//   every member      excludes the others (they are told), makes sure that none of them has
//                     excluded it (kFence), creates the group (kCreate), says kReady
//   the coordinator   once all are ready: kCommit, which every member passes on before it returns
//
// Where the coordinator is lost, or a member before all are ready, the ranks join again. Who
// follows another coordinator from now on takes a kCommit only of that one. It waits until all have
// joined: if one has passed on a kCommit instead, and nobody has accepted more, it does the same;
// otherwise it proposes anew, and so replaces what nobody has returned with.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "bootstrap/shrink_message.hpp"

namespace tutti {

// Tests leave out one rule at a time, to see that they would notice.
enum class ShrinkMutation : std::uint8_t {
  kNone,
  kNoPromise,         // takes the commit of a coordinator that it follows no more
  kProposesEarly,     // does not wait until those that joined follow it
  kCommitsEarly,      // does not wait until all members are ready
  kKeepsCommit,       // does not pass a commit on
  kForgetsToExclude,  // does not tell who is left out
  kIgnoresEnds,       // waits for ranks whose process has ended
};

class ShrinkAgreement {
 public:
  using Time = Deadline::Clock::time_point;
  using Duration = std::chrono::nanoseconds;

  struct Terms {
    int self = 0, size = 1;
    Duration within{};        // for ranks to join
    Duration patience{};      // for a rank that has joined, per step; includes creating the group
    std::uint32_t round = 0;  // the highest of earlier agreements in this group
    std::uint64_t nonce = 0;  // random
    ShrinkMutation mutation = ShrinkMutation::kNone;
    friend auto operator<=>(const Terms&, const Terms&) = default;
  };
  // What the owner has to do, before it looks again.
  enum class Step : std::uint8_t {
    kWait,    // for a message, a loss, or until()
    kFence,   // hand over all that was sent here before now, then call fenced()
    kCreate,  // create the group of ballot() with members(), then call created()
    kDone,    // see outcome()
  };
  struct Outgoing {
    int to = -1;
    bool excludes = false;  // no message: `to` is left out for good
    ShrinkMessage message;
    friend auto operator<=>(const Outgoing&, const Outgoing&) = default;
  };
  struct Outcome {
    StatusCode code = StatusCode::kOk;
    std::string text;
    friend auto operator<=>(const Outcome&, const Outcome&) = default;
  };

  ShrinkAgreement(const Terms& terms, Time now);

  void take(int from, const ShrinkMessage& message, Time now);
  void lost(int rank);                       // its process has ended, or it has left the group
  void was_excluded() { excluded_ = true; }  // some rank has gone on without this one
  void has_excluded(int rank) { peer(rank).excluded = true; }  // in an earlier agreement

  Step look(Time now);
  void fenced();
  void created(const Outcome& outcome, Time now);

  // This rank takes part no more, whatever for.
  void give_up(const Outcome& why) { fail(why); }

  Time until() const;
  std::vector<Outgoing> take_outgoing();
  const ShrinkBallot& ballot() const { return accepted_; }
  const std::vector<std::int32_t>& members() const { return members_; }
  std::uint32_t round() const { return round_; }
  const Outcome& outcome() const { return outcome_; }

  friend auto operator<=>(const ShrinkAgreement&, const ShrinkAgreement&) = default;

 private:
  enum class Phase : std::uint8_t { kJoined, kFencing, kCreating, kReady, kEnded };
  struct Peer {
    bool lost = false;
    bool excluded = false;      // by this rank: for good
    bool silent = false;        // has let a deadline pass; until it is heard again
    bool present = false;       // has joined, and has not given up
    bool ready = false;         // for accepted_
    bool committed = false;     // accepted_
    std::int32_t follows = -1;  // as it joined last, since this rank's last proposal
    ShrinkBallot accepted;      // likewise
    Time join_end;              // until when it waits for absent ranks
    ShrinkMessage proposal;     // its last one
    friend auto operator<=>(const Peer&, const Peer&) = default;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  bool is_mutated(ShrinkMutation mutation) const { return terms_.mutation == mutation; }
  bool may_go_on(int rank) const;
  bool is_member(int rank) const;
  bool leads() const { return follow_ == terms_.self; }
  // The first of those that wait for absent ranks stops: then all do.
  Time join_end() const;
  bool awaits_absent() const;
  bool leads_ballot() const { return phase_ == Phase::kReady && leads() && !collecting_; }
  // For a rank that has joined. Before a group was created it has nothing to do but answer.
  Duration step_limit() const {
    constexpr Duration kAnswer = std::chrono::seconds(1);
    return accepted_.round == 0 ? std::max(terms_.within, kAnswer) : terms_.patience;
  }
  void send(int to, const ShrinkMessage& message);
  void send_to_all(const ShrinkMessage& message);
  void take_join(int from, const ShrinkMessage& message, Time now);
  bool may_commit() const;
  bool all_may_commit() const;
  void advance(Time now);
  void suspect(Time now);
  void choose_leader(Time now);
  void join(Time now);
  void lead(Time now);
  void check_members(Time now);
  void collect(Time now);
  void accept(const ShrinkMessage& proposal);
  void fail(const Outcome& outcome);
  void fail_excluded();
  void succeed();

  Terms terms_;
  Phase phase_ = Phase::kJoined;
  std::vector<Peer> peers_;
  int follow_ = -1;  // the coordinator whose proposal this rank takes
  bool excluded_ = false;
  bool collecting_ = true;   // as coordinator: joins, for the next proposal
  bool must_join_ = false;   // again
  std::uint32_t round_ = 0;  // the highest seen
  int failures_ = 0;         // to create a group
  ShrinkBallot accepted_;
  std::vector<std::int32_t> members_;  // of accepted_
  Time follow_until_, lead_until_;
  std::vector<Outgoing> outgoing_;
  Outcome outcome_;
};

}  // namespace tutti
