#include "support/children.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>

#include "support/sanitizers.hpp"

namespace tutti::test {
namespace {

int run_in_child(const ChildFunction& function, int index, Wire& parent) {
  try {
    function(index, parent);
  } catch (const std::exception& failure) {
    parent.say(failure.what());
    return kChildFailed;
  }
  if (memory_leaked()) {
    parent.say("LeakSanitizer: this process leaks memory");
    return kChildFailed;
  }
  return kChildSucceeded;
}

}  // namespace

void Wire::say(std::string_view line) {
  std::string text(line);
  std::replace(text.begin(), text.end(), '\n', ' ');
  text += '\n';
  const std::lock_guard lock(mutex_);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(fd_, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) return;  // the parent is gone; so will this child be
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

bool Children::Child::succeeded() const {
  return ended && !took_too_long && WIFEXITED(wait_status) &&
         WEXITSTATUS(wait_status) == kChildSucceeded;
}

std::string Children::Child::describe_end() const {
  if (took_too_long) return "did not end in time and was killed";
  if (!ended) return "is still running";
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return fmt::format("was killed by signal {} ({})", number, ::strsignal(number));
  }
  return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
}

Children::Children(int count, const ChildFunction& function) {
  children_.resize(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) start(index, function);
}

Children::~Children() {
  for (Child& child : children_) {
    if (child.ended || child.pid < 0) continue;
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, &child.wait_status, 0);
  }
}

void Children::start(int index, const ChildFunction& function) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  std::fflush(nullptr);  // or the child would write it once more
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kChildFailed);
    ::close(ends[0]);
    for (Child& other : children_) other.lines_from.reset();
    Wire wire(ends[1]);
    const int code = run_in_child(function, index, wire);
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::close(ends[1]);
  Child& child = children_[static_cast<std::size_t>(index)];
  child.pid = pid;
  child.lines_from = Fd(ends[0]);
  if (pid < 0) throw std::runtime_error("fork failed");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

void Children::signal(int index, int signal_number) const {
  ::kill(children_[static_cast<std::size_t>(index)].pid, signal_number);
}

void Children::take_lines(Child& child) {
  char buffer[4096];
  while (child.lines_from.valid()) {
    const ssize_t got = ::read(child.lines_from.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // nothing more for now
    if (got == 0) {
      child.lines_from.reset();
      return;
    }
    child.unfinished.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end; (end = child.unfinished.find('\n')) != std::string::npos;) {
      child.lines.push_back(child.unfinished.substr(0, end));
      child.unfinished.erase(0, end + 1);
    }
  }
}

void Children::take_end(Child& child) {
  if (child.ended) return;
  if (::waitpid(child.pid, &child.wait_status, WNOHANG) != child.pid) return;
  child.ended = true;
  child.ended_at = Clock::now();
  take_lines(child);  // what it said last
}

bool Children::wait_a_little() {
  std::vector<pollfd> polls;
  std::size_t before = 0, after = 0;
  for (const Child& child : children_) {
    if (child.lines_from.valid()) polls.push_back({child.lines_from.get(), POLLIN, 0});
    before += child.lines.size() + (child.ended ? 1 : 0);
  }
  constexpr int kPollMs = 5;  // the end of a child shows in waitpid alone
  ::poll(polls.data(), polls.size(), kPollMs);
  for (Child& child : children_) {
    take_lines(child);
    take_end(child);
    after += child.lines.size() + (child.ended ? 1 : 0);
  }
  return after != before;
}

bool Children::listen(const std::function<bool()>& enough, Clock::duration limit) {
  const auto end = Clock::now() + limit;
  while (!enough()) {
    const bool all_ended = std::all_of(children_.begin(), children_.end(),
                                       [](const Child& child) { return child.ended; });
    if (all_ended || Clock::now() >= end) return false;
    wait_a_little();
  }
  return true;
}

bool Children::wait_for_line(int index, std::string_view prefix, Clock::duration limit) {
  const Child& child = children_[static_cast<std::size_t>(index)];
  return listen(
      [&] {
        return std::any_of(child.lines.begin(), child.lines.end(),
                           [&](const std::string& line) { return line.starts_with(prefix); });
      },
      limit);
}

const std::vector<Children::Child>& Children::finish(Clock::duration limit,
                                                     Clock::duration silence) {
  const auto end = Clock::now() + limit;
  auto last_heard = Clock::now();
  for (;;) {
    const bool all_ended = std::all_of(children_.begin(), children_.end(),
                                       [](const Child& child) { return child.ended; });
    if (all_ended) return children_;
    if (wait_a_little()) last_heard = Clock::now();
    const auto now = Clock::now();
    if (now >= end || (silence.count() > 0 && now - last_heard >= silence)) break;
  }
  for (Child& child : children_) {
    if (child.ended) continue;
    child.took_too_long = true;
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, &child.wait_status, 0);
    child.ended = true;
    child.ended_at = Clock::now();
    take_lines(child);
  }
  return children_;
}

}  // namespace tutti::test
