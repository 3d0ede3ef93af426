#include "faults/misfortunes.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <stdlib.h>
#include <thread>

#include "base/units.hpp"
#include "conformance/scenarios.hpp"
#include "faults/traces.hpp"
#include "support/check.hpp"
#include "support/lane.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

GroupSpec spec_of(Backend backend, int ranks, milliseconds timeout = kPatience) {
  return {.backend = backend, .kind = RankKind::kProcesses, .ranks = ranks, .timeout = timeout};
}

// `run` between two looks at what is left.
template <class Run>
std::string without_traces(const Run& run) {
  const Traces traces;
  ::setenv("TUTTI_RUNTIME_DIR", traces.directory().c_str(), 1);
  std::string failures = run(traces);
  const std::string left = traces.left();
  if (!left.empty()) failures += "left behind: " + left;
  return failures;
}

std::string run_scenario(Backend backend, int ranks, std::string_view name) {
  for (const Scenario& scenario : failing_scenarios()) {
    if (scenario.name != name) continue;
    return without_traces([&](const Traces&) {
      return run_group(spec_of(backend, ranks, scenario.timeout), scenario.run);
    });
  }
  return "there is no such scenario";
}

std::string mismatched_counts(Backend backend, int ranks) {
  return run_scenario(backend, ranks, "mismatched_count");
}
std::string rank_never_arrives(Backend backend, int ranks) {
  return run_scenario(backend, ranks, "rank_never_arrives");
}
std::string abort_from_another_thread(Backend backend, int ranks) {
  return run_scenario(backend, ranks, "abort_from_another_thread");
}

// What a full /dev/shm does to one process: files, shared memory among them, grow no further.
void limit_files(rlim_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, RLIM_INFINITY};
  require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
}

std::string no_memory_for_a_group(Backend, int ranks) {
  return without_traces([&](const Traces&) {
    const UniqueId id = take(UniqueId::create());
    const GroupSpec spec = spec_of(Backend::kHost, ranks);
    return run_ranks(RankKind::kProcesses, ranks, [&](int number) {
      if (number == 1) limit_files(MiB);
      const auto group = Communicator::create(id, number, ranks, options_for(spec));
      require_failure(group.status(), StatusCode::kResourceExhausted, {"rank 1"});
    });
  });
}

// Everybody learns who could not allocate, and the group goes on.
std::string no_memory_for_an_allocation(Backend, int ranks) {
  return without_traces([&](const Traces&) {
    return run_group(spec_of(Backend::kHost, ranks), [](Rank& rank) {
      if (rank.number() == 1) limit_files(MiB);
      require_failure(rank.group.allocate(64 * MiB).status(), StatusCode::kResourceExhausted,
                      {"rank 1"});
      Lane lane(rank, BufferKind::kSymmetric, 64 * KiB);
      lane.expect_right({.count = 1000});
    });
  });
}

// --- strangers ---

// One call of a stranger: connects and says something wrong, or nothing. False where nobody
// answers.
bool pester(int family, const sockaddr* address, socklen_t bytes, std::mt19937& random) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), address, bytes) != 0) return false;
  const auto kind = random() % 4;
  std::string noise(kind == 0 ? 0 : 1 + random() % 4096, '\0');
  for (char& c : noise) c = static_cast<char>(kind == 1 ? 0xff : random());
  (void)!::send(socket.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (kind == 3) (void)socket.release();  // stays connected, and says no more
  return true;
}

// Until it is killed, or has no descriptors left.
void pester_for_ever(int family, const sockaddr* address, socklen_t bytes, int answered) {
  std::mt19937 random(7);
  for (;;) {
    if (pester(family, address, bytes, random)) (void)!::write(answered, "x", 1);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  require(::bind(socket, plain, bytes) == 0 && ::getsockname(socket, plain, &bytes) == 0,
          "no free port");
  ::close(socket);
  return ntohs(address.sin_port);
}

// Calls until it is killed, and writes to `answered` whenever it was let in.
using Stranger = std::function<void(int answered)>;

// The group forms around a stranger: rank 1 does not come before that one.
std::string form_despite(const UniqueId& id, int ranks, const Stranger& stranger) {
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, "no pipe");
  const Fd heard(ends[0]), answered(ends[1]);
  const Children strangers(1, [&](int, Wire&) { stranger(answered.get()); });
  const GroupSpec spec = spec_of(Backend::kHost, ranks);
  return run_ranks(RankKind::kProcesses, ranks, [&](int number) {
    if (number == 1) {
      pollfd wait{heard.get(), POLLIN, 0};
      const milliseconds most = kPatience;
      require(::poll(&wait, 1, static_cast<int>(most.count())) == 1, "the stranger met nobody");
      std::this_thread::sleep_for(milliseconds(50));  // for more of its calls
    }
    Communicator group = take(Communicator::create(id, number, ranks, options_for(spec)));
    const auto device = make_device(Backend::kHost, -1);
    Rank rank{group, *device, spec};
    Lane lane(rank, BufferKind::kPlain, 64 * KiB);
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      lane.expect_right({.count = 1000, .seed = seed});
  });
}

