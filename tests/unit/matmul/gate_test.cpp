// The gate's waits, with words that a test sets between the looks at them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "matmul/gated_arguments.hpp"

namespace tutti {
namespace {

// Time is the number of looks. With each, `on_look` may change words.
struct FakeWords {
  std::function<void(FakeWords&)> on_look = [](FakeWords&) {};
  std::uint64_t looks = 0;
  int acquires = 0, relaxed_loads = 0, pauses = 0;
  bool ordered = true;  // the last load acquires

  std::uint32_t relaxed(const std::uint32_t* word) {
    ++relaxed_loads;
    ordered = false;
    return look(word);
  }
  std::uint32_t acquire(const std::uint32_t* word) {
    ++acquires;
    ordered = true;
    return look(word);
  }
  void store(std::uint32_t* word, std::uint32_t value) { *word = value; }
  void release(std::uint32_t* word, std::uint32_t value) { *word = value; }
  bool claim(std::uint32_t* word) { return std::exchange(*word, 1) == 0; }
  std::uint64_t now() const { return looks; }
  void pause() { ++pauses; }

 private:
  std::uint32_t look(const std::uint32_t* word) {
    ++looks;
    on_look(*this);
    return *word;
  }
};

constexpr std::uint32_t kEpoch = 7;
constexpr std::size_t kColumns = 500;  // of A: eight stages of K

struct World {
  World(int rows, const ArrivalPlan& arrivals, std::uint32_t epoch = kEpoch)
      : plan(arrivals),
        m(rows),
        flags(static_cast<std::size_t>(plan.flags()), epoch - 1),
        chunks(chunks_of(plan, static_cast<std::size_t>(m), kColumns)),
        waits{.flags = flags.data(), .failure = &failure, .timeout_ns = 4000, .epoch = epoch} {}

  // Each row's first flag, counted off one by one: full shards of full chunks.
  std::vector<int> flags_of_rows() const {
    std::vector<int> of_row;
    const int shard_rows = (m + plan.shards - 1) / plan.shards;
    const int chunk_rows = (shard_rows + plan.chunks - 1) / plan.chunks;
    for (int shard = 0; shard < plan.shards; ++shard) {
      for (int within = 0; within < shard_rows; ++within) {
        const int chunk = shard * plan.chunks + within / chunk_rows;
        of_row.push_back(shard == plan.own ? -1 : chunk * plan.k_groups);
      }
    }
    of_row.resize(static_cast<std::size_t>(m));
    return of_row;
  }

  bool open(int flag) const {
    return flag < 0 || flags[static_cast<std::size_t>(flag)] == waits.epoch;
  }
  void set(int flag) { flags[static_cast<std::size_t>(flag)] = waits.epoch; }

