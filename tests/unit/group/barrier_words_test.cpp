// The barriers of streams under random schedules: ranks' streams, and the hosts that watch and
// release them, in any order. Ranks die, are late, give up at any moment, and run different
// operations.
#include "executors/copy_engine/barrier_words.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tutti {
namespace {

// What a test takes away from the protocol.
enum class BarrierMutation {
  kNone,
  kNoArrivalWait,  // of peers
  kNoHealthWait,
  kNoHealthStore,    // the rank that gives up tells nobody
  kReleaseFirst,     // it tells the others after it has released itself
  kReleaseOnce,      // it does not release itself again
  kNoOwnByte,        // it leaves its own byte of its health as it is
  kOneSlot,          // slots do not alternate
  kNoSecondBarrier,  // at the end of an operation
  kNoSecondRead,     // the host that watches believes what it read before of `ended`
};

struct Exploration {
  BarrierMutation mutation = BarrierMutation::kNone;
  bool some_give_up = false;
  bool some_differ = false;  // one rank runs another operation
};

constexpr int kExploredOperations = 3;
constexpr std::uint32_t kSignature = 7, kOtherSignature = 5000;

// One rank: its stream, a list of steps, and its host.
class ExploredRank {
 public:
  ExploredRank(BarrierPages& pages, std::vector<int>& inputs, int rank, const Exploration& setting)
      : pages_(pages), inputs_(inputs), rank_(rank), setting_(setting) {}

  void enqueue(std::uint32_t signature) {
    const int operation = ++operations_;
    steps_.push_back({.what = What::kWriteInput, .value = operation});
    add_barrier(signature);
    for (std::size_t peer = 0; peer < pages_.size(); ++peer) {
      steps_.push_back({.what = What::kRead, .value = static_cast<int>(peer)});
    }
    if (setting_.mutation != BarrierMutation::kNoSecondBarrier) add_barrier(signature);
    steps_.push_back({.what = What::kComplete, .value = operation});
  }

  bool can_go_on() const {
    if (dead_ || at_ == steps_.size()) return false;
    const Step& step = steps_[at_];
    return step.what != What::kMemory || step.memory.kind == CudaMemoryOperation::Kind::kWrite ||
           has_reached(*step.memory.word, step.memory.value);
  }
  void go_on() {
    const Step& step = steps_[at_++];
    switch (step.what) {
      case What::kMemory:
        if (step.memory.kind == CudaMemoryOperation::Kind::kWrite) {
          *step.memory.word = step.memory.value;
        }
        break;
      case What::kWriteInput:
        inputs_[static_cast<std::size_t>(rank_)] = step.value;
        break;
      case What::kRead:
        read_.push_back(inputs_[static_cast<std::size_t>(step.value)]);
        break;
      case What::kComplete:
        if (!failed_) complete(step.value);
        read_.clear();
        break;
    }
  }

  // One step of the host of a rank that has failed: it may do nothing else in between.
  void fail_a_step() {
    failed_ = true;
    const bool tells = setting_.mutation != BarrierMutation::kNoHealthStore;
    const bool release_first = setting_.mutation == BarrierMutation::kReleaseFirst;
    const bool tells_now = release_first ? host_steps_ % 2 == 1 : host_steps_ % 2 == 0;
    const bool again = host_steps_ > 1;
    if (!tells_now && (!again || setting_.mutation != BarrierMutation::kReleaseOnce)) {
      end_barriers(pages_, rank_, last_);
      if (setting_.mutation == BarrierMutation::kNoOwnByte) health_of(own(), rank_, rank_) = 0;
      inputs_[static_cast<std::size_t>(rank_)] = -1;  // its user may do anything now
    } else if (tells_now && tells) {
      leave_peers(pages_, rank_);
    }
    ++host_steps_;
  }

  // The host looks for what its stream waits for, one load after the other. Whether it takes a peer
  // for one that runs another operation.
  bool finds_another_operation(const WordReader& read) {
    const std::uint64_t ended = read(own().ended);
    if (ended >= last_.number || read(own().begun) <= ended) return false;
    const auto again = [&](std::uint64_t& word) {
      const bool stale = setting_.mutation == BarrierMutation::kNoSecondRead;
      return stale && &word == &own().ended ? ended : read(word);
    };
    const auto view = BarrierView::of(pages_, rank_, turns_[ended], again);
    const int missing = view ? view->missing_rank() : -1;
    return missing >= 0 && view->other_operation(missing).has_value();
  }

  void die() { dead_ = true; }
  bool is_dead() const { return dead_; }
  bool has_failed() const { return failed_; }
  bool has_drained() const { return dead_ || at_ == steps_.size(); }
  const std::set<int>& completed() const { return completed_; }
  bool is_wrong() const { return wrong_; }

 private:
  enum class What { kMemory, kWriteInput, kRead, kComplete };
  struct Step {
    What what;
    CudaMemoryOperation memory = {};
    int value = 0;
  };

