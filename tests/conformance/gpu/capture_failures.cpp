// Captures that go wrong, on one rank or on all: an error with a name, no hang, no fault.
#include <chrono>
#include <string>
#include <thread>

#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "support/cuda_graph.hpp"
#include "support/lane.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatient{10000}, kShort{5000};
constexpr std::size_t kRoom = 64 * KiB;

Status wait_for_failure(Rank& rank) {
  for (int k = 0; k < 30000 && rank.group.status().is_ok(); ++k) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return rank.group.status();
}

// The device must be as good as new for another group: nothing has faulted.
void require_usable_device(Rank& rank) {
  const OwnedMemory memory(rank.device, 4 * KiB);
  Bytes bytes(4 * KiB, std::byte{7});
  rank.device.write(memory.get(), bytes.data(), bytes.size());
  bytes.assign(bytes.size(), std::byte{0});
  rank.device.read(bytes.data(), memory.get(), bytes.size());
  require(bytes.back() == std::byte{7}, "the device does not copy any more");
}

void replayed_before_it_was_registered(Rank& rank) {
  Lane lane(rank, BufferKind::kPlain, kRoom);
  const AllReduce call = lane.prepare({.count = 1000, .algorithm = "two_shot"});
  require_ok(rank.group.start_capture());
  const CapturedGraph graph(*rank.device.cuda(), lane.stream(),
                            [&] { require_ok(lane.start(call)); });
  graph.launch(lane.stream());
  require_failure(lane.finish(), StatusCode::kInvalidArgument, {"finish_capture()", "#1"});
  require_usable_device(rank);
}

// Rank 1's second call is refused: its graph has one operation, the others' have two.
void refused_call_inside_a_capture(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const AllReduce call = lane.prepare({.count = 1000, .algorithm = "two_shot"});
  AllReduce second = call;
  if (rank.number() == 1) second.input = nullptr;
  const CapturedGraph graph(*rank.device.cuda(), lane.stream(), [&] {
    require_ok(lane.start(call));
    const Status status = lane.start(second);
    require(status.is_ok() == (rank.number() != 1), "only rank 1's call is refused");
  });
  graph.launch(lane.stream());
  Status status = lane.finish();
  if (rank.number() == 1) status = wait_for_failure(rank);
  require_failure(status, StatusCode::kTimeout, {"all_reduce/two_shot", "for rank 1"});
  require_usable_device(rank);
}

// Rank 1 never makes its first captured call: the others cannot agree on a channel.
void missing_call_inside_a_capture(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  AllReduce call = lane.prepare({.count = 1000, .algorithm = "two_shot"});
  if (rank.number() == 1) call.input = nullptr;
  const auto start = std::chrono::steady_clock::now();
  Status status;
  const CapturedGraph graph(*rank.device.cuda(), lane.stream(), [&] { status = lane.start(call); });
  const auto took = std::chrono::steady_clock::now() - start;
  require(took < kShort + milliseconds(5000), "the wait did not end with its deadline");
  if (rank.number() == 1) return require_failure(status, StatusCode::kInvalidArgument);
  // Rank 1 may be gone by then: either is the truth.
  require(status.code() == StatusCode::kTimeout || status.code() == StatusCode::kPeerFailed,
          status.to_string());
  require_usable_device(rank);
}

// Memory of a group cannot be made inside a capture: nobody is asked, and nothing is broken.
void first_operation_inside_a_capture(Rank& rank) {
  const auto part = take(rank.group.split(0, rank.number()));
  Rank inner{*part, rank.device, rank.spec};
  Lane lane(inner, BufferKind::kSymmetric, kRoom);
  const Trial trial{.count = 1000, .algorithm = "two_shot"};
  const AllReduce call = lane.prepare(trial);
  Status refused;
  const CapturedGraph empty(*rank.device.cuda(), lane.stream(),
                            [&] { refused = lane.start(call); });
  require_failure(refused, StatusCode::kUnsupported, {"prepare()"});
  require_ok(part->prepare());
  const CapturedGraph graph(*rank.device.cuda(), lane.stream(),
                            [&] { require_ok(lane.start(call)); });
  graph.launch(lane.stream());
  require_ok(lane.finish());
  lane.check(trial);
}

// A graph holds no deadline of its own: one that is set after the capture ends its waits.
void deadline_changed_after_the_capture(Rank& rank) {
  constexpr milliseconds kNew{1000};
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const AllReduce call = lane.prepare({.count = 1000, .algorithm = "two_shot"});
  const CapturedGraph graph(*rank.device.cuda(), lane.stream(),
                            [&] { require_ok(lane.start(call)); });
  graph.launch(lane.stream());
  require_ok(lane.finish());
  require_ok(rank.group.set_timeout(kNew));
  const auto start = std::chrono::steady_clock::now();
  if (rank.number() != 1) graph.launch(lane.stream());
  const Status status = rank.number() == 1 ? wait_for_failure(rank) : lane.finish();
  require_failure(status, StatusCode::kTimeout, {"all_reduce/two_shot", "for rank 1"});
  const auto took = std::chrono::steady_clock::now() - start;
  require(took < kPatient / 2, "the replay kept the deadline of its capture");
  require_usable_device(rank);
}

