// Ranks as processes, each on a node of its own, between which UCX moves data of their GPU itself,
// over the loopback. Needs a UCX with CUDA; a network with RDMA is not tested here.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "drivers/cuda.hpp"
#include "drivers/network.hpp"
#include "support/check.hpp"
#include "support/group.hpp"
#include "support/run_ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

constexpr std::chrono::milliseconds kDirectLimit{20000};
constexpr auto kByte = DataType::kUint8;

std::byte byte_of(int rank, std::size_t index) {
  return static_cast<std::byte>((index * 7 + index / 251 + static_cast<std::size_t>(rank) * 31) &
                                0xFF);
}

// One rank's calls, each followed by a copy of its output in the same stream, without a wait
// between the two: what UCX has written is there for the stream's next work.
class DirectRank {
 public:
  DirectRank(Rank& rank, std::size_t count)
      : rank_(rank),
        count_(count),
        stream_(rank.device),
        input_(rank.device, ranks() * count),
        output_(rank.device, ranks() * count),
        copy_(rank.device, ranks() * count) {
    std::vector<std::byte> values(ranks() * count);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = byte_of(rank.number(), k);
    rank_.device.write(input_.get(), values.data(), values.size());
  }

  void gathers() {
    AllGather call{input_.get(), output_.get(), count_, kByte, stream_.get()};
    clear();
    require_ok(all_gather(rank_.group, call));
    expect("all_gather", ranks(), [](int from, std::size_t k) { return byte_of(from, k); });
    // In place.
    std::byte* const own = output_.get() + static_cast<std::size_t>(rank_.number()) * count_;
    clear();
    require_ok(rank_.device.cuda()->copy_async(own, input_.get(), count_, stream_.get()));
    call.input = own;
    require_ok(all_gather(rank_.group, call));
    expect("all_gather in place", ranks(),
           [](int from, std::size_t k) { return byte_of(from, k); });
    clear();
    require_ok(gather(rank_.group, {input_.get(), output_.get(), count_, kByte, 0, stream_.get()}));
    if (rank_.number() != 0) return;
    expect("gather", ranks(), [](int from, std::size_t k) { return byte_of(from, k); });
  }

  void scatters() {
    const std::size_t first = static_cast<std::size_t>(rank_.number()) * count_;
    clear();
    require_ok(
        all_to_all(rank_.group, {input_.get(), output_.get(), count_, kByte, stream_.get()}));
    expect("all_to_all", ranks(),
           [&](int from, std::size_t k) { return byte_of(from, first + k); });
    clear();
    require_ok(
        scatter(rank_.group, {input_.get(), output_.get(), count_, kByte, 1, stream_.get()}));
    expect("scatter", 1, [&](int, std::size_t k) { return byte_of(1, first + k); });
    clear();
    require_ok(
        broadcast(rank_.group, {input_.get(), output_.get(), count_, kByte, 1, stream_.get()}));
    expect("broadcast", 1, [](int, std::size_t k) { return byte_of(1, k); });
  }

  // Two to the next rank, from the one before.
  void sends() {
    const int next = (rank_.number() + 1) % rank_.size();
    const int before = (rank_.number() + rank_.size() - 1) % rank_.size();
    clear();
    group_start();
    for (std::size_t k = 0; k < 2; ++k) {
      require_ok(
          send(rank_.group, {input_.get() + k * count_, count_, kByte, next, stream_.get()}));
      require_ok(
          recv(rank_.group, {output_.get() + k * count_, count_, kByte, before, stream_.get()}));
    }
    require_ok(group_end());
    expect("messages", 2, [&](int part, std::size_t k) {
      return byte_of(before, static_cast<std::size_t>(part) * count_ + k);
    });
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(rank_.size()); }
  void clear() {
    require_ok(rank_.device.cuda()->set_async(output_.get(), 0, ranks() * count_, stream_.get()));
  }
  template <class Value>
  void expect(std::string_view what, std::size_t parts, const Value& value) {
    const std::size_t bytes = parts * count_;
    require_ok(rank_.device.cuda()->copy_async(copy_.get(), output_.get(), bytes, stream_.get()));
    stream_.wait();
    require_ok(rank_.group.status());
    std::vector<std::byte> seen(bytes);
    rank_.device.read(seen.data(), copy_.get(), bytes);
    for (std::size_t k = 0; k < bytes; ++k) {
      if (seen[k] == value(static_cast<int>(k / count_), k % count_)) continue;
      throw Failure(fmt::format("{} of {} bytes is wrong at {}", what, count_, k));
    }
  }

  Rank& rank_;
  const std::size_t count_;
  const OwnedStream stream_;
  const OwnedMemory input_, output_, copy_;
};

// Before this process uses CUDA. Whether UCX reaches memory of GPUs.
bool becomes_direct() {
  ::setenv("TUTTI_TOPOLOGY", "nolocal", 1);
  ::setenv("TUTTI_NETWORK_DIRECT", "1", 1);
  ::setenv("TUTTI_SOCKET_IFNAME", "lo", 0);
  ::setenv("TUTTI_NCCL_LIBRARY", "/nowhere", 1);
  const std::string why = run_isolated(
      [] {
        const auto wire = take(real_network()->open(true, true));
        require(wire->reaches_gpus(),
                wire->text() + " has no CUDA: TUTTI_UCX_LIBRARY names another");
      },
      kPatience);
  if (!why.empty()) fmt::print("skipped direct_network: {}\n", why);
  return why.empty();
}

std::string between_nodes(int ranks, const std::function<void(Rank&)>& scenario) {
  if (!becomes_direct()) return {};
  const GroupSpec spec{.backend = Backend::kCuda,
                       .kind = RankKind::kProcesses,
                       .ranks = ranks,
                       .timeout = kDirectLimit};
  return run_group(spec, scenario);
}

std::string direct_collectives(int ranks) {
  return between_nodes(ranks, [](Rank& rank) {
    // Staged ones among them.
    for (const std::size_t count : {1000UL, 65536UL, 300001UL, 5 * MiB + 16}) {
      DirectRank one(rank, count);
      one.gathers();
      one.scatters();
      one.sends();
      rank.meet_by_barrier();
    }
  });
}

// Rank 0 calls, the others do not: its kernels end, and its memory is its own again.
std::string direct_failures(int ranks) {
  return between_nodes(ranks, [](Rank& rank) {
    rank.meet_by_barrier();
    if (rank.number() != 0) {
      // Told by rank 0.
      while (rank.group.status().is_ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    require_ok(rank.group.set_timeout(std::chrono::milliseconds(1000)));
    const OwnedStream stream(rank.device);
    const OwnedMemory memory(rank.device, 1 * MiB);
    const AllGather call{memory.get(), memory.get() + 128 * KiB, 128 * KiB, kByte, stream.get()};
    require_ok(all_gather(rank.group, call));
    require_ok(all_gather(rank.group, call));
    stream.wait();
    require_failure(rank.group.status(), StatusCode::kTimeout, {"all_gather", "rank 1"});
  });
}

constexpr WholeTest kDirectTests[] = {
    {"direct_network_collectives", direct_collectives},
    {"direct_network_failures", direct_failures},
};

}  // namespace

std::span<const WholeTest> direct_network() { return kDirectTests; }

}  // namespace tutti::test