  BarrierPage& own() { return *pages_[static_cast<std::size_t>(rank_)]; }
  void add_barrier(std::uint32_t signature) {
    last_ = last_.next(signature);
    turns_.push_back(last_);
    BarrierTurn turn = last_;
    if (setting_.mutation == BarrierMutation::kOneSlot) turn.number = 0;
    for (const CudaMemoryOperation& each : barrier_operations(pages_, rank_, turn)) {
      const bool waits = each.kind == CudaMemoryOperation::Kind::kWaitAtLeast;
      const bool is_health = each.word == &own().health;
      if (waits && is_health && setting_.mutation == BarrierMutation::kNoHealthWait) continue;
      if (waits && !is_health && setting_.mutation == BarrierMutation::kNoArrivalWait) continue;
      steps_.push_back({.what = What::kMemory, .memory = each});
    }
  }
  void complete(int operation) {
    completed_.insert(operation);
    for (const int value : read_) wrong_ = wrong_ || value != operation;
  }

  BarrierPages& pages_;
  std::vector<int>& inputs_;
  const int rank_;
  const Exploration setting_;
  BarrierTurn last_;
  std::vector<BarrierTurn> turns_;
  int operations_ = 0, host_steps_ = 0;
  std::vector<Step> steps_;
  std::size_t at_ = 0;
  std::vector<int> read_;
  std::set<int> completed_;
  bool dead_ = false, failed_ = false, wrong_ = false;
};

struct BarrierOutcomes {
  bool wrong = false;     // an operation read what it should not, and its rank thinks all is well
  bool stuck = false;     // a stream that does not drain
  bool differed = false;  // operations that differ, and were completed
  bool accused = false;   // a host that watches takes a peer for one that runs another operation
};

class BarrierSchedule {
 public:
  BarrierSchedule(std::uint64_t seed, const Exploration& setting)
      : random_(seed), setting_(setting) {
    const int ranks = 2 + pick(3);
    words_.resize(static_cast<std::size_t>(ranks));
    inputs_.resize(words_.size());
    for (BarrierPage& page : words_) {
      open_page(page, ranks);
      pages_.push_back(&page);
    }
    const int other = setting.some_differ ? pick(ranks) : -1;
    const int at = pick(kExploredOperations);
    for (int r = 0; r < ranks; ++r) {
      ranks_.emplace_back(pages_, inputs_, r, setting);
      for (int k = 0; k < kExploredOperations; ++k) {
        ranks_.back().enqueue(r == other && k == at ? kOtherSignature : kSignature);
      }
    }
    differs_at_ = at + 1;
    if (setting.some_give_up && pick(3) == 0) victim_ = pick(ranks);
  }

