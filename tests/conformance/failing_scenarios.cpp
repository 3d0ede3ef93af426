#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <thread>

#include "base/units.hpp"
#include "conformance/scenarios.hpp"
#include "support/check.hpp"
#include "support/lane.hpp"
#include "support/patience.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kRoom = 64 * KiB;

// A deadline that has to pass. Of two ranks only one waits. Of more, those that wait must all have
// come before it passes, or one of them is named for who stays away.
milliseconds short_deadline(const Rank& rank) {
  return milliseconds(rank.size() == 2 ? 200 : 1500);
}
void shorten_deadline(Rank& rank) { require_ok(rank.group.set_timeout(short_deadline(rank))); }

// A working operation, and then until every rank is done with it: the failure that follows must not
// meet a rank that is still in this one. The ranks meet in another group, which fails with nobody.
void work_once(Rank& rank, Lane& lane) {
  const auto meeting = take(rank.group.split(0, rank.number()));
  lane.expect_right({.count = 100});
  (void)take(meeting->allocate(256));
}

// What a rank sees while rank 0 stays away: rank 0 itself, that the group has failed.
template <class Run>
Status without_rank_0(Rank& rank, Run&& run) {
  return rank.number() == 0 ? wait_for_failure(rank.group) : run();
}

// An operation, with something on a second thread while it waits.
Status run_beside(Lane& lane, const std::function<void()>& beside) {
  const AllReduce call = lane.prepare({.count = 1000});
  Status status;
  run_together([&] { status = lane.run(call); }, beside);
  return status;
}

// Failure is terminal: every later call says the same.
void require_terminal(Rank& rank, Lane& lane, const Status& failure) {
  const Status again = lane.run(lane.prepare({.count = 10}));
  require_failure(again, failure.code());
  require_failure(rank.group.status(), failure.code());
  require_failure(rank.group.allocate(100).status(), failure.code());
  require_failure(rank.group.split(0, 0).status(), failure.code());
}

std::string rank_text(int rank) { return fmt::format("rank {}", rank); }

// The rank that deviates learns what both sides run; of two ranks, so does the other.
void require_both_sides(Rank& rank, std::string_view one, std::string_view other) {
  if (rank.number() != 1 && rank.size() != 2) return;
  const auto end = Clock::now() + kPatience;
  std::string text;
  while (Clock::now() < end) {
    text = rank.group.status().to_string();
    if (text.find(one) != std::string::npos && text.find(other) != std::string::npos) return;
    std::this_thread::sleep_for(milliseconds(1));
  }
  fail(fmt::format("'{}' and '{}' are not both in: {}", one, other, text));
}

// Rank 1 does something else than the others; everybody's failure names it.
void one_rank_deviates(Rank& rank, void (*deviate)(AllReduce&), std::string_view difference) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  work_once(rank, lane);
  AllReduce call = lane.prepare({.count = 1000, .algorithm = "two_shot"});
  if (rank.number() == 1) deviate(call);
  const Status status = lane.run(call);
  require_failure(status, StatusCode::kMismatch, {"all_reduce/", "#2", rank_text(1)});
  require_both_sides(rank, "(1000 x fp32, sum)", difference);
  require_terminal(rank, lane, status);
}

void mismatched_count(Rank& rank) {
  one_rank_deviates(
      rank, [](AllReduce& call) { call.count = 999; }, "(999 x fp32, sum)");
}
void mismatched_dtype(Rank& rank) {
  one_rank_deviates(
      rank, [](AllReduce& call) { call.dtype = DataType::kInt32; }, "(1000 x int32, sum)");
}
void mismatched_op(Rank& rank) {
  one_rank_deviates(
      rank, [](AllReduce& call) { call.op = ReduceOp::max(); }, "(1000 x fp32, max)");
}
void mismatched_algorithm(Rank& rank) {
  one_rank_deviates(
      rank, [](AllReduce& call) { call.options.algorithm = "one_shot"; }, "all_reduce/one_shot");
}
void mismatched_offset(Rank& rank) {
  one_rank_deviates(
      rank, [](AllReduce& call) { call.output = static_cast<std::byte*>(call.output) + 16; },
      "(1000 x fp32, sum)");
}
void mismatched_blocks(Rank& rank) {
  one_rank_deviates(
      rank, [](AllReduce& call) { call.options.blocks = 3; }, "(1000 x fp32, sum)");
}
void mismatched_chunk(Rank& rank) {
  one_rank_deviates(
      rank, [](AllReduce& call) { call.options.chunk_bytes = 4096; }, "(1000 x fp32, sum)");
}

