#include "bench/rank.hpp"

#include <signal.h>

#include <fmt/core.h>

#include "base/try.hpp"
#include "bench/binding.hpp"
#include "bench/frame.hpp"

namespace tutti::cli {
namespace {

Status join_and_run(const CommunicatorOptions& options, const RankWork& work,
                    const Reporter& reporter) {
  TUTTI_ASSIGN(Communicator communicator, Communicator::create_from_environment(options));
  return run_rank(communicator, work, reporter);
}

}  // namespace

void give_up(Communicator& communicator, const Status& status) {
  if (!communicator.status().is_ok()) return;
  communicator.abort(fmt::format("rank {}: {}", communicator.rank(), status.message()));
}

Status run_rank(Communicator& communicator, const RankWork& work, const Reporter& reporter) {
  if (communicator.backend() == Backend::kHost) {
    bind_to_core(communicator.rank(), communicator.size());
  }
  TUTTI_TRY(communicator.prepare());  // which graphs cannot, and nothing measured should
  TUTTI_TRY(work(communicator, reporter));
  return reporter(Done{});
}

int run_rank_process(int worker_fd, const CommunicatorOptions& options, const RankWork& work) {
  ::signal(SIGPIPE, SIG_IGN);  // a launcher that is gone is an error of write(2)
  const Reporter reporter = [&](const Report& report) {
    return write_frame(worker_fd, to_json_text(report));
  };
  const Status status = join_and_run(options, work, reporter);
  if (status.is_ok()) return 0;
  return reporter(Failure{status.code(), status.to_string()}).is_ok() ? 1 : 2;
}

}  // namespace tutti::cli
