// A process of ours: started by fork and exec, and never left behind.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <optional>
#include <sched.h>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

struct Command {
  std::string program;                   // path
  std::vector<std::string> arguments;    // without argv[0]
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::vector<int> inherited;            // descriptors that stay open; all others must be CLOEXEC
  // Its standard descriptors, by our numbers. Its output goes to our standard error, so that what
  // we print stays readable by programs.
  int input = STDIN_FILENO, output = STDERR_FILENO, error = STDERR_FILENO;
  std::optional<cpu_set_t> cores = {};  // where it runs; empty: where this process may
  bool own_group = false;               // signals reach what it starts, too
};

// The end to read does not block.
struct Pipe {
  Fd read, write;
};
Result<Pipe> make_pipe();

// This process's environment with `changes` ("NAME=value") in place of what they name.
std::vector<std::string> environment_with(const std::vector<std::string>& changes);

class ChildProcess {
 public:
  // Returns once it runs the program. It is killed when this process ends, however it ends.
  static Result<ChildProcess> start(const Command& command);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // kills it if it runs, and waits for it: no zombie

  pid_t pid() const { return pid_; }
  void signal(int number);  // nothing if it has ended
  void kill();              // SIGKILL

  // How it ended, as waitpid(2) tells; empty while it runs.
  std::optional<int> poll_end();

 private:
  ChildProcess(pid_t pid, bool own_group) : pid_(pid), own_group_(own_group) {}
  void await_end(int flags);

  pid_t pid_ = -1;
  bool own_group_ = false;
  std::optional<int> end_;
};

// "ended with code 3", "ended by signal 11 (Segmentation fault)".
std::string describe_end(int wait_status);

}  // namespace tutti::cli
