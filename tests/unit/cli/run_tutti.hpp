// Runs the `tutti` command as a process of its own.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace tutti::cli {

struct Ended {
  int exit_code = -1;  // 128 + signal where a signal ended it
  std::string out, err;
};

// `environment` ("NAME=value") comes on top of ours; `meanwhile` is called while it runs. Killed
// where it hangs; what it waits for has as long as tests have.
Ended run_tutti(const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment = {},
                const std::function<void(pid_t)>& meanwhile = {});

// `tutti bench WHAT` on the host, of few runs: of all algorithms, where none are named.
Ended bench(const std::string& what, std::vector<std::string> arguments);

}  // namespace tutti::cli
