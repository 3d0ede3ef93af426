#include "run/command.hpp"

#include "exit_code.hpp"
#include "run/ranks.hpp"
#include "tell.hpp"

namespace tutti::cli {

int run_program(const RunArguments& arguments) {
  const auto options = check_run_arguments(arguments);
  if (!options.is_ok()) {
    tell_line(stderr, "tutti run: {}; `tutti run --help` says more", options.status().message());
    return kUsage;
  }
  const auto ended = run_ranks(*options);
  if (ended.is_ok()) return *ended;
  tell_line(stderr, "tutti run: {}", ended.status().message());
  return kFailure;
}

}  // namespace tutti::cli
