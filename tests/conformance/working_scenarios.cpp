#include <chrono>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "conformance/random_groups.hpp"
#include "conformance/scenarios.hpp"
#include "support/check.hpp"
#include "support/lane.hpp"
#include "support/patience.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kLargeRoom = 256 * KiB;

Trial trial_of(std::size_t count, std::uint64_t seed) { return {.count = count, .seed = seed}; }

void two_communicators(Rank& rank) {
  const auto other = take(rank.group.split(0, rank.number()));
  Lane first(rank, BufferKind::kSymmetric, kLargeRoom);
  Lane second(rank, *other, BufferKind::kPlain, kLargeRoom);
  for (std::uint64_t k = 1; k <= 20; ++k) {
    const Trial a = trial_of(1000 * k, k), b = trial_of(3000, 100 + k);
    const AllReduce call_a = first.prepare(a), call_b = second.prepare(b);
    run_together([&] { require_ok(first.run(call_a)); }, [&] { require_ok(second.run(call_b)); });
    first.check(a);
    second.check(b);
  }
}

// Six operations are under way before the first is waited for, on two streams in turn, staged
// and direct ones mixed.
void two_streams(Rank& rank) {
  std::deque<Lane> lanes;
  for (int k = 0; k < 6; ++k) {
    lanes.emplace_back(rank, k % 3 == 0 ? BufferKind::kPlain : BufferKind::kSymmetric, kLargeRoom);
  }
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const auto trial = [&](std::size_t k) { return trial_of(5000 * k + round, round); };
    std::vector<AllReduce> calls;
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      calls.push_back(lanes[k].prepare(trial(k)));
      calls.back().stream = lanes[k % 2].stream();
    }
    for (std::size_t k = 0; k < lanes.size(); ++k) require_ok(lanes[k].start(calls[k]));
    for (std::size_t k = 0; k < 2; ++k) require_ok(lanes[k].finish());
    for (std::size_t k = 0; k < lanes.size(); ++k) lanes[k].check(trial(k));
  }
}

void sub_group_then_whole_group(Rank& rank) {
  Lane whole(rank, BufferKind::kSymmetric, kLargeRoom);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    // Halves in reverse order; rank 0 alone stays out of the second round.
    const int color = round == 2 && rank.number() == 0 ? -1 : rank.number() % 2;
    const auto part = take(rank.group.split(color, -rank.number()));
    require((part == nullptr) == (color < 0), "a negative colour gives no group");
    if (part != nullptr) {
      Lane lane(rank, *part, BufferKind::kSymmetric, kLargeRoom);
      lane.expect_right(trial_of(4099, round));
      whole.expect_right(trial_of(1 + 777 * round, round));
      lane.expect_right(trial_of(16, round));
    } else {
      whole.expect_right(trial_of(1 + 777 * round, round));
    }
    whole.expect_right({.count = 5000, .in_place = true, .seed = round});
  }
}

void random_delays(Rank& rank) {
  Lane direct(rank, BufferKind::kSymmetric, kLargeRoom),
      staged(rank, BufferKind::kPlain, kLargeRoom);
  constexpr std::string_view kRows[] = {"one_shot", "two_shot", "two_shot_staged", "two_shot_tma"};
  std::mt19937_64 common(5);  // what to run: the same on every rank
  std::mt19937_64 own(static_cast<std::uint64_t>(rank.number()));
  for (std::uint64_t k = 0; k < 60; ++k) {
    std::this_thread::sleep_for(std::chrono::microseconds(own() % 3000));
    Lane& lane = common() % 2 == 0 ? direct : staged;
    lane.expect_right({.count = common() % 40000,
                       .in_place = common() % 2 == 0,
                       .seed = k,
                       .algorithm = kRows[common() % std::size(kRows)]});
  }
}

void scalars_per_rank(Rank& rank) {
  Lane direct(rank, BufferKind::kSymmetric, kLargeRoom),
      staged(rank, BufferKind::kPlain, kLargeRoom);
  for (const DataType dtype : {DataType::kBfloat16, DataType::kFloat64, DataType::kInt8}) {
    for (const std::string_view algorithm :
         {"one_shot", "two_shot", "two_shot_staged", "two_shot_tma"}) {
      const Trial trial{.dtype = dtype,
                        .op = OpKind::kPreMulSum,
                        .count = 20011,
                        .seed = 3,
                        .algorithm = algorithm};
      direct.expect_right(trial);
      staged.expect_right(trial);
    }
  }
}

// What no peer reads need not be symmetric.
void plain_inputs(Rank& rank) {
  Lane direct(rank, BufferKind::kSymmetric, kLargeRoom),
      plain(rank, BufferKind::kPlain, kLargeRoom);
  for (const std::string_view algorithm : {"two_shot", "two_shot_staged", "two_shot_tma"}) {
    const Trial trial{.count = 20011, .seed = 7, .algorithm = algorithm};
    AllReduce call = direct.prepare(trial);
    call.input = plain.prepare(trial).input;
    require_ok(plain.finish());
    require_ok(direct.run(call));
    direct.check(trial);
  }
}

