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
#include <sched.h>
#include <utility>

#include "base/try.hpp"

namespace tutti::cli {
namespace {

constexpr int kCannotExecute = 127;  // as shells have it; who started the process is told why

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

struct Program {
  const Command& command;
  char* const* arguments;
  char* const* environment;
  pid_t parent;
  int why_not;  // where to write errno
};

// Runs between fork and exec, where only async-signal-safe calls are allowed.
[[noreturn]] void become(const Program& program) {
  const Command& command = program.command;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != program.parent) ::_exit(kCannotExecute);  // it ended before the line above
  if (command.own_group) ::setpgid(0, 0);
  if (command.cores) ::sched_setaffinity(0, sizeof *command.cores, &*command.cores);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(command.input, STDIN_FILENO);
  ::dup2(command.output, STDOUT_FILENO);
  ::dup2(command.error, STDERR_FILENO);
  for (const int fd : command.inherited) ::fcntl(fd, F_SETFD, 0);
  ::execve(command.program.c_str(), program.arguments, program.environment);
  const int error = errno;
  (void)!::write(program.why_not, &error, sizeof error);
  ::_exit(kCannotExecute);
}

// The errno of an exec that failed; 0 once the program runs.
int await_exec(int why_not) {
  int error = 0;
  ssize_t bytes = 0;
  do {
    bytes = ::read(why_not, &error, sizeof error);
  } while (bytes < 0 && errno == EINTR);
  return bytes == sizeof error ? error : 0;
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

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Status(StatusCode::kSystem,
                  fmt::format("cannot make a pipe: {}; `ulimit -n` raises the number of open files",
                              std::strerror(errno)));
  }
  Pipe made{Fd(ends[0]), Fd(ends[1])};
  ::fcntl(made.read.get(), F_SETFL, O_NONBLOCK);
  return made;
}

Result<ChildProcess> ChildProcess::start(const Command& command) {
  std::vector<std::string> words = command.arguments;
  words.insert(words.begin(), command.program);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(command.environment);
  TUTTI_ASSIGN(Pipe why_not, make_pipe());
  ::fcntl(why_not.read.get(), F_SETFL, 0);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return Status(StatusCode::kSystem,
                  fmt::format("cannot start a process: {}; is the limit of processes reached?",
                              std::strerror(errno)));
  }
  if (pid == 0) {
    become({command, arguments.data(), environment.data(), parent, why_not.write.get()});
  }
  ChildProcess child(pid, command.own_group);
  why_not.write.reset();
  const int error = await_exec(why_not.read.get());
  if (error == 0) return child;
  return Status(StatusCode::kInvalidArgument,
                fmt::format("cannot start '{}': {}", command.program, std::strerror(error)));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), own_group_(other.own_group_), end_(other.end_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(own_group_, other.own_group_);
  std::swap(end_, other.end_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || end_) return;
  kill();
  await_end(0);
}

void ChildProcess::signal(int number) {
  if (pid_ > 0 && !end_) ::kill(own_group_ ? -pid_ : pid_, number);
}

void ChildProcess::kill() { signal(SIGKILL); }

// Until it is waited for nobody else gets its number, so that what is left of its group can be
// killed.
void ChildProcess::await_end(int flags) {
  siginfo_t info{};
  int failed = 0;
  do {
    failed = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | flags);
  } while (failed != 0 && errno == EINTR);
  if (failed != 0 || info.si_pid != pid_) return;
  if (own_group_) kill();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  end_ = status;
}

std::optional<int> ChildProcess::poll_end() {
  if (!end_) await_end(WNOHANG);
  return end_;
}

std::string describe_end(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return fmt::format("ended by signal {} ({})", number, ::strsignal(number));
  }
  return fmt::format("ended with code {}", WEXITSTATUS(wait_status));
}

}  // namespace tutti::cli
