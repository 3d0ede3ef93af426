#include "bench/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti::cli {
namespace {

constexpr int kCannotExecute = 127;  // as shells have it

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Runs between fork and exec, where only async-signal-safe calls are allowed.
[[noreturn]] void become(const Command& command, char* const* arguments, char* const* environment,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotExecute);  // it ended before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  for (const int fd : command.inherited) ::fcntl(fd, F_SETFD, 0);
  ::execve(command.program.c_str(), arguments, environment);
  ::_exit(kCannotExecute);
}

std::string_view name_of_setting(std::string_view setting) {
  return setting.substr(0, setting.find('='));
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> result = changes;
  for (char** setting = environ; *setting != nullptr; ++setting) {
    const bool changed = std::any_of(changes.begin(), changes.end(), [&](const auto& change) {
      return name_of_setting(change) == name_of_setting(*setting);
    });
    if (!changed) result.emplace_back(*setting);
  }
  return result;
}

Result<ChildProcess> ChildProcess::start(const Command& command) {
  std::vector<std::string> words = command.arguments;
  words.insert(words.begin(), command.program);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(command.environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return Status(StatusCode::kSystem,
                  fmt::format("cannot start a process: {}; is the limit of processes reached?",
                              std::strerror(errno)));
  }
  if (pid == 0) become(command, arguments.data(), environment.data(), parent);
  return ChildProcess(pid);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), end_(other.end_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(end_, other.end_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || end_) return;
  kill();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::kill() {
  if (pid_ > 0 && !end_) ::kill(pid_, SIGKILL);
}

std::optional<int> ChildProcess::poll_end() {
  int status = 0;
  if (!end_ && ::waitpid(pid_, &status, WNOHANG) == pid_) end_ = status;
  return end_;
}

std::string describe_end(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return fmt::format("ended by signal {} ({})", number, ::strsignal(number));
  }
  const int code = WEXITSTATUS(wait_status);
  if (code == kCannotExecute) return "could not be started";
  return fmt::format("ended with code {}", code);
}

}  // namespace tutti::cli
