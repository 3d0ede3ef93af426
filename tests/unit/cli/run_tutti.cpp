#include "run_tutti.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "bench/child_process.hpp"
#include "scratch_folder.hpp"
#include "support/patience.hpp"

namespace tutti::cli {
namespace {

constexpr unsigned kMostSeconds = 2 * std::chrono::seconds(test::kPatience).count();

void redirect(int descriptor, const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, descriptor);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> with_timeout(std::vector<std::string> environment) {
  const std::string name = "TUTTI_TIMEOUT_MS=";
  const auto is_timeout = [&](const std::string& setting) { return setting.starts_with(name); };
  if (std::ranges::none_of(environment, is_timeout)) {
    const std::chrono::milliseconds timeout = test::kPatience;
    environment.push_back(name + std::to_string(timeout.count()));
  }
  return environment;
}

}  // namespace

Ended run_tutti(const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment,
                const std::function<void(pid_t)>& meanwhile) {
  const ScratchFolder folder;
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), TUTTI_COMMAND);
  std::vector<std::string> settings = environment_with(with_timeout(environment));
  const std::vector<char*> argv = pointers(words), envp = pointers(settings);
  const std::string out = folder / "out", err = folder / "err";
  const pid_t pid = ::fork();
  if (pid == 0) {
    redirect(STDOUT_FILENO, out);
    redirect(STDERR_FILENO, err);
    ::alarm(kMostSeconds);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  if (meanwhile) meanwhile(pid);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return {.exit_code = code, .out = folder.read("out"), .err = folder.read("err")};
}

Ended bench(const std::string& what, std::vector<std::string> arguments) {
  if (std::ranges::count(arguments, "--algorithms") == 0) {
    arguments.insert(arguments.end(), {"--algorithms", "all"});
  }
  arguments.insert(arguments.begin(), {"bench", what, "--backend", "host", "-n", "3", "-w", "1"});
  return run_tutti(arguments);
}

}  // namespace tutti::cli