// Rank 1's buffers are no symmetric memory: it stages where the others do not.
void mismatched_buffers(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  Lane plain(rank, BufferKind::kPlain, kRoom);
  work_once(rank, lane);
  Lane& mine = rank.number() == 1 ? plain : lane;
  const Status status = mine.run(mine.prepare({.count = 1000, .algorithm = "two_shot"}));
  require_failure(status, StatusCode::kMismatch, {"all_reduce/", "#2", rank_text(1)});
  require_terminal(rank, lane, status);
}

// Rank 1 runs the second operation first.
void mismatched_order(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  work_once(rank, lane);
  const bool other = rank.number() == 1;
  Status status = lane.run(lane.prepare({.count = other ? 500u : 1000u}));
  if (status.is_ok()) status = lane.run(lane.prepare({.count = other ? 1000u : 500u}));
  require_failure(status, StatusCode::kMismatch, {"all_reduce/", "#2", rank_text(1)});
  require_terminal(rank, lane, status);
}

// The deadline has passed here, or for a rank that has left since.
void require_given_up(const Status& status) {
  const bool left = status.code() == StatusCode::kPeerFailed;
  require_failure(status, left ? StatusCode::kPeerFailed : StatusCode::kTimeout,
                  {"all_reduce/", "#1"});
}

// Rank 1 runs the operations of two groups in the other order. Where an operation keeps its rank
// busy that cannot work, and the deadline says so; it must not hang, and not be wrong.
void opposite_orders_of_two_groups(Rank& rank) {
  const auto other = take(rank.group.split(0, rank.number()));
  Lane first(rank, BufferKind::kSymmetric, kRoom);
  Lane second(rank, *other, BufferKind::kSymmetric, kRoom);
  const Trial trial{.count = 1000};
  const AllReduce a = first.prepare(trial), b = second.prepare(trial);
  for (Communicator* group : {&rank.group, other.get()}) {
    require_ok(group->set_timeout(short_deadline(rank)));
  }
  const bool swapped = rank.number() == 1;
  const Status early = swapped ? second.start(b) : first.start(a);
  const Status late = swapped ? first.start(a) : second.start(b);
  for (const Status& started : {early, late}) {
    if (!started.is_ok()) require_given_up(started);
  }
  for (Lane* lane : {&first, &second}) {
    const Status status = lane->finish();
    if (status.is_ok() && early.is_ok() && late.is_ok()) lane->check(trial);
    if (!status.is_ok()) require_given_up(status);
  }
}

// Rank 0 registers memory while the others run an operation: each says what it waited for.
void registered_on_one_rank(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  work_once(rank, lane);
  shorten_deadline(rank);
  if (rank.number() == 0) {
    OwnedMemory memory(rank.device, 4096);
    require_failure(rank.group.register_memory(memory.get(), 4096).status(), StatusCode::kTimeout);
  } else {
    require_failure(lane.run(lane.prepare({.count = 1000})), StatusCode::kTimeout);
  }
  require_failure(rank.group.status(), StatusCode::kTimeout, {"rank"});
}

// Rank 0 stays away. The others' failure says who waited for whom, where, and what was seen.
void rank_never_arrives(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const auto start = Clock::now();
  work_once(rank, lane);
  shorten_deadline(rank);
  const Status status =
      without_rank_0(rank, [&] { return lane.run(lane.prepare({.count = 1000})); });
  // The ranks begin to wait when the work ends, and any of them may be the first to give up.
  require(Clock::now() - start >= short_deadline(rank), "the wait ended before its deadline");
  require_failure(status, StatusCode::kTimeout,
                  {"all_reduce/", "#2", "waited", "for rank 0", "expected flag", "seen"});
  require_terminal(rank, lane, status);
}

void deadline_of_one_call(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const auto start = Clock::now();
  const Status status = without_rank_0(rank, [&] {
    AllReduce call = lane.prepare({.count = 1000});
    call.options.timeout = short_deadline(rank);
    return lane.run(call);
  });
  require_failure(status, StatusCode::kTimeout, {"#1", "for rank 0"});
  require(Clock::now() - start < rank.spec.timeout, "the call's deadline was not kept");
}

