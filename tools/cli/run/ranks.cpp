#include "run/ranks.hpp"

#include <unistd.h>

#include "base/try.hpp"
#include "bench/interrupts.hpp"
#include "run/job.hpp"
#include "run/local_ranks.hpp"
#include "run/port.hpp"

namespace tutti::cli {

Result<int> run_ranks(const RunOptions& options) {
  const Interrupts interrupts;
  TUTTI_ASSIGN(const Port port, reserve_port());
  // A program in a group of its own must not read from a terminal.
  const int input = ::isatty(STDIN_FILENO) == 1 ? -1 : STDIN_FILENO;
  TUTTI_ASSIGN(
      LocalRanks ranks,
      LocalRanks::start(
          {.first = {.ranks = options.ranks, .local_ranks = options.ranks, .port = port.number},
           .program = options.program,
           .arguments = options.arguments,
           .input = input,
           .bind = options.bind,
           .capture = options.prefix}));
  return run_job(ranks, {.ranks = options.ranks, .prefix = options.prefix, .grace = options.grace},
                 interrupts);
}

}  // namespace tutti::cli
