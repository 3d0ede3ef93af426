// What pages of flight recorders mean together: how each group is, who waits for whom, and who is
// to blame. Values in, values out.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "group/recorder/find_pages.hpp"

namespace tutti::cli {

enum class Activity : std::uint8_t {
  kAbsent,   // there is no page of this rank
  kIdle,     // between two operations
  kBusy,     // in an operation, waiting for nobody that it knows of
  kWaiting,  // in an operation, and in it for other ranks
  kFailed,
  kLeft,  // it has destroyed its communicator
};
std::string_view to_string(Activity activity);  // "waiting"

struct Member {
  int rank = 0;
  std::optional<FoundPage> found;
  Activity activity = Activity::kAbsent;
  std::vector<int> waits_for;
  double seconds = 0;  // in its operation, or since the last one ended

  bool is_stopped() const { return found && found->writer == WriterState::kStopped; }
  // Its process has ended, and it had not said goodbye.
  bool is_dead() const {
    return found && found->writer == WriterState::kEnded && !found->page.closed &&
           !found->page.failure;
  }
  const RecordedOperation* operation() const { return found ? found->page.current() : nullptr; }
};

enum class Health : std::uint8_t {
  kHealthy,
  kIncomplete,  // nobody waits yet, but a rank is stopped or gone
  kWaiting,     // an operation has been under way for longer than anybody has patience
  kFailed,
};
std::string_view to_string(Health health);  // "healthy"

struct Culprit {
  int rank = 0;
  std::vector<std::string> why;
};

struct Verdict {
  std::uint64_t group = 0;
  Health health = Health::kHealthy;
  std::vector<Member> members;      // by rank
  std::vector<Culprit> culprits;    // empty where nothing is wrong, or nobody can be named
  std::optional<int> first_failed;  // the rank whose failure came first
};

struct Jury {
  // Steady clock. Empty: the pages are of the past, and each group is seen as of its last moment.
  std::optional<std::uint64_t> now_ns;
  std::chrono::nanoseconds patience = std::chrono::seconds(5);
};

// `pages` by group and rank, as found.
std::vector<Verdict> judge(const std::vector<FoundPage>& pages, const Jury& jury);

}  // namespace tutti::cli
