// A process of ours: started by fork and exec, and never left behind.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tutti/status.hpp"

namespace tutti::cli {

struct Command {
  std::string program;                   // path
  std::vector<std::string> arguments;    // without argv[0]
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::vector<int> inherited;            // descriptors that stay open; all others must be CLOEXEC
};

// This process's environment with `changes` ("NAME=value") in place of what they name.
std::vector<std::string> environment_with(const std::vector<std::string>& changes);

class ChildProcess {
 public:
  // Its standard output goes to our standard error, so that what we print stays readable by
  // programs. It is killed when this process ends, however it ends.
  static Result<ChildProcess> start(const Command& command);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // kills it if it runs, and waits for it: no zombie

  pid_t pid() const { return pid_; }
  void kill();  // SIGKILL; nothing if it has ended

  // How it ended, as waitpid(2) tells; empty while it runs.
  std::optional<int> poll_end();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
  std::optional<int> end_;
};

// "ended with code 3", "ended by signal 11 (Segmentation fault)".
std::string describe_end(int wait_status);

}  // namespace tutti::cli
