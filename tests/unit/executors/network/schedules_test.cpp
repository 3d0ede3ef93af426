// Random schedules of many operations, all orders of few messages, and what is found when the
// engine leaves out one of its rules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "executors/network/message.hpp"
#include "executors/network/rules.hpp"
#include "support/sanitizers.hpp"
#include "unit/executors/network/programs.hpp"
#include "unit/executors/network/world.hpp"

namespace tutti::test {
namespace {

using Clock = World::Clock;
using std::chrono::microseconds;

// Of a seed: ranks, delays, tasks, and when each rank starts them.
class RandomRun {
 public:
  RandomRun(std::uint64_t seed, NetworkRule omitted, bool large)
      : random_(seed), large_(large), world_(setup(seed, omitted)) {
    const auto ranks = static_cast<std::size_t>(world_.network().ranks());
    for (std::size_t k = 2 + below(large ? 3 : 10); k > 0; --k) tasks_.push_back(task());
    next_task_.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      next_start_.push_back(world_.network().now() + microseconds(below(4000)));
    }
  }

  std::string problem() {
    world_.run([this] { return start_due(); });
    return world_.problem();
  }

 private:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }

  World::Setup setup(std::uint64_t seed, NetworkRule omitted) {
    World::Setup made;
    made.ranks = static_cast<int>(2 + below(4));
    made.omitted = omitted;
    made.network.seed = seed;
    made.network.most_delay = microseconds(below(1000));
    made.network.most_sent_delay = microseconds(below(1000));
    made.network.overtaking = below(4) != 0;
    made.network.may_send_within_post = below(2) == 0;
    const std::size_t scratch = large_ ? 200'000 : 400;
    if (below(2) == 0) made.most_scratch_bytes = scratch;
    return made;
  }

  Task task() {
    constexpr NetworkSchedule kSchedules[] = {ring, direct, direct, chain, star, gather, assemble};
    Task made;
    made.schedule = kSchedules[below(7)];
    const bool sums = made.schedule == ring || made.schedule == direct;
    made.count = large_ ? 100'000 + below(200'000) : below(300);
    made.chunk_bytes = large_ ? 48 * 1024 : 20 + below(200);
    made.root = static_cast<int>(below(static_cast<std::size_t>(world_.network().ranks())));
    made.in_place = sums && below(2) == 0;
    return made;
  }

  Clock::time_point start_due() {
    auto next = Clock::time_point::max();
    for (std::size_t rank = 0; rank < next_task_.size(); ++rank) {
      while (next_task_[rank] < tasks_.size() && next_start_[rank] <= world_.network().now()) {
        world_.start(static_cast<int>(rank), tasks_[next_task_[rank]++]);
        next_start_[rank] += microseconds(below(3) == 0 ? below(2000) : 0);
      }
      if (next_task_[rank] < tasks_.size()) next = std::min(next, next_start_[rank]);
    }
    return next;
  }

  std::mt19937_64 random_;
  bool large_;
  World world_;
  std::vector<Task> tasks_;
  std::vector<std::size_t> next_task_;
  std::vector<Clock::time_point> next_start_;
};

TEST(NetworkSchedulesTest, RandomOnes) {
  for (std::uint64_t seed = 1; seed <= (kSanitizer ? 100 : 300); ++seed) {
    ASSERT_EQ(RandomRun(seed, NetworkRule::kNone, false).problem(), "") << "seed " << seed;
  }
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    ASSERT_EQ(RandomRun(seed, NetworkRule::kNone, true).problem(), "") << "large seed " << seed;
  }
}

// A root far ahead of the others: of small and of large operations.
std::string run_ahead(NetworkRule omitted, std::size_t count) {
  World::Setup setup;
  setup.omitted = omitted;
  World world(setup);
  Task task{star, count};
  task.chunk_bytes = 16 * 1024;
  for (int k = 0; k < 30; ++k) world.start(0, task);
  world.settle();
  for (int k = 0; k < 30; ++k) world.start(1, task);
  world.run();
  return world.problem();
}

// Messages of an operation that has ended come again while later ones run.
std::string repeat_old(NetworkRule omitted) {
  World::Setup setup;
  setup.omitted = omitted;
  World world(setup);
  world.start_all({ring, 12});
  world.run();
  world.start(0, {ring, 12});
  world.settle();
  NetworkMessage old;
  old.group = 99;
  old.from = 1;
  old.sequence = 1;
  old.signature = 7;
  const NetworkHeader header = to_header(old);
  world.network().inject(0, to_bytes(header), Bytes(24));
  world.settle();
  world.start(1, {ring, 12});
  world.run();
  return world.problem();
}

