// Ranks as threads, each on a node of its own, whose network is a fake between threads: what is
// real is the GPU, which they may share. The protocol is tested in unit_parts (StagedOperations).
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "drivers/cuda.hpp"
#include "fakes/thread_wire.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/lane.hpp"
#include "support/ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

constexpr std::chrono::milliseconds kLimit{10000};

// Calls scenario(rank) on each rank. Settings have not been read in this process.
std::string on_nodes(int ranks, const std::function<void(Rank&)>& scenario) {
  ::setenv("TUTTI_TOPOLOGY", "nolocal", 1);
  ::setenv("TUTTI_NETWORK_STAGING_BYTES", "256K", 1);  // so that messages are cut
  ThreadNetworkDriver network;
  Drivers drivers = Drivers::real();
  drivers.nccl = nullptr;
  drivers.network = &network;
  auto bootstraps = make_in_process_group(ranks);
  const GroupSpec spec{.backend = Backend::kCuda, .ranks = ranks, .timeout = kLimit};
  return run_ranks(RankKind::kThreads, ranks, [&](int number) {
    Drivers own = drivers;
    own.local_rank = number;
    Communicator group(take(CommunicatorImpl::create(
        std::move(bootstraps[static_cast<std::size_t>(number)]), options_for(spec), own)));
    const auto device = make_device(Backend::kCuda, group.device());
    Rank rank{group, *device, spec};
    rank.meet_by_barrier();  // makes the staging
    scenario(rank);
  });
}

// Sums of all sizes, also at odd addresses, by algorithms of any order; then an all_gather, whose
// pieces are apart.
std::string staged_collectives(int ranks) {
  return on_nodes(ranks, [](Rank& rank) {
    Lane lane(rank, BufferKind::kPlain, 8 * MiB);
    for (std::uint64_t seed = 1; const std::size_t count : {1, 1000, 16384, 100003, 1000000}) {
      for (const bool in_place : {false, true}) {
        lane.expect_right(
            {.count = count, .in_place = in_place, .inputs = InputKind::kExact, .seed = ++seed});
      }
    }
    // Their multipliers lie in memory, as the count is odd.
    lane.expect_right(
        {.dtype = DataType::kInt64, .op = OpKind::kPreMulSum, .count = 100003, .seed = 7});
    const auto pieces = static_cast<std::size_t>(rank.size());
    constexpr std::size_t kPiece = 300001;
    const OwnedStream stream(rank.device);
    const OwnedMemory memory(rank.device, (pieces + 1) * kPiece + 1);
    std::byte* const output = memory.get() + kPiece + 1;
    require_ok(
        rank.device.cuda()->set_async(memory.get(), rank.number() + 1, kPiece, stream.get()));
    require_ok(all_gather(rank.group, {.input = memory.get(),
                                       .output = output,
                                       .count = kPiece,
                                       .dtype = DataType::kUint8,
                                       .stream = stream.get()}));
    stream.wait();
    require_ok(rank.group.status());
    std::vector<std::byte> seen(pieces * kPiece);
    rank.device.read(seen.data(), output, seen.size());
    for (std::size_t k = 0; k < seen.size(); ++k) {
      require(seen[k] == static_cast<std::byte>(k / kPiece + 1), "all_gather has other bytes");
    }
    rank.meet_by_barrier();  // freeing waits for the kernels of all
  });
}

// Rank 0 calls, the others do not: the kernel in its stream ends, and so does the one behind it.
std::string staged_failures(int ranks) {
  std::atomic<bool> done = false;
  return on_nodes(ranks, [&](Rank& rank) {
    if (rank.number() != 0) {
      while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    Lane lane(rank, BufferKind::kPlain, 1 * MiB);
    const AllReduce call = lane.prepare({.count = 200000, .seed = 1});
    require_ok(rank.group.set_timeout(std::chrono::milliseconds(500)));
    require_ok(lane.start(call));
    require_ok(lane.start(call));
    const Status failure = lane.finish();
    done = true;
    require_failure(failure, StatusCode::kTimeout, {"all_reduce", "rank 1"});
  });
}

constexpr WholeTest kTests[] = {
    {"staged_network_collectives", staged_collectives},
    {"staged_network_failures", staged_failures},
};

}  // namespace

std::span<const WholeTest> staged_network() { return kTests; }

}  // namespace tutti::test
