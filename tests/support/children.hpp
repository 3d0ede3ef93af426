// Functions that run in forked processes, what they say, and how they end. The parent stays
// single-threaded and never initialises CUDA, so that each child starts from a clean state.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"

namespace tutti::test {

// A child's way to tell its parent something: whole lines, from any of its threads.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd) {}
  void say(std::string_view line);

 private:
  int fd_;
  std::mutex mutex_;
};

// Exit codes of children. 66 is ThreadSanitizer's, 1 AddressSanitizer's.
inline constexpr int kChildSucceeded = 0;
inline constexpr int kChildFailed = 3;  // its function threw; the text is its last line

using ChildFunction = std::function<void(int index, Wire& parent)>;

class Children {
 public:
  using Clock = std::chrono::steady_clock;

  struct Child {
    pid_t pid = -1;  // stays after the end
    Fd lines_from;
    std::string unfinished;  // of a line that has not come whole
    std::vector<std::string> lines;
    bool ended = false;
    int wait_status = 0;         // of waitpid, once ended
    bool took_too_long = false;  // killed by finish()
    Clock::time_point ended_at;

    bool succeeded() const;
    std::string describe_end() const;  // "exited with code 3", "was killed by signal 9 (Killed)"
  };

  // Forks `count` children, each of which runs `function` with its index and exits. They die with
  // their parent.
  Children(int count, const ChildFunction& function);
  // Kills and reaps those that are left.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  const std::vector<Child>& all() const { return children_; }
  void signal(int index, int signal_number) const;

  // Takes up what the children say until `enough` holds (true), all have ended or `limit` has
  // passed (false).
  bool listen(const std::function<bool()>& enough, Clock::duration limit);
  // Until the child has said a line that starts with `prefix`.
  bool wait_for_line(int index, std::string_view prefix, Clock::duration limit);

  // Until all have ended; those that have not by then, or once nobody has said anything for
  // `silence`, are killed and marked.
  const std::vector<Child>& finish(Clock::duration limit, Clock::duration silence = {});

 private:
  void start(int index, const ChildFunction& function);
  void take_lines(Child& child);
  void take_end(Child& child);
  bool wait_a_little();  // true if anything was heard

  std::vector<Child> children_;
};

}  // namespace tutti::test
