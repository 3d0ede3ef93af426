// A rank dies. The other ranks get an error that names it, and go on in a new group. Then one of
// them aborts that group. The program starts the three ranks itself, as processes on the host.
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/tutti.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

constexpr int kRanks = 3, kDying = 2;

void check(const tutti::Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}

// Prints the failure that this step provokes, and exits if it is another one.
void expect(const tutti::Status& status, tutti::StatusCode code, int rank) {
  std::printf("rank %d: %s\n", rank, status.to_string().c_str());
  if (status.code() != code) std::exit(1);
}

// What all ranks do, until something fails.
tutti::Status work(tutti::Communicator& group, const std::function<void()>& at_step_10) {
  std::array<float, 1000> data = {};
  for (int step = 0;; ++step) {
    if (step == 10) at_step_10();
    const tutti::Status status = tutti::all_reduce(group, data);
    if (!status) return status;
  }
}

void run(int rank, const tutti::UniqueId& all, const tutti::UniqueId& survivors) {
  const tutti::CommunicatorOptions options = {.backend = tutti::Backend::kHost,
                                              .timeout = std::chrono::seconds(60)};
  auto group = tutti::Communicator::create(all, rank, kRanks, options);
  check(group.status());
  const tutti::Status status = work(*group, [&] {
    if (rank == kDying) std::_Exit(0);  // without a destructor, as if it had crashed
  });
  expect(status, tutti::StatusCode::kPeerFailed, rank);

  // The failure is final: from now on every call returns it. Recovery is a new communicator.
  expect(tutti::barrier(*group), tutti::StatusCode::kPeerFailed, rank);
  group = tutti::Communicator::create(survivors, rank, kRanks - 1, options);
  check(group.status());
  // abort() ends the operations of all ranks. Any thread may call it.
  const tutti::Status aborted = work(*group, [&] {
    if (rank == 0) group->abort("this rank has found a NaN");
  });
  expect(aborted, tutti::StatusCode::kAborted, rank);
}

int main() {
  const auto all = tutti::UniqueId::create(), survivors = tutti::UniqueId::create();
  check(all.status());
  check(survivors.status());
  for (int rank = 0; rank < kRanks; ++rank) {
    if (fork() != 0) continue;
    run(rank, *all, *survivors);
    return 0;
  }
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed |= status;
  return failed == 0 ? 0 : 1;
}