std::string first_problem(NetworkRule omitted) {
  std::string problem = run_ahead(omitted, 1000);
  if (problem.empty()) problem = run_ahead(omitted, 100'000);
  if (problem.empty()) problem = repeat_old(omitted);
  for (std::uint64_t seed = 1; seed <= 200 && problem.empty(); ++seed) {
    problem = RandomRun(seed, omitted, false).problem();
  }
  for (std::uint64_t seed = 1; seed <= 20 && problem.empty(); ++seed) {
    problem = RandomRun(seed, omitted, true).problem();
  }
  return problem;
}

TEST(NetworkSchedulesTest, EachRuleIsNeeded) {
  EXPECT_EQ(run_ahead(NetworkRule::kNone, 1000), "");
  EXPECT_EQ(run_ahead(NetworkRule::kNone, 100'000), "");
  EXPECT_EQ(repeat_old(NetworkRule::kNone), "");
  const std::pair<NetworkRule, std::string_view> rules[] = {
      {NetworkRule::kUnasked, "unasked"},   {NetworkRule::kAhead, "ahead"},
      {NetworkRule::kAfter, "after"},       {NetworkRule::kOverlap, "overlap"},
      {NetworkRule::kSent, "sent"},         {NetworkRule::kKeep, "keep"},
      {NetworkRule::kSequence, "sequence"}, {NetworkRule::kOwnScratch, "own scratch"},
      {NetworkRule::kRepeat, "repeat"},
  };
  for (const auto& [rule, name] : rules) {
    const std::string problem = first_problem(rule);
    EXPECT_NE(problem, "") << "nothing is wrong without the rule: " << name;
    RecordProperty(std::string(name), problem);
  }
}

// All orders in which messages can arrive, by running again and again with other choices.
class Explorer {
 public:
  template <class Run>
  std::size_t explore(const Run& run) {
    std::size_t runs = 0;
    do {
      at_ = 0;
      run(*this);
      ++runs;
    } while (advance());
    return runs;
  }
  std::size_t choose(std::size_t of) {
    if (at_ == choices_.size()) choices_.push_back({0, of});
    return choices_[at_++].taken;
  }

 private:
  struct Choice {
    std::size_t taken, of;
  };
  bool advance() {
    choices_.resize(at_);
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().of) {
      choices_.pop_back();
    }
    if (choices_.empty()) return false;
    ++choices_.back().taken;
    return true;
  }
  std::vector<Choice> choices_;
  std::size_t at_ = 0;
};

// Both ranks have the task begun at any moment, too.
void run_chosen(const Task& task, bool sent_at_once, Explorer& explorer) {
  World::Setup setup;
  setup.timeout = std::chrono::hours(1000);
  setup.network.least_delay = setup.network.most_delay = std::chrono::hours(2000);
  if (!sent_at_once) {
    setup.network.least_sent_delay = setup.network.most_sent_delay = std::chrono::hours(2000);
  }
  World world(setup);
  std::vector<int> late = {0, 1};
  for (;;) {
    world.settle();
    const std::size_t events = world.network().pending(), all = events + late.size();
    if (all == 0) break;
    const std::size_t chosen = explorer.choose(all);
    if (chosen < events) {
      world.network().make_due(chosen);
    } else {
      world.start(late[chosen - events], task);
      late.erase(late.begin() + static_cast<std::ptrdiff_t>(chosen - events));
    }
  }
  ASSERT_EQ(world.problem(), "");
  ASSERT_TRUE(world.is_idle());
}

TEST(NetworkSchedulesTest, AllOrdersOfTwoRanks) {
  const auto explore = [](NetworkSchedule schedule, std::size_t count, bool sent_at_once) {
    Task task{schedule, count};
    task.chunk_bytes = 4;
    task.in_place = schedule != star;
    Explorer explorer;
    return explorer.explore([&](Explorer& choices) { run_chosen(task, sent_at_once, choices); });
  };
  // Two chunks of each share; then two chunks whose completions come at any moment.
  EXPECT_GT(explore(ring, 4, true), 100U);
  EXPECT_GT(explore(star, 2, false), 100U);
}

}  // namespace
}  // namespace tutti::test
