#include "faults/network.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <stdlib.h>
#include <thread>
#include <vector>

#include "faults/stage.hpp"
#include "support/check.hpp"
#include "support/group.hpp"
#include "support/patience.hpp"
#include "support/sanitizers.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

constexpr int kNodes = 3, kVictim = 1;
// Opening the network has to fit, too.
constexpr milliseconds kSoon{kSanitizer ? 3000 : 1000};

Status sum_on_nodes(Communicator& group, std::size_t count) {
  std::vector<std::int32_t> values(count, group.rank());
  return all_reduce(
      group,
      {.input = values.data(), .output = values.data(), .count = count, .dtype = DataType::kInt32});
}

Status until_it_fails(Communicator& group) {
  const auto end = Stage::Clock::now() + kPatience;
  while (group.status().is_ok() && Stage::Clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return group.status();
}

struct Expected {
  StatusCode code;
  std::vector<std::string> parts;           // of the text of each rank
  std::vector<std::string> of_victim = {};  // of the victim's alone
};

// Each rank plays its part in a group with this deadline, and says how that ended. `fate`: what the
// victim meets once it has said "ready".
using NodePart = std::function<Status(Communicator& group, Wire& parent)>;
std::string play_on_nodes(milliseconds timeout, const NodePart& part, int fate,
                          const Expected& expected) {
  Stage stage(kNodes, [&](const UniqueId& id, int number, Wire& parent) {
    auto group =
        Communicator::create(id, number, kNodes, {.backend = Backend::kHost, .timeout = timeout});
    parent.say(to_line(group.is_ok() ? part(*group, parent) : group.status()));
  });
  if (fate != 0) {
    stage.children().wait_for_line(kVictim, "ready", kPatience);
    std::this_thread::sleep_for(milliseconds(30));  // into an operation
    stage.children().signal(kVictim, fate);
  }
  stage.mark();
  const auto has_ended = [&](int rank) {
    return result_line(stage.child(rank)) != nullptr || stage.child(rank).ended;
  };
  stage.children().listen(
      [&] { return has_ended(0) && has_ended(2) && (fate != 0 || has_ended(kVictim)); }, kPatience);
  for (int rank = 0; rank < kNodes; ++rank) {
    if (rank == kVictim && fate != 0) continue;
    const std::string* const line = result_line(stage.child(rank));
    if (line == nullptr) {
      stage.complain(rank, "no result in time");
      continue;
    }
    const Ending ending = from_line(*line);
    if (ending.code != expected.code) stage.complain(rank, "unexpected:" + ending.text);
    stage.expect_parts(rank, ending, expected.parts);
    if (rank == kVictim) stage.expect_parts(rank, ending, expected.of_victim);
    if (fate == SIGKILL) stage.expect_within(rank, ending, kGoneLimit);
  }
  if (fate == SIGSTOP) stage.expect_late_failure(kVictim, kPatience);
  stage.children().finish(kPatience);
  stage.expect_nothing_left();
  return stage.complaints();
}

Status work_until_failure(Communicator& group, Wire& parent) {
  Status status = sum_on_nodes(group, 1000);
  parent.say("ready");
  while (status.is_ok()) status = sum_on_nodes(group, 50'000);
  return status;
}

std::string killed_node() {
  return play_on_nodes(kPatience, work_until_failure, SIGKILL,
                       {StatusCode::kPeerFailed, {"rank 1"}});
}

std::string stopped_node() {
  return play_on_nodes(
      kSoon, work_until_failure, SIGSTOP,
      {StatusCode::kTimeout,
       {"all_reduce/network", "#", "until the deadline", "rank 1", "gave no sign of life for"}});
}

// The others' first operation opens the network, which all have to do.
std::string node_missing_as_the_network_opens() {
  const auto part = [](Communicator& group, Wire&) {
    return group.rank() == kVictim ? until_it_fails(group) : sum_on_nodes(group, 10);
  };
  return play_on_nodes(kSoon, part, 0, {StatusCode::kTimeout, {"rank 1"}});
}

std::string node_that_never_calls() {
  const auto part = [](Communicator& group, Wire&) {
    const Status first = sum_on_nodes(group, 10);
    if (!first.is_ok()) return first;
    return group.rank() == kVictim ? until_it_fails(group) : sum_on_nodes(group, 10);
  };
  return play_on_nodes(
      kSoon, part, 0,
      {StatusCode::kTimeout, {"all_reduce/network", "#2", "until the deadline", "rank 1"}});
}

// The one that deviates learns what both sides run; others may not have come to it.
std::string node_with_another_operation() {
  const auto part = [](Communicator& group, Wire&) {
    const Status first = sum_on_nodes(group, 10);
    if (!first.is_ok()) return first;
    (void)sum_on_nodes(group, group.rank() == kVictim ? 999 : 1000);
    const auto end =
        Stage::Clock::now() + (group.rank() == kVictim ? milliseconds(kPatience) : kSoon);
    const auto says = [&](const char* text) {
      return group.status().message().find(text) != std::string::npos;
    };
    while (!(says("(1000 x") && says("(999 x")) && Stage::Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return group.status();
  };
  return play_on_nodes(kPatience, part, 0,
                       {StatusCode::kMismatch,
                        {"all_reduce/network", "rank 1"},
                        {"(1000 x int32, sum)", "(999 x int32, sum)"}});
}

// Its setting is what differs first.
std::string node_without_a_library() {
  const auto part = [](Communicator& group, Wire&) { return sum_on_nodes(group, 10); };
  Stage stage(kNodes, [&](const UniqueId& id, int number, Wire& parent) {
    if (number == kVictim) ::setenv("TUTTI_UCX_LIBRARY", "/nonexistent/libucp.so", 1);
    auto group =
        Communicator::create(id, number, kNodes, {.backend = Backend::kHost, .timeout = kPatience});
    parent.say(to_line(group.is_ok() ? part(*group, parent) : group.status()));
  });
  stage.children().finish(kPatience);
  for (int rank = 0; rank < kNodes; ++rank) {
    const std::string* const line = result_line(stage.child(rank));
    if (line == nullptr) {
      stage.complain(rank, "no result");
      continue;
    }
    const Ending ending = from_line(*line);
    if (ending.code == StatusCode::kOk) stage.complain(rank, "it worked");
    stage.expect_parts(rank, ending, {"network"});
  }
  return stage.complaints();
}

constexpr NetworkFault kNetworkFaults[] = {
    {"a node is killed in an operation", killed_node},
    {"a node is stopped in an operation", stopped_node},
    {"a node is missing as the network opens", node_missing_as_the_network_opens},
    {"a node that never calls", node_that_never_calls},
    {"a node that runs another operation", node_with_another_operation},
    {"a node without UCX", node_without_a_library},
};

}  // namespace

std::span<const NetworkFault> network_faults() { return kNetworkFaults; }

}  // namespace tutti::test