// A deadline that is changed while an operation waits ends that wait, too.
void deadline_changed_in_a_wait(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  work_once(rank, lane);
  require_failure(rank.group.set_timeout(milliseconds(0)), StatusCode::kInvalidArgument,
                  {"set_timeout(0 ms)"});
  const auto start = Clock::now();
  const Status status = without_rank_0(rank, [&] {
    return run_beside(lane, [&] {
      std::this_thread::sleep_for(milliseconds(100));
      shorten_deadline(rank);
    });
  });
  require_failure(status, StatusCode::kTimeout, {"#2", "for rank 0"});
  require(Clock::now() - start < rank.spec.timeout, "the new deadline was not kept");
}

// Rank 1's doing, while it waits on another thread.
void abort_soon(Rank& rank) {
  if (rank.number() != 1) return;
  std::this_thread::sleep_for(milliseconds(100));
  rank.group.abort("enough of it");
}

// Rank 1 aborts from a second thread, while it and all others but rank 0 wait for rank 0.
void abort_from_another_thread(Rank& rank) {
  Lane lane(rank, BufferKind::kPlain, kRoom);
  work_once(rank, lane);
  const Status status =
      without_rank_0(rank, [&] { return run_beside(lane, [&] { abort_soon(rank); }); });
  require_failure(status, StatusCode::kAborted, {"rank 1", "enough of it"});
  require_terminal(rank, lane, status);
}

// The same ranks go on in a new group, with memory of its own.
void shrink_after_an_abort(Rank& rank) {
  Lane lane(rank, BufferKind::kPlain, kRoom);
  work_once(rank, lane);
  const Status status =
      without_rank_0(rank, [&] { return run_beside(lane, [&] { abort_soon(rank); }); });
  require_failure(status, StatusCode::kAborted, {"rank 1", "enough of it"});
  const Survivors survivors = take(rank.group.shrink());
  require(survivors.missing.empty(), "nobody is missing");
  require_terminal(rank, lane, status);
  Lane next(rank, *survivors.communicator, BufferKind::kSymmetric, kRoom);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) next.expect_right({.count = 3000, .seed = seed});
}

// Copies that are enqueued behind a meeting to which rank 0 never comes, several operations of
// them: an abort ends them all, and else the deadline. `run` enqueues one.
template <class Run>
void copies_without_rank_0(Rank& rank, bool aborts, Run&& run) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const SymmetricMemory memory = take(rank.group.allocate(kRoom));
  work_once(rank, lane);
  if (!aborts) shorten_deadline(rank);
  const Status status = without_rank_0(rank, [&] {
    Status ended;
    const auto enqueue = [&] {
      for (int k = 0; k < 3 && ended.is_ok(); ++k) ended = run(rank, lane, memory);
      if (ended.is_ok()) ended = lane.finish();
    };
    run_together(enqueue, [&] {
      if (aborts) abort_soon(rank);
    });
    return ended;
  });
  if (aborts) {
    require_failure(status, StatusCode::kAborted, {"rank 1", "enough of it"});
  } else {
    require_failure(status, StatusCode::kTimeout, {"#2", "for rank 0"});
  }
  require_terminal(rank, lane, status);
}

Status gather_by_copies(Rank& rank, Lane& lane, const SymmetricMemory& memory) {
  auto* const output = static_cast<std::byte*>(memory.data());
  return all_gather(rank.group, {.input = output + kRoom / 2,
                                 .output = output,
                                 .count = 1000,
                                 .dtype = DataType::kUint8,
                                 .stream = lane.stream(),
                                 .options = {.algorithm = "copy_engine"}});
}
Status reduce_by_copies(Rank&, Lane& lane, const SymmetricMemory&) {
  return lane.start(lane.prepare({.count = 1000, .algorithm = "two_shot_copy_engine"}));
}
void abort_ends_gathering_copies(Rank& rank) {
  copies_without_rank_0(rank, true, gather_by_copies);
}
void abort_ends_reducing_copies(Rank& rank) { copies_without_rank_0(rank, true, reduce_by_copies); }
void deadline_ends_gathering_copies(Rank& rank) {
  copies_without_rank_0(rank, false, gather_by_copies);
}

