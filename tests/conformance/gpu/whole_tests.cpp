// Tests whose ranks are not made in the usual way: one thread for all, one visible GPU for each.
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "base/knobs.hpp"
#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "support/cuda_graph.hpp"
#include "support/lane.hpp"

namespace tutti::test {
namespace {

constexpr std::chrono::milliseconds kDeadline{10000};

std::string one_thread_drives_all_ranks(int ranks) {
  return drive_all_ranks(Backend::kCuda, ranks);
}

// The same inside captures: each rank's stream is captured by the one thread.
void capture_and_replay_from_one_thread(int ranks) {
  const GroupSpec spec{.backend = Backend::kCuda, .ranks = ranks, .timeout = kDeadline};
  auto groups = take(Communicator::create_in_process(ranks, options_for(spec)));
  prepare_all(groups);
  std::vector<std::unique_ptr<Device>> devices;
  std::deque<Rank> all;
  std::deque<Lane> lanes;
  std::vector<AllReduce> calls;
  const Trial trial{.count = 6000, .seed = 5};
  for (Communicator& group : groups) {
    devices.push_back(make_device(Backend::kCuda, group.device()));
    all.push_back(Rank{group, *devices.back(), spec});
    lanes.emplace_back(all.back(), BufferKind::kPlain, 64 * KiB);
    calls.push_back(lanes.back().prepare(trial));
  }
  CudaDriver& cuda = *devices.front()->cuda();
  for (Lane& lane : lanes) require_ok(cuda.begin_capture(lane.stream()));
  group_start();
  for (std::size_t r = 0; r < lanes.size(); ++r) require_ok(lanes[r].start(calls[r]));
  require_ok(group_end());
  std::vector<CudaGraph> graphs;
  std::vector<CudaGraphExec> execs;
  // Instantiating is forbidden while a capture of this thread is under way: all end first.
  for (Lane& lane : lanes) graphs.push_back(take(cuda.end_capture(lane.stream())));
  for (const CudaGraph graph : graphs) execs.push_back(take(cuda.instantiate(graph)));
  for (std::size_t r = 0; r < lanes.size(); ++r) {
    require_ok(cuda.set_device(groups[r].device()));
    require_ok(cuda.launch_graph(execs[r], lanes[r].stream()));
  }
  for (Lane& lane : lanes) require_ok(lane.finish());
  for (Lane& lane : lanes) lane.check(trial);
  for (const CudaGraphExec exec : execs) require_ok(cuda.destroy_graph_exec(exec));
  for (const CudaGraph graph : graphs) require_ok(cuda.destroy_graph(graph));
}

std::string one_thread_captures_all_ranks(int ranks) {
  try {
    capture_and_replay_from_one_thread(ranks);
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return {};
}

// The name CUDA_VISIBLE_DEVICES has for the GPU that is number `index` now.
std::string visible_name(int index) {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) return std::to_string(index);
  std::string_view rest = list;
  for (int k = 0; k < index; ++k) rest.remove_prefix(std::min(rest.find(',') + 1, rest.size()));
  return std::string(rest.substr(0, rest.find(',')));
}

// Each process sees its own GPU alone, as number 0. Where ranks share one, all see that.
std::string one_visible_gpu_per_rank(int ranks) {
  const UniqueId id = take(UniqueId::create());
  const GroupSpec spec{.backend = Backend::kCuda,
                       .kind = RankKind::kProcesses,
                       .ranks = ranks,
                       .timeout = kDeadline};
  return run_ranks(RankKind::kProcesses, ranks, [&](int number) {
    const bool shared = Knobs::process().flag("TUTTI_SHARE_GPUS");
    ::setenv("CUDA_VISIBLE_DEVICES", visible_name(shared ? 0 : number).c_str(), 1);
    Communicator group = take(Communicator::create(id, number, ranks, options_for(spec)));
    require(group.device() == 0, "the only visible GPU is number 0");
    const auto device = make_device(Backend::kCuda, 0);
    Rank rank{group, *device, spec};
    for (const BufferKind kind : kAllBufferKinds) {
      Lane lane(rank, kind, 256 * KiB);
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        lane.expect_right({.count = 10000 * seed, .seed = seed, .algorithm = "two_shot"});
        lane.expect_right({.count = 1000 * seed, .seed = seed, .algorithm = "one_shot"});
      }
    }
  });
}

constexpr WholeTest kWhole[] = {
    {"one_thread_drives_all_ranks", one_thread_drives_all_ranks},
    {"one_thread_captures_all_ranks", one_thread_captures_all_ranks},
    {"one_visible_gpu_per_rank", one_visible_gpu_per_rank},
};

}  // namespace

std::span<const WholeTest> whole_tests() { return kWhole; }

}  // namespace tutti::test