// Memory is given back and taken again, and a group goes on after calls that were refused.
void refused_calls_change_nothing(Rank& rank) {
  for (std::uint64_t k = 1; k <= 10; ++k) {
    Lane lane(rank, k % 2 == 0 ? BufferKind::kRegistered : BufferKind::kSymmetric, kLargeRoom * k);
    AllReduce call = lane.prepare(trial_of(100, k));
    call.options.algorithm = "no_such_algorithm";
    require_failure(lane.run(call), StatusCode::kInvalidArgument, {"one_shot", "two_shot"});
    call = lane.prepare(trial_of(100, k));
    call.output = const_cast<std::byte*>(static_cast<const std::byte*>(call.input)) + 4;
    require_failure(lane.run(call), StatusCode::kInvalidArgument, {"overlap"});
    lane.expect_right(trial_of(100, k));
  }
}

// Processes that share a GPU take turns of milliseconds.
void random_groups(Rank& rank) {
  run_random_groups(rank, rank.spec.backend == Backend::kCuda ? 60 : 150, 1);
}

// Every rank's number in `memory`, which then holds the sum.
void expect_sum_of_ranks(Rank& rank, const SymmetricMemory& memory) {
  const OwnedStream stream(rank.device);
  constexpr std::size_t kCount = 1000;
  std::vector<std::int32_t> values(kCount, rank.number() + 1);
  auto* const bytes = reinterpret_cast<std::byte*>(values.data());
  auto* const at = static_cast<std::byte*>(memory.data());
  rank.device.write(at, bytes, kCount * sizeof(std::int32_t));
  require_ok(all_reduce(rank.group, {.input = at,
                                     .output = at,
                                     .count = kCount,
                                     .dtype = DataType::kInt32,
                                     .stream = stream.get(),
                                     .options = {.algorithm = "two_shot"}}));
  stream.wait();
  rank.device.read(bytes, at, kCount * sizeof(std::int32_t));
  const std::int32_t sum = rank.size() * (rank.size() + 1) / 2;
  require(values == std::vector<std::int32_t>(kCount, sum), "a wrong sum");
}

// A rank allocates alone, registers the memory as a whole and in a part that begins elsewhere on
// each rank, and lets go of it while it is registered.
void local_memory(Rank& rank) {
  const auto before = rank.group.counters();
  LocalMemory local = take(rank.group.allocate_local(64 * KiB));
  require(rank.group.counters() == before, "local memory is none of the group's");
  auto* const own = static_cast<std::byte*>(local.data());
  const std::size_t offset = 256 * static_cast<std::size_t>(rank.number() + 1);
  SymmetricMemory whole = take(rank.group.register_memory(own, local.size()));
  SymmetricMemory part = take(rank.group.register_memory(own + offset, 4 * KiB));
  require(whole.zero_copy() && part.zero_copy(), "local memory is staged");
  expect_sum_of_ranks(rank, whole);
  expect_sum_of_ranks(rank, part);
  local = {};
  rank.meet_before_freeing();
  whole = {};
  require(part.data() == own + offset, "registered memory has moved");
  expect_sum_of_ranks(rank, part);
  rank.meet_before_freeing();
  part = {};
}

constexpr Scenario kWorking[] = {
    {"two_communicators", 1, kPatience, two_communicators},
    {"two_streams", 1, kPatience, two_streams},
    {"sub_group_then_whole_group", 2, kPatience, sub_group_then_whole_group},
    {"random_delays", 2, kPatience, random_delays},
    {"random_groups", 2, kPatience, random_groups},
    {"scalars_per_rank", 1, kPatience, scalars_per_rank},
    {"plain_inputs", 1, kPatience, plain_inputs},
    {"local_memory", 1, kPatience, local_memory},
    {"refused_calls_change_nothing", 1, kPatience, refused_calls_change_nothing},
};

// What one thread does for all ranks.
class AllRanks {
 public:
  AllRanks(Backend backend, int ranks)
      : spec_{.backend = backend, .ranks = ranks},
        groups_(take(Communicator::create_in_process(ranks, options_for(spec_)))) {
    for (Communicator& group : groups_) {
      devices_.push_back(make_device(backend, group.device()));
      ranks_.push_back(Rank{group, *devices_.back(), spec_});
      lanes_.emplace_back(ranks_.back(), BufferKind::kPlain, kLargeRoom);
    }
  }

  // Two operations per rank in one group.
  void run(std::uint64_t seed) {
    const Trial trial{.count = 3001 * seed, .in_place = seed % 2 == 0, .seed = seed};
    std::vector<AllReduce> calls;
    for (Lane& lane : lanes_) calls.push_back(lane.prepare(trial));
    group_start();
    group_start();  // calls nest
    for (std::size_t r = 0; r < lanes_.size(); ++r) {
      const std::string name = seed % 2 == 0 ? "one_shot" : "two_shot";  // gone at group_end
      calls[r].options.algorithm = name;
      require_ok(lanes_[r].start(calls[r]));
    }
    require_ok(group_end());
    require_ok(group_end());
    for (Lane& lane : lanes_) require_ok(lane.finish());
    for (Lane& lane : lanes_) lane.check(trial);
  }

 private:
  GroupSpec spec_;
  std::vector<Communicator> groups_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::deque<Rank> ranks_;
  std::deque<Lane> lanes_;
};

}  // namespace

std::span<const Scenario> working_scenarios() { return kWorking; }

std::string drive_all_ranks(Backend backend, int ranks) {
  try {
    AllRanks all(backend, ranks);
    for (std::uint64_t seed = 1; seed <= 10; ++seed) all.run(seed);
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace tutti::test