// Rank 1 does in its capture what CUDA forbids there; tutti refuses what comes after it.
void invalidated_capture(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const AllReduce call = lane.prepare({.count = 1000, .algorithm = "one_shot"});
  CudaDriver& cuda = *rank.device.cuda();
  require_ok(cuda.begin_capture(lane.stream()));
  require_ok(lane.start(call));
  if (rank.number() == 1) {
    require(!cuda.synchronize(lane.stream()).is_ok(), "CUDA refuses to wait inside a capture");
    require_failure(lane.start(call), StatusCode::kInvalidArgument, {"invalidated"});
    require(!cuda.end_capture(lane.stream()).is_ok(), "there is no graph of a broken capture");
    require_failure(wait_for_failure(rank), StatusCode::kTimeout, {"for rank 1"});
    return;
  }
  const CudaGraph graph = take(cuda.end_capture(lane.stream()));
  const CudaGraphExec exec = take(cuda.instantiate(graph));
  require_ok(cuda.launch_graph(exec, lane.stream()));
  require_failure(lane.finish(), StatusCode::kTimeout, {"all_reduce/one_shot", "for rank 1"});
  require_ok(cuda.destroy_graph_exec(exec));
  require_ok(cuda.destroy_graph(graph));
}

// The same with flags, by which graphs of one stream meet: their operations are equal, and yet one
// graph's flag is no other's.
void graphs_with_flags_of_one_stream_at_once(Rank& rank) {
  constexpr int kOperations = 200;
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const OwnedStream other(rank.device);
  const AllReduce call = lane.prepare({.count = 4000, .algorithm = "two_shot"});
  const auto series = [&] {
    for (int k = 0; k < kOperations; ++k) require_ok(lane.start(call));
  };
  const CapturedGraph first(*rank.device.cuda(), lane.stream(), series);
  const CapturedGraph second(*rank.device.cuda(), lane.stream(), series);
  for (const CapturedGraph* graph : {&first, &second}) {
    graph->launch(lane.stream());
    require_ok(lane.finish());
  }
  for (int k = 0; k < 50 && rank.group.status().is_ok(); ++k) {
    first.launch(lane.stream());
    second.launch(other.get());
  }
  const Status status = wait_for_failure(rank);
  const bool named =
      status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kMismatch;
  require(named && status.message().find("one after the other") != std::string::npos,
          status.to_string());
  rank.device.wait(lane.stream());
  rank.device.wait(other.get());
  require_usable_device(rank);
}

// Graphs that share an area for packets, on two streams at once: named, on all ranks, and no hang.
void graphs_of_one_stream_at_once(Rank& rank) {
  constexpr int kOperations = 200;
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const OwnedStream other(rank.device);
  const AllReduce call = lane.prepare({.count = 4000, .algorithm = "one_shot_push"});
  const auto series = [&] {
    for (int k = 0; k < kOperations; ++k) require_ok(lane.start(call));
  };
  const CapturedGraph first(*rank.device.cuda(), lane.stream(), series);
  const CapturedGraph second(*rank.device.cuda(), lane.stream(), series);
  first.launch(lane.stream());
  require_ok(lane.finish());
  for (int k = 0; k < 50 && rank.group.status().is_ok(); ++k) {
    first.launch(lane.stream());
    second.launch(other.get());
  }
  const Status status = wait_for_failure(rank);
  require(status.code() == StatusCode::kInvalidArgument, status.message());
  rank.device.wait(lane.stream());
  rank.device.wait(other.get());
  require_usable_device(rank);
}

constexpr Scenario kFailures[] = {
    {"graphs_of_one_stream_at_once", 2, kPatient, graphs_of_one_stream_at_once},
    {"replayed_before_it_was_registered", 1, kPatient, replayed_before_it_was_registered},
    {"refused_call_inside_a_capture", 2, kShort, refused_call_inside_a_capture},
    {"missing_call_inside_a_capture", 2, kShort, missing_call_inside_a_capture},
    {"first_operation_inside_a_capture", 2, kPatient, first_operation_inside_a_capture},
    {"deadline_changed_after_the_capture", 2, kPatient, deadline_changed_after_the_capture},
    {"invalidated_capture", 2, kShort, invalidated_capture},
    {"graphs_with_flags_of_one_stream_at_once", 2, kPatient,
     graphs_with_flags_of_one_stream_at_once},
};

}  // namespace

std::span<const Scenario> capture_failures() { return kFailures; }

}  // namespace tutti::test
