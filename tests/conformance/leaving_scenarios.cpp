// Ranks that destroy their communicator in order: who waits for more than they have sent is told at
// once, and nobody else is.
#include <memory>
#include <string_view>

#include "base/units.hpp"
#include "conformance/scenarios.hpp"
#include "support/check.hpp"
#include "support/lane.hpp"
#include "support/patience.hpp"
#include "tutti/collectives.hpp"
#include "tutti/one_sided.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kLaneBytes = 64 * KiB;

void do_nothing(Communicator&, Lane&) {}

// A second group of the same ranks, in which `work` is done by all. Then rank 1 leaves it; the
// others do the `rest`, and go on to `wait` for what rank 1 never sends. The first of them that
// fails fails all: hence nobody waits before all are through.
template <class KernelArgs, class Rest, class Wait>
void rank_1_leaves(Rank& rank, const KernelArgs& work, const Rest& rest, const Wait& wait) {
  auto group = take(rank.group.split(0, rank.number()));
  auto lane = std::make_unique<Lane>(rank, *group, BufferKind::kSymmetric, kLaneBytes);
  work(*group, *lane);
  if (rank.number() == 1) {
    lane.reset();
    group.reset();
  } else {
    rest(*group, *lane);
  }
  rank.meet();
  if (rank.number() != 1) {
    require_failure(wait(*group, *lane), StatusCode::kPeerFailed,
                    {"rank 1", "left the group", "before it destroys its communicator"});
  }
  rank.meet();  // the parent goes on, with all ranks
}

void rank_leaves_before(Rank& rank, std::string_view algorithm) {
  const Trial trial{.dtype = DataType::kInt32, .count = 1000, .algorithm = algorithm};
  rank_1_leaves(
      rank, [&](Communicator&, Lane& lane) { lane.expect_right(trial); }, do_nothing,
      [&](Communicator& group, Lane& lane) {
        const Status status = lane.run(lane.prepare(trial));
        // Of more than two, one finds it and the others hear of it.
        require_failure(status, StatusCode::kPeerFailed,
                        {"#2", "after all_reduce/", "#1 (1000 x int32, sum)"});
        require_failure(group.allocate(100).status(), StatusCode::kPeerFailed);
        return status;
      });
}
void rank_leaves_before_a_barrier(Rank& rank) { rank_leaves_before(rank, "two_shot"); }
void rank_leaves_before_packets(Rank& rank) { rank_leaves_before(rank, "one_shot_push"); }
void rank_leaves_before_a_ring(Rank& rank) { rank_leaves_before(rank, "ring"); }
void rank_leaves_before_copies(Rank& rank) { rank_leaves_before(rank, "two_shot_copy_engine"); }

// Two of the ranks, and no other, exchange `count` floats twice; rank 1 once.
void rank_leaves_a_pair(Rank& rank, std::size_t count) {
  const auto exchange = [&](Communicator& group, Lane& lane) {
    // Nor frees memory: where ranks share a GPU that waits for those who exchange.
    if (rank.number() > 1) return lane.finish();
    OwnedMemory memory(rank.device, count * sizeof(float));
    const Recv taken{.buffer = memory.get(), .count = count, .peer = 1, .stream = lane.stream()};
    const Send sent{.buffer = memory.get(), .count = count, .peer = 0, .stream = lane.stream()};
    const Status started = rank.number() == 0 ? recv(group, taken) : send(group, sent);
    return started.is_ok() ? lane.finish() : started;
  };
  rank_1_leaves(
      rank, [&](Communicator& group, Lane& lane) { require_ok(exchange(group, lane)); }, do_nothing,
      [&](Communicator& group, Lane& lane) {
        if (rank.number() == 0) return exchange(group, lane);
        return wait_for_failure(group);
      });
}
void rank_leaves_before_a_short_message(Rank& rank) { rank_leaves_a_pair(rank, 100); }
void rank_leaves_before_a_long_message(Rank& rank) { rank_leaves_a_pair(rank, 100'000); }

// Of three signals, rank 1 has sent two.
void rank_leaves_before_a_signal(Rank& rank) {
  rank_1_leaves(
      rank,
      [&](Communicator& group, Lane& lane) {
        if (rank.number() != 1) return;
        for (int r = 0; r < rank.size(); ++r) {
          for (int times = 0; times < 2; ++times) {
            require_ok(signal(group, {.peer = r, .channel = 5, .stream = lane.stream()}));
          }
        }
        require_ok(lane.finish());
      },
      [&](Communicator& group, Lane& lane) {
        for (int times = 0; times < 2; ++times) {
          require_ok(wait_signal(group, {.peer = 1, .channel = 5, .stream = lane.stream()}));
        }
        require_ok(lane.finish());
      },
      [&](Communicator& group, Lane& lane) {
        const Status waited =
            wait_signal(group, {.peer = 1, .channel = 5, .stream = lane.stream()});
        return waited.is_ok() ? lane.finish() : waited;
      });
}

// Ranks leave as soon as they have what they need, while others are still in the same operation:
// in any order, many times, nobody is told of anything.
void ranks_leave_in_any_order(Rank& rank) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const auto group = take(rank.group.split(0, (rank.number() + round) % rank.size()));
    Lane lane(rank, *group, BufferKind::kSymmetric, kLaneBytes);
    for (const char* algorithm : {"one_shot_push", "ring", "two_shot"}) {
      lane.expect_right({.dtype = DataType::kInt32, .count = 300, .algorithm = algorithm});
    }
    const int next = (group->rank() + 1) % group->size();
    const int before = (group->rank() + group->size() - 1) % group->size();
    const Stream stream = lane.stream();
    require_ok(signal(*group, {.peer = next, .stream = stream}));
    require_ok(wait_signal(*group, {.peer = before, .stream = stream}));
    OwnedMemory memory(rank.device, 2 * KiB);
    auto* const output = static_cast<std::byte*>(memory.get()) + KiB;
    group_start();
    require_ok(
        send(*group, {.buffer = memory.get(), .count = 256, .peer = next, .stream = stream}));
    require_ok(recv(*group, {.buffer = output, .count = 256, .peer = before, .stream = stream}));
    require_ok(group_end());
    require_ok(lane.finish());
    rank.meet_before_freeing();
  }
}

constexpr Scenario kLeaving[] = {
    {"rank_leaves_before_a_barrier", 2, kPatience, rank_leaves_before_a_barrier},
    {"rank_leaves_before_packets", 2, kPatience, rank_leaves_before_packets},
    {"rank_leaves_before_a_ring", 2, kPatience, rank_leaves_before_a_ring},
    {"rank_leaves_before_copies", 2, kPatience, rank_leaves_before_copies},
    {"rank_leaves_before_a_short_message", 2, kPatience, rank_leaves_before_a_short_message},
    {"rank_leaves_before_a_long_message", 2, kPatience, rank_leaves_before_a_long_message},
    {"rank_leaves_before_a_signal", 2, kPatience, rank_leaves_before_a_signal},
    {"ranks_leave_in_any_order", 2, kPatience, ranks_leave_in_any_order},
};

}  // namespace

std::span<const Scenario> leaving_scenarios() { return kLeaving; }

}  // namespace tutti::test