  const ArrivalPlan plan;
  const int m;
  std::vector<std::uint32_t> flags;
  GateFailure failure;
  ArrivalChunks chunks;
  ArrivalWaits waits;
};

// Opens the gate for tiles of rows one after another, and in each for k-group after k-group, while
// chunks arrive in a random order. False where a tile may be read before all of its rows are there.
template <class Chunks>
bool always_waits(const Chunks& chunks, World& world, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> arrivals(world.flags.size());
  std::iota(arrivals.begin(), arrivals.end(), 0);
  std::shuffle(arrivals.begin(), arrivals.end(), random);
  FakeWords words;
  words.on_look = [&](FakeWords&) {
    if (random() % 3 != 0 || arrivals.empty()) return;
    world.set(arrivals.back());
    arrivals.pop_back();
  };
  const std::vector<int> flags = world.flags_of_rows();
  GateState state;
  const int rows = 1 + static_cast<int>(random() % 40);
  for (int row = 0; row < world.m; row += rows) {
    const int end = std::min(row + rows, world.m);
    for (int group = 0; group < world.plan.k_groups; ++group) {
      wait_for_rows(words, chunks, world.waits, state, {row, end, group});
      EXPECT_FALSE(state.failed);
      EXPECT_TRUE(words.ordered);
      for (int at = row; at < end; ++at) {
        const int first = flags[static_cast<std::size_t>(at)];
        if (!world.open(first < 0 ? first : first + group)) return false;
      }
    }
  }
  return true;
}

// What waits the wrong way.
struct SkipsOneChunk : ArrivalChunks {
  Chunk at(int row) const {
    const Chunk chunk = ArrivalChunks::at(row);
    const int skipped = own == 1 ? 0 : 1;
    return {chunk.flag == skipped * chunks * k_groups ? -1 : chunk.flag, chunk.end};
  }
};
struct OneFlagOff : ArrivalChunks {
  Chunk at(int row) const {
    const Chunk chunk = ArrivalChunks::at(row);
    return {chunk.flag <= 0 ? chunk.flag : chunk.flag - 1, chunk.end};
  }
};
struct TakesTheNextForTheOwn : ArrivalChunks {
  Chunk at(int row) const {
    const Chunk chunk = ArrivalChunks::at(row);
    const bool next = chunk.flag >= 0 && chunk.flag / (chunks * k_groups) == own + 1;
    return {next ? -1 : chunk.flag, chunk.end};
  }
};
struct EndsOneRowLate : ArrivalChunks {
  Chunk at(int row) const {
    const Chunk chunk = ArrivalChunks::at(row);
    return {chunk.flag, chunk.end + 1};
  }
};

struct CountsNoKGroups : ArrivalChunks {
  Chunk at(int row) const {
    const Chunk chunk = ArrivalChunks::at(row);
    return {chunk.flag < 0 ? chunk.flag : chunk.flag / k_groups, chunk.end};
  }
};

template <class Chunks>
int caught(int m, const ArrivalPlan& plan) {
  int caught = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    World world(m, plan);
    caught += always_waits(Chunks{world.chunks}, world, seed) ? 0 : 1;
  }
  return caught;
}

TEST(ArrivalGates, NoRowIsReadBeforeItsChunkIsThere) {
  for (const int m : {1, 5, 64, 97, 256}) {
    for (const int shards : {1, 2, 3, 8, 16}) {
      for (const int chunks : {1, 2, 3, 4}) {
        for (const int own : {0, shards / 2, shards - 1}) {
          const ArrivalPlan plan = {.shards = shards, .chunks = chunks, .own = own};
          ASSERT_EQ(caught<ArrivalChunks>(m, plan), 0)
              << m << " rows, " << shards << " x " << chunks << ", own " << own;
        }
      }
    }
  }
}

TEST(ArrivalGates, NoColumnIsReadBeforeItsKGroupIsThere) {
  for (const int m : {5, 97, 256}) {
    for (const auto& [shards, chunks, k_groups] :
         {std::array{2, 1, 8}, std::array{3, 2, 3}, std::array{8, 1, 16}, std::array{16, 2, 4}}) {
      for (const int own : {0, shards - 1}) {
        const ArrivalPlan plan = {
            .shards = shards, .chunks = chunks, .own = own, .k_groups = k_groups};
        ASSERT_EQ(caught<ArrivalChunks>(m, plan), 0)
            << m << " rows, " << shards << " x " << chunks << " x " << k_groups << ", own " << own;
      }
    }
  }
}

TEST(ArrivalGates, WrongOnesAreCaught) {
  const ArrivalPlan by_rows = {.shards = 4, .chunks = 2, .own = 1};
  const ArrivalPlan by_groups = {.shards = 4, .own = 1, .k_groups = 4};
  for (const ArrivalPlan& plan : {by_rows, by_groups}) {
    EXPECT_GT(caught<SkipsOneChunk>(128, plan), 0);
    EXPECT_GT(caught<OneFlagOff>(128, plan), 0);
    EXPECT_GT(caught<TakesTheNextForTheOwn>(128, plan), 0);
    EXPECT_GT(caught<EndsOneRowLate>(128, plan), 0);
  }
  EXPECT_GT(caught<CountsNoKGroups>(128, by_groups), 0);
}

TEST(ArrivalGates, AnOpenChunkCostsOneLookOnce) {
  World world(64, {.shards = 4, .chunks = 2, .own = 0});
  for (int flag = 2; flag < 8; ++flag) world.set(flag);
  FakeWords words;
  GateState state;
  for (int turn = 0; turn < 3; ++turn) {
    wait_for_rows(words, world.chunks, world.waits, state, {0, 64});
    EXPECT_EQ(words.acquires, 6);
    EXPECT_EQ(words.relaxed_loads, 0);
  }
}

TEST(ArrivalGates, NobodyWaitsForRowsThatAreNotThere) {
  // 5 rows in 8 shards of one, and 9 rows in 4 of 3, the last of which has none; 3 chunks of one.
  // Shards of 4 rows in 3 chunks have 2, 2 and none.
  for (const auto& [m, shards, chunks] :
       {std::array{5, 8, 1}, std::array{9, 4, 3}, std::array{8, 2, 3}}) {
    World world(m, {.shards = shards, .chunks = chunks, .own = 0});
    for (const int flag : world.flags_of_rows()) {
      if (flag >= 0) world.set(flag);
    }
    FakeWords words;
    GateState state;
    wait_for_rows(words, world.chunks, world.waits, state, {0, m});
    EXPECT_FALSE(state.failed);
    EXPECT_EQ(words.relaxed_loads, 0);
  }
}

TEST(ArrivalGates, EpochsWrap) {
  for (const std::uint32_t epoch : {0U, 1U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
    const ArrivalWaits waits{.epoch = epoch};
    EXPECT_TRUE(waits.opens(epoch));
    EXPECT_TRUE(waits.opens(epoch + 1));  // the next call's data is there already
    EXPECT_TRUE(waits.opens(epoch + 0x7FFFFFFF));
    EXPECT_FALSE(waits.opens(epoch - 1));
    EXPECT_FALSE(waits.opens(epoch - 0x7FFFFFFF));
    World world(8, {.shards = 2, .own = 0}, epoch);
    EXPECT_TRUE(always_waits(world.chunks, world, 1));
  }
}

TEST(ArrivalGates, APastDeadlineNamesTheChunk) {
  World world(64, {.shards = 4, .chunks = 2, .own = 0});
  world.set(2);
  world.flags[3] = kEpoch - 3;
  FakeWords words;
  GateState state;
  wait_for_rows(words, world.chunks, world.waits, state, {0, 64});
  EXPECT_TRUE(state.failed);
  EXPECT_EQ(world.failure.failed, 1U);
  EXPECT_EQ(world.failure.chunk, 3);
  EXPECT_EQ(world.failure.epoch, kEpoch);
  EXPECT_EQ(world.failure.seen, kEpoch - 3);
  EXPECT_GT(words.looks, world.waits.timeout_ns);
  const std::uint64_t before = words.looks;
  wait_for_rows(words, world.chunks, world.waits, state, {0, 64});  // waits for nothing any more
  EXPECT_EQ(words.looks, before);

  // Another thread finds the record, long before its own deadline, and leaves it as it is.
  GateState other;
  wait_for_rows(words, world.chunks, world.waits, other, {32, 64});
  EXPECT_TRUE(other.failed);
  EXPECT_LT(words.looks - before, world.waits.timeout_ns / 4);
  EXPECT_EQ(world.failure.chunk, 3);
}

TEST(ArrivalGates, TwoThatFailAtOnceLeaveOneRecord) {
  World world(64, {.shards = 4, .own = 0});
  FakeWords first, second;
  GateState states[2];
  world.waits.timeout_ns = 20;  // before either looks at the record
  wait_for_rows(first, world.chunks, world.waits, states[0], {16, 32});
  wait_for_rows(second, world.chunks, world.waits, states[1], {48, 64});
  EXPECT_TRUE(states[0].failed && states[1].failed);
  EXPECT_EQ(world.failure.chunk, 1);
}

TEST(ArrivalGates, TheGroupsFailureEndsAWait) {
  World world(64, {.shards = 4, .own = 0});
  std::uint32_t abort = 0;
  world.waits.abort = &abort;
  FakeWords words;
  words.on_look = [&](FakeWords& now) { abort = now.looks > 100 ? 1 : 0; };
  GateState state;
  wait_for_rows(words, world.chunks, world.waits, state, {0, 64});
  EXPECT_TRUE(state.failed);
  EXPECT_EQ(world.failure.failed, 2U);
  EXPECT_EQ(world.failure.chunk, 1);
  EXPECT_LT(words.looks, 600U);
}

// The word between the thread that waits and the one that loads.
struct FakeStepWord {
  std::function<void()> on_release = [] {};
  int open = 0, acquires = 0, fences = 0;

  int acquire() {
    ++acquires;
    return open;
  }
  void release(int count) {
    open = count;
    on_release();
  }
  void before_bulk_loads() { ++fences; }
};

// Leads through the k-groups of tiles while chunks arrive in a random order. Whenever a word is
// looked at or written, the follower goes on as far as it may. How often it was at a k-group that
// had not come.
template <class Leading>
int followed_too_early(unsigned seed) {
  constexpr int kRows = 12;
  World world(96, {.shards = 4, .own = 1, .k_groups = 3});
  const std::vector<int> flags = world.flags_of_rows();
  std::mt19937 random(seed);
  std::vector<int> arrivals(world.flags.size());
  std::iota(arrivals.begin(), arrivals.end(), 0);
  std::shuffle(arrivals.begin(), arrivals.end(), random);
  const int steps = world.m / kRows * world.plan.k_groups;
  int early = 0, begun = 0;
  FakeStepWord word;
  FollowingSteps following;
  const auto follow = [&] {
    for (; begun < steps && following.next(word); ++begun) {
      const int row = begun / world.plan.k_groups * kRows, group = begun % world.plan.k_groups;
      const auto closed = [&](int first) { return first >= 0 && !world.open(first + group); };
      early += std::any_of(flags.begin() + row, flags.begin() + row + kRows, closed) ? 1 : 0;
    }
  };
  FakeWords words;
  words.on_look = [&](FakeWords&) {
    follow();
    if (random() % 3 != 0 || arrivals.empty()) return;
    world.set(arrivals.back());
    arrivals.pop_back();
  };
  word.on_release = follow;
  Leading leading;
  GateState state;
  for (int row = 0; row < world.m; row += kRows) {
    for (int group = 0; group < world.plan.k_groups; ++group) {
      EXPECT_TRUE(leading.next(word, [&] {
        wait_for_rows(words, world.chunks, world.waits, state, {row, row + kRows, group});
        return !state.failed;
      }));
    }
  }
  EXPECT_EQ(begun, steps);
  return early;
}

template <class Leading>
int followed_too_early() {
  int early = 0;
  for (unsigned seed = 0; seed < 20; ++seed) early += followed_too_early<Leading>(seed);
  return early;
}

struct TellsBeforeItWaits {
  int open = 0;
  template <class Word, class Wait>
  bool next(Word& word, const Wait& wait) {
    word.release(++open);
    return wait();
  }
};
struct CountsOneTooMany : LeadingSteps {
  template <class Word, class Wait>
  bool next(Word& word, const Wait& wait) {
    const bool waited = LeadingSteps::next(word, wait);
    word.release(word.open + 1);
    return waited;
  }
};

TEST(StepsOfAGate, TheFollowerIsNeverAtAStepThatIsNotOpen) {
  EXPECT_EQ(followed_too_early<LeadingSteps>(), 0);
  EXPECT_GT(followed_too_early<TellsBeforeItWaits>(), 0);
  EXPECT_GT(followed_too_early<CountsOneTooMany>(), 0);
}

TEST(StepsOfAGate, TheFollowerReadsTheWordAgainOnlyWhereItsStepWasClosed) {
  FakeStepWord word;
  FollowingSteps following;
  EXPECT_FALSE(following.next(word));
  EXPECT_EQ(word.fences, 0);
  word.open = 3;
  for (int step = 0; step < 3; ++step) EXPECT_TRUE(following.next(word));
  EXPECT_EQ(word.acquires, 2);
  EXPECT_EQ(word.fences, 1);
  word.open = 4;
  EXPECT_TRUE(following.next(word));
  EXPECT_EQ(word.fences, 2);  // what has come since is ordered, too
  EXPECT_FALSE(following.next(word));
}

TEST(StepsOfAGate, AfterAFailedWaitAllAreOpen) {
  FakeStepWord word;
  LeadingSteps leading;
  FollowingSteps following;
  EXPECT_TRUE(leading.next(word, [] { return true; }));
  EXPECT_FALSE(leading.next(word, [] { return false; }));
  for (int step = 0; step < 1000; ++step) ASSERT_TRUE(following.next(word));
  EXPECT_EQ(word.acquires, 1);
}

}  // namespace
}  // namespace tutti