  BarrierOutcomes run() {
    const int moment = pick(200);
    while (steps_ < 4000) {
      if (victim_ >= 0 && steps_ >= moment) rank(victim_).die();
      if (steps_ < 400 && pick(20) == 0) watch(pick(static_cast<int>(ranks_.size())));
      step();
    }
    return outcomes();
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
  ExploredRank& rank(int r) { return ranks_[static_cast<std::size_t>(r)]; }

  void step() {
    const int r = pick(static_cast<int>(ranks_.size()));
    if (host_moves(r, steps_++)) {
      if (!rank(r).is_dead()) rank(r).fail_a_step();
    } else if (rank(r).can_go_on()) {
      rank(r).go_on();
    }
  }
  // Before each load of the host that watches, all others may go on. It does not release meanwhile.
  void watch(int r) {
    if (rank(r).has_failed()) return;
    watches_ = r;
    const bool finds = rank(r).finds_another_operation([&](std::uint64_t& word) {
      for (int left = pick(3) == 0 ? pick(60) : 0; left > 0; --left) step();
      return word;
    });
    watches_ = -1;
    accused_ = accused_ || finds;
  }

  // A rank gives up at any moment, its deadline say; the others hear of it at any later one. In
  // the end everybody has.
  bool host_moves(int r, int step) {
    if (r == watches_) return false;
    if (rank(r).has_failed()) return pick(4) == 0;
    if (!setting_.some_give_up) return false;
    return step > 2000 || pick(400) == 0;
  }

  BarrierOutcomes outcomes() const {
    BarrierOutcomes all{.accused = accused_};
    for (const ExploredRank& each : ranks_) {
      all.wrong = all.wrong || each.is_wrong();
      all.stuck = all.stuck || !each.has_drained();
      all.differed = all.differed || each.completed().contains(differs_at_);
    }
    return all;
  }

  std::mt19937_64 random_;
  const Exploration setting_;
  std::vector<BarrierPage> words_;
  BarrierPages pages_;
  std::vector<int> inputs_;
  std::vector<ExploredRank> ranks_;
  int victim_ = -1, differs_at_ = 0, steps_ = 0, watches_ = -1;
  bool accused_ = false;
};

BarrierOutcomes explore(const Exploration& setting, std::uint64_t seeds = 300) {
  BarrierOutcomes any;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const BarrierOutcomes one = BarrierSchedule(seed, setting).run();
    any.wrong = any.wrong || one.wrong;
    any.stuck = any.stuck || one.stuck;
    any.differed = any.differed || one.differed;
    any.accused = any.accused || one.accused;
  }
  return any;
}

TEST(BarrierWords, RanksMeet) {
  const BarrierOutcomes any = explore({});
  EXPECT_FALSE(any.wrong);
  EXPECT_FALSE(any.stuck);
  EXPECT_FALSE(any.accused);
}

// Whoever gives up, whenever: streams drain, and nobody takes wrong data for right.
TEST(BarrierWords, NobodyWaitsForEverNorIsDeceived) {
  const BarrierOutcomes any = explore({.some_give_up = true});
  EXPECT_FALSE(any.wrong);
  EXPECT_FALSE(any.stuck);
  EXPECT_FALSE(any.accused);
}

TEST(BarrierWords, OperationsThatDifferAreNotCompleted) {
  const BarrierOutcomes any = explore({.some_differ = true});
  EXPECT_FALSE(any.differed);
  EXPECT_TRUE(any.accused);
}

TEST(BarrierWords, WithoutOneOfItsPartsARankIsStuckOrDeceived) {
  EXPECT_TRUE(explore({.mutation = BarrierMutation::kNoArrivalWait}).wrong);
  EXPECT_TRUE(explore({.mutation = BarrierMutation::kNoSecondBarrier}).wrong);
  for (const BarrierMutation mutation :
       {BarrierMutation::kNoHealthWait, BarrierMutation::kNoHealthStore,
        BarrierMutation::kReleaseFirst}) {
    EXPECT_TRUE(explore({.mutation = mutation, .some_give_up = true}).wrong)
        << static_cast<int>(mutation);
  }
  for (const BarrierMutation mutation :
       {BarrierMutation::kReleaseOnce, BarrierMutation::kNoOwnByte}) {
    EXPECT_TRUE(explore({.mutation = mutation, .some_give_up = true}).stuck)
        << static_cast<int>(mutation);
  }
  EXPECT_TRUE(explore({.mutation = BarrierMutation::kOneSlot, .some_differ = true}).differed);
  EXPECT_TRUE(explore({.mutation = BarrierMutation::kNoSecondRead}).accused);
}

// Comparisons are cyclic: the value of a barrier may be past the largest number.
TEST(BarrierWords, ValuesMayWrap) {
  const std::uint64_t last = ~std::uint64_t{0} - 3;
  const BarrierTurn turn = BarrierTurn{.number = 9, .value = last, .before = last - 1}.next(10);
  EXPECT_EQ(turn.value, 7u);
  EXPECT_FALSE(has_reached(last - 1, turn.value));
  EXPECT_TRUE(has_reached(turn.value, turn.value));
  EXPECT_TRUE(has_reached(turn.value + (std::uint64_t{1} << 62), turn.value));
}

// Of two ranks that have given up, the one that never arrived is the cause.
TEST(BarrierWords, ARankThatDidNotArriveIsMissingFirst) {
  std::vector<BarrierPage> words(4);
  BarrierPages pages;
  for (BarrierPage& page : words) {
    open_page(page, 4);
    pages.push_back(&page);
  }
  const BarrierTurn turn = BarrierTurn{}.next(kSignature);
  const auto missing = [&] { return BarrierView::of(pages, 0, turn)->missing_rank(); };
  words[0].arrived[1][1] = words[0].arrived[1][3] = turn.value;
  leave_peers(pages, 1);
  EXPECT_EQ(missing(), 2);
  leave_peers(pages, 2);
  EXPECT_EQ(missing(), 2);
  words[0].arrived[1][2] = turn.value;
  EXPECT_EQ(missing(), 1);
  words[0].ended = turn.number;
  EXPECT_FALSE(BarrierView::of(pages, 0, turn).has_value());
}

// A rank's own byte outweighs those of its peers, whatever they store later.
TEST(BarrierWords, HealthIsOneComparison) {
  for (int ranks = 2; ranks <= kMaxCudaRanks; ++ranks) {
    std::vector<BarrierPage> words(static_cast<std::size_t>(ranks));
    BarrierPages pages;
    for (BarrierPage& page : words) {
      open_page(page, ranks);
      pages.push_back(&page);
    }
    const auto health = [&] { return words[0].health; };
    EXPECT_TRUE(has_reached(health(), healthy_word(ranks)));
    leave_peers(pages, ranks - 1);
    EXPECT_FALSE(has_reached(health(), healthy_word(ranks)));
    end_barriers(pages, 0, {});
    for (int peer = 1; peer < ranks; ++peer) leave_peers(pages, peer);
    EXPECT_TRUE(has_reached(health(), healthy_word(ranks)));
  }
}

}  // namespace
}  // namespace tutti
