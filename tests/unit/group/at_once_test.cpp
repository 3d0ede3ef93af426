// Threads of one process, each of which makes, divides, uses and destroys groups of its own while
// the others do the same: nothing of theirs meets but what the process has once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "fakes/fake_cuda.hpp"
#include "group/in_process.hpp"
#include "support/check.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "support/run_ranks.hpp"
#include "support/sanitizers.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

constexpr int kThreadsAtOnce = 8, kRanksOfEach = 2;
constexpr int kRounds = kThreadSanitizer ? 8 : 24;  // of each thread

// The sum over the ranks of `group` of rank + `base`, in `memory`.
void expect_sum(Communicator& group, void* memory, std::int64_t base) {
  auto* const value = static_cast<std::int64_t*>(memory);
  *value = base + group.rank();
  require_ok(
      all_reduce(group, {.input = value, .output = value, .count = 1, .dtype = DataType::kInt64}));
  const std::int64_t size = group.size();
  const std::int64_t expected = base * size + size * (size - 1) / 2;
  require(*value == expected, fmt::format("{} instead of {}", *value, expected));
}

// What one rank does with a group, and with what comes of it.
void use_group(Communicator& group, std::int64_t base) {
  const LocalMemory local = take(group.allocate_local(2 * sizeof(std::int64_t)));
  std::int64_t plain = 0;
  const SymmetricMemory allocated = take(group.allocate(64));
  const SymmetricMemory of_local = take(group.register_memory(local.data(), local.size()));
  const SymmetricMemory of_plain = take(group.register_memory(&plain, sizeof plain));
  for (void* const memory : {allocated.data(), of_local.data(), of_plain.data()}) {
    expect_sum(group, memory, base);
  }
  const auto reversed = take(group.split(0, -group.rank()));
  expect_sum(*reversed, &plain, base);
  // Over the same connections, while the other part does the same.
  const auto alone = take(group.split(group.rank(), 0));
  const auto copy = take(alone->split(0, 0));
  const SymmetricMemory of_copy = take(copy->register_memory(local.data(), local.size()));
  expect_sum(*copy, of_copy.data(), base);
}

// Calls use(group) on a thread for each rank of a new group, which is made in another way in each
// round.
template <class Use>
void live_one_round(int round, const Use& use) {
  if (round % 3 == 0) {
    auto groups = take(Communicator::create_in_process(kRanksOfEach, kOnHost));
    on_all_ranks(kRanksOfEach, [&](int rank) { use(groups[static_cast<std::size_t>(rank)]); });
    return;
  }
  const UniqueId id =
      take(round % 3 == 1 ? UniqueId::create() : UniqueId::create_tcp("127.0.0.1", 0));
  on_all_ranks(kRanksOfEach, [&](int rank) {
    Communicator group = take(Communicator::create(id, rank, kRanksOfEach, kOnHost));
    use(group);
  });
}

// In a process of its own, whose groups take little memory: settings are read once.
std::string in_small_groups(const std::function<void()>& test) {
  const auto run = [&] {
    for (const char* setting : {"TUTTI_STAGING_BYTES", "TUTTI_CAPTURE_STAGING_BYTES",
                                "TUTTI_MESSAGE_BYTES", "TUTTI_CAPTURE_CHANNELS"}) {
      ::setenv(setting, "4", 1);
    }
    ::setenv("TUTTI_PACKET_BYTES", "0", 1);
    test();
  };
  return run_isolated(run, 2 * kPatience);
}

// Calls live(thread, round) for every round of every thread.
template <class Live>
void on_threads_at_once(const Live& live) {
  const std::string wrong = run_ranks(RankKind::kThreads, kThreadsAtOnce, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) live(thread, round);
  });
  require(wrong.empty(), wrong);
}

void live_on_the_host(int thread, int round) {
  live_one_round(round + thread,
                 [&](Communicator& group) { use_group(group, 1000 * thread + round); });
}

TEST(GroupsAtOnce, AreMadeDividedUsedAndDestroyedInThreadsOfTheirOwn) {
  EXPECT_EQ(in_small_groups([] { on_threads_at_once(live_on_the_host); }), "");
}

// What one rank does on a GPU.
void use_gpu(Communicator group, int device) {
  require(group.device() == device, "a rank has another rank's GPU");
  LocalMemory local = take(group.allocate_local(100));
  const SymmetricMemory registered = take(group.register_memory(local.data(), 100));
  require(registered.zero_copy(), "local memory is staged");
  local = {};
  const auto part = take(group.split(group.rank(), 0));
  require(part->device() == device, "a part has another GPU");
}

// One driver, whose devices all threads use: what a process keeps for GPUs.
TEST(GroupsAtOnce, ShareADriverOfGpus) {
  const auto test = [] {
    constexpr int kGpus = 4;
    FakeCuda cuda(std::make_shared<FakeCudaWorld>(kGpus));
    cuda.on_launch = [](const CudaLaunch&) { return Status::ok(); };
    const auto before = cuda.open();
    on_threads_at_once([&](int thread, int round) {
      std::vector<int> devices(kRanksOfEach);
      std::iota(devices.begin(), devices.end(), (thread + round) % (kGpus - 1));
      auto ranks = take(create_in_process(devices, {.backend = Backend::kCuda}, {.cuda = &cuda}));
      on_all_ranks(kRanksOfEach, [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        use_gpu(Communicator(std::move(ranks[r])), devices[r]);
      });
    });
    require(cuda.open() == before, "something of the driver's is left open");
  };
  EXPECT_EQ(in_small_groups(test), "");
}

}  // namespace
}  // namespace tutti::test