std::string stranger_on_the_port(Backend, int ranks) {
  return without_traces([&](const Traces&) {
    const std::uint16_t port = free_port();
    return form_despite(take(UniqueId::create_tcp("127.0.0.1", port)), ranks, [port](int answered) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      pester_for_ever(AF_INET, reinterpret_cast<sockaddr*>(&address), sizeof address, answered);
    });
  });
}

// The first socket that appears in the directory where the ranks meet.
std::string first_socket_below(const std::string& folder) {
  for (;;) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
      if (entry.is_socket(error)) return entry.path().string();
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

std::string stranger_in_the_directory(Backend, int ranks) {
  return without_traces([&](const Traces& traces) {
    const UniqueId id = take(UniqueId::create());
    return form_despite(id, ranks, [&](int answered) {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      const std::string path = first_socket_below(traces.directory());
      path.copy(address.sun_path, sizeof address.sun_path - 1);
      pester_for_ever(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof address, answered);
    });
  });
}

// --- all at once ---

// Rank 0 comes to the operation in which the others wait when all have been stopped for longer than
// `limit`, and woken.
std::string stop_together(const UniqueId& id, int ranks, milliseconds limit) {
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC) == 0, "no pipe");
  const Fd awake(ends[0]), wake(ends[1]);
  const GroupSpec spec = spec_of(Backend::kHost, ranks);
  Children children(ranks, [&](int number, Wire& parent) {
    Communicator group = take(Communicator::create(id, number, ranks, options_for(spec)));
    const auto device = make_device(Backend::kHost, -1);
    Rank rank{group, *device, spec};
    Lane lane(rank, BufferKind::kPlain, 64 * KiB);
    require_ok(group.set_timeout(limit));
    parent.say("ready");
    char byte = 0;
    if (number == 0) require(::read(awake.get(), &byte, 1) == 1, "was not woken");
    lane.expect_right({.count = 1000});
  });
  for (int rank = 0; rank < ranks; ++rank) {
    if (!children.wait_for_line(rank, "ready", kPatience)) return "a rank is not ready\n";
  }
  std::this_thread::sleep_for(limit / 10);  // into the operation
  for (int rank = 0; rank < ranks; ++rank) children.signal(rank, SIGSTOP);
  std::this_thread::sleep_for(limit + limit / 10);
  for (int rank = 0; rank < ranks; ++rank) children.signal(rank, SIGCONT);
  std::this_thread::sleep_for(limit / 4);  // for them to see how late it is
  require(::write(wake.get(), "x", 1) == 1, "rank 0 is gone");
  std::string failures;
  for (const Children::Child& child : children.finish(kPatience)) {
    if (child.succeeded()) continue;
    failures += fmt::format("{}: {}\n", child.describe_end(), child.lines.back());
  }
  return failures;
}

// The shorter the deadline, the more of it a busy machine takes from those who have to go on.
std::string all_stopped_together(Backend, int ranks) {
  return without_traces([&](const Traces&) {
    std::string failures;
    for (milliseconds limit{1000}; limit < kPatience; limit *= 4) {
      failures = stop_together(take(UniqueId::create()), ranks, limit);
      if (failures.empty()) break;
    }
    return failures;
  });
}

constexpr Misfortune kMisfortunes[] = {
    {"mismatched counts", false, mismatched_counts},
    {"a rank that never arrives", false, rank_never_arrives},
    {"abort from another thread", false, abort_from_another_thread},
    {"no shared memory for a group", true, no_memory_for_a_group},
    {"no shared memory for an allocation", true, no_memory_for_an_allocation},
    {"a stranger on the bootstrap port", true, stranger_on_the_port},
    {"a stranger in the runtime directory", true, stranger_in_the_directory},
    {"all ranks are stopped together", true, all_stopped_together},
};

}  // namespace

std::span<const Misfortune> misfortunes() { return kMisfortunes; }

}  // namespace tutti::test
