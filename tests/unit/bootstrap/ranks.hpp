// Ranks for tests of bootstrap: as threads, or as forked processes that can be killed and stopped
// and that tell their parent, line by line, how far they are.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/join.hpp"
#include "support/patience.hpp"

namespace tutti::testing {

using namespace std::chrono_literals;
using test::kNever;
using test::kPatience;

// Long enough for anything that must succeed on a busy machine.
inline Deadline soon() { return Deadline(kPatience); }

// Of deadlines that have to pass, and not before others have done something: calls
// `attempt(limit)` with longer and longer ones until it returns true. False if it never does.
inline bool with_longer_limits(
    const std::function<bool(std::chrono::milliseconds limit)>& attempt) {
  for (std::chrono::milliseconds limit = 100ms; limit < kPatience; limit *= 4) {
    if (attempt(limit)) return true;
  }
  return false;
}

// An empty directory of mode 0700, removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  std::vector<std::string> entries() const;  // names, recursively

 private:
  std::string path_;
};

// Calls body(rank) on a thread of its own for each rank; waits for all.
void run_threads(int ranks, const std::function<void(int)>& body);

// A child process. What `body` returns is its complaint; empty for success.
class ForkedRank {
 public:
  using Say = std::function<void(const std::string&)>;  // a line to the parent
  using Body = std::function<std::string(const Say&)>;

  explicit ForkedRank(const Body& body);
  ~ForkedRank();  // kills it
  ForkedRank(ForkedRank&& other) noexcept;
  ForkedRank& operator=(ForkedRank&&) = delete;

  // The next line it says; "(ended)" or "(silent)" where there is none within the time.
  std::string line(std::chrono::milliseconds within = 2 * kPatience);
  void signal(int number) const;
  // Its complaint; also where it was killed or does not end in time.
  std::string complaint(std::chrono::milliseconds within = 2 * kPatience);

 private:
  void reap();

  pid_t pid_ = -1;
  Fd lines_;
  std::string pending_;
};

// For a body whose process is to be killed.
std::string wait_to_be_killed();

// What processes that were forked from this one see as well.
class SharedFlag {
 public:
  SharedFlag();
  ~SharedFlag();
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;

  void set() const { flag_->store(true); }
  bool is_set() const { return flag_->load(); }
  void wait() const {
    while (!flag_->load()) std::this_thread::sleep_for(1ms);
  }

 private:
  std::atomic<bool>* flag_;
};

// What went wrong, for ForkedRank::Body; empty for success.
template <class ResultOrStatus>
std::string text_of(const ResultOrStatus& outcome) {
  if constexpr (requires { outcome.status(); }) {
    return outcome.is_ok() ? "" : outcome.status().to_string();
  } else {
    return outcome.is_ok() ? "" : outcome.to_string();
  }
}

// A joined group, or a test failure that tells why not.
std::unique_ptr<Bootstrap> join_or_fail(const GroupId& id, int rank, int size,
                                        const JoinOptions& options);

JoinOptions options_in(const TemporaryDirectory& directory);

// Rank and length in every byte, so that mixed-up parts are noticed.
Bytes pattern(int rank, std::size_t bytes);
bool is_pattern(const Bytes& value, int rank, std::size_t bytes);

// Text of an open descriptor's file, from its start.
std::string content_of(int fd);
// A memfd that holds `text`.
Fd file_with(const std::string& text);

}  // namespace tutti::testing