// A second group over the same connections goes on when the first has failed.
void failure_stays_in_its_group(Rank& rank) {
  const auto other = take(rank.group.split(0, rank.number()));
  Lane lane(rank, *other, BufferKind::kSymmetric, kRoom);
  lane.expect_right({.count = 100});
  if (rank.number() == 0) rank.group.abort("only this one");
  require_failure(wait_for_failure(rank.group), StatusCode::kAborted, {"only this one"});
  lane.expect_right({.count = 1000});
}

// One rank asks for another size: nobody gets memory, everybody learns why.
void mismatched_allocation(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const auto memory = rank.group.allocate(rank.number() == 1 ? 4096 : 1 << 20);
  require_failure(memory.status(), StatusCode::kMismatch, {rank_text(1)});
  require_terminal(rank, lane, memory.status());
}

// Rank 1 splits where the others allocate. Nobody waits for a call that will not come.
void mismatched_setup(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const Status status =
      rank.number() == 1 ? rank.group.split(0, 0).status() : rank.group.allocate(4096).status();
  require_failure(status, StatusCode::kMismatch);
  require_terminal(rank, lane, status);
}

// Set-up that broke off leaves the ranks out of step: the group has failed, on the rank that stayed
// away as well.
void rank_missing_in_an_allocation(Rank& rank) {
  shorten_deadline(rank);
  const Status status =
      rank.number() == 0 ? wait_for_failure(rank.group) : rank.group.allocate(4096).status();
  require_failure(status, StatusCode::kTimeout, {"allocate", rank_text(0)});
  require_failure(rank.group.status(), StatusCode::kTimeout);
  require_failure(rank.group.allocate(4096).status(), StatusCode::kTimeout);
  // The others' deadlines pass one after the other: none is to hear that rank 0 has left before its
  // own has passed.
  if (rank.number() == 0) std::this_thread::sleep_for(milliseconds(300));
}

constexpr Scenario kFailing[] = {
    {"mismatched_count", 2, kPatience, mismatched_count},
    {"mismatched_dtype", 2, kPatience, mismatched_dtype},
    {"mismatched_op", 2, kPatience, mismatched_op},
    {"mismatched_algorithm", 2, kPatience, mismatched_algorithm},
    {"mismatched_offset", 2, kPatience, mismatched_offset},
    {"mismatched_blocks", 2, kPatience, mismatched_blocks},
    {"mismatched_chunk", 2, kPatience, mismatched_chunk},
    {"mismatched_buffers", 2, kPatience, mismatched_buffers},
    {"mismatched_order", 2, kPatience, mismatched_order},
    {"opposite_orders_of_two_groups", 2, kPatience, opposite_orders_of_two_groups, true},
    {"registered_on_one_rank", 2, kPatience, registered_on_one_rank, true},
    {"mismatched_allocation", 2, kPatience, mismatched_allocation},
    {"mismatched_setup", 2, kPatience, mismatched_setup},
    {"rank_missing_in_an_allocation", 2, kPatience, rank_missing_in_an_allocation, true},
    {"rank_never_arrives", 2, kPatience, rank_never_arrives, true},
    {"deadline_of_one_call", 2, kPatience, deadline_of_one_call, true},
    {"deadline_changed_in_a_wait", 2, kPatience, deadline_changed_in_a_wait, true},
    {"abort_from_another_thread", 2, kPatience, abort_from_another_thread},
    {"shrink_after_an_abort", 2, kPatience, shrink_after_an_abort},
    {"abort_ends_gathering_copies", 2, kPatience, abort_ends_gathering_copies},
    {"abort_ends_reducing_copies", 2, kPatience, abort_ends_reducing_copies},
    {"deadline_ends_gathering_copies", 2, kPatience, deadline_ends_gathering_copies, true},
    {"failure_stays_in_its_group", 2, kPatience, failure_stays_in_its_group},
};

}  // namespace

Status wait_for_failure(Communicator& group) {
  const auto end = Clock::now() + kPatience;
  for (;;) {
    const Status status = group.status();
    if (!status.is_ok()) return status;
    require(Clock::now() < end, "this rank was not told of the failure");
    std::this_thread::sleep_for(milliseconds(1));
  }
}

std::span<const Scenario> failing_scenarios() { return kFailing; }

}  // namespace tutti::test
