// The schedule of all_gather_matmul/fused on the host (src/fused/arriving.hpp) with the gate of the
// GPU's kernel, over the weak memory; and what becomes of it where something is taken away.
#include "fused/arriving.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fused/host_fused.hpp"
#include "simulator/simulation.hpp"

namespace tutti::simulated {
namespace {

using fused::ArrivingCall;

enum class Without : std::uint8_t {
  kNothing,
  kFlagBehindData,   // a chunk's flag is stored before the chunk
  kRelease,          // of a chunk's flag
  kWait,             // for the second chunk of a shard
  kRightWait,        // the second chunk's is for the first one
  kAcquire,          // of a chunk's flag
  kNextEpoch,        // all calls have the same
  kGuard,            // puts without waiting for the end of the peer's last call
  kGuardAcquire,     // waits, but may store before that
  kLateEnd,          // tells the end of the call before the last tile is read
  kReleaseOfEnd,     // may tell it before the reads
  kEnd,              // does not tell it
  kOwnShardInPlace,  // its own rows are read from the gathered A, too
};

struct Scene {
  int ranks = 2, chunks = 2;
  int m = 4, tile_rows = 1;
  int calls = 2;
  std::uint32_t epoch = 0;  // of the call before the first
};

constexpr int kMostRanks = 3, kMostRows = 12, kEnded = kMostArrivalFlags;

// What ranks share, and what a test takes away.
class Stage {
 public:
  Stage(const Scene& scene, Without without)
      : scene_(scene), without_(without), simulation_(scene.ranks, 1) {
    for (int rank = 0; rank < scene.ranks; ++rank) {
      simulation_.memory().add_data(row(rank, 0), sizeof rows_[0], "gathered A");
      gates_.push_back(
          fused::arriving_gate({.shards = scene.ranks, .chunks = scene.chunks, .own = rank},
                               static_cast<std::size_t>(scene.m), scene.tile_rows));
    }
    simulation_.memory().add_flags(&flags_[0][0], sizeof flags_ / sizeof(Flag));
  }

  // False if the schedule gave up.
  bool run(Schedule& schedule) {
    std::fill_n(&rows_[0][0], kMostRanks * kMostRows, 0U);
    coarse_ = schedule.is_coarse();
    return simulation_.run(schedule, [this](int rank, int /*block*/) { run_rank(rank); });
  }
  const Violation& violation() const { return simulation_.violation(); }

 private:
  class Rank;
  void run_rank(int rank);

  static std::uint32_t value(int row, int call) {
    return static_cast<std::uint32_t>(100 * call + row + 1);
  }
  std::byte* row(int rank, int row) { return reinterpret_cast<std::byte*>(&rows_[rank][row]); }

  const Scene scene_;
  const Without without_;
  Simulation simulation_;
  std::vector<ArrivalGate> gates_;
  std::uint32_t rows_[kMostRanks][kMostRows] = {};
  // A word's flag holds the number of the call, from 1 on. Words have addresses only.
  std::uint32_t words_[kMostRanks][kEnded + kMostRanks] = {};
  Flag flags_[kMostRanks][kEnded + kMostRanks] = {};
  bool coarse_ = false;
};

// One call of one rank.
class Stage::Rank {
 public:
  Rank(Stage& stage, int rank, int call) : stage_(stage), rank_(rank), call_(call) {}

  ArrivingCall call() {
    const ArrivalWaits arrived{.flags = stage_.words_[rank_],
                               .failure = &failure_,
                               .timeout_ns = 1,
                               .epoch = stage_.scene_.epoch + number()};
    ArrivalWaits ended = arrived;
    ended.flags += kEnded;
    --ended.epoch;
    return {.gate = stage_.gates_[static_cast<std::size_t>(rank_)],
            .tile_rows = stage_.scene_.tile_rows,
            .ranks = stage_.scene_.ranks,
            .arrived = arrived,
            .ended = ended};
  }

  // --- the gate's words ---

  // Where all schedules are searched, steps are waits: a look that comes too early is one, too.
  std::uint32_t acquire(const std::uint32_t* word) {
    const int index = index_of(word);
    if (is_left_out(index)) return stage_.scene_.epoch + number();
    if (stage_.coarse_) wait(index);
    simulation().interrupt(rank_);
    const std::uint32_t seen = look(index);
    const Without order = index < kEnded ? Without::kAcquire : Without::kGuardAcquire;
    if (!lacks(order)) memory().acquire(rank_, flag(rank_, index));
    return seen;
  }
  std::uint32_t relaxed(const std::uint32_t* word) {
    awaited_ = index_of(word);
    return look(awaited_);
  }
  void pause() { wait(awaited_); }
  std::uint64_t now() const { return 0; }
  void before_bulk_loads() const {}
  // Of failures, of which there are none.
  bool claim(std::uint32_t*) const { return false; }
  void store(std::uint32_t*, std::uint32_t) const {}
  void release(std::uint32_t*, std::uint32_t) const {}

  // --- the schedule's actions ---

  void put(int peer, GroupOfRows rows) {
    if (!lacks(Without::kFlagBehindData)) return copy(peer, rows);
    put_late_ = rows;
  }
  void tell_arrived(int peer, int index) {
    const bool releases = !lacks(Without::kRelease);
    if (releases) memory().release(rank_);
    tell(peer, index, releases ? Publish::kStores : Publish::kLoads);
    if (lacks(Without::kFlagBehindData)) copy(peer, put_late_);
  }
  bool multiply(GroupOfRows rows, bool own) {
    if (lacks(Without::kLateEnd) && rows.end == last_row_) tell_all_ended();
    if (!own || lacks(Without::kOwnShardInPlace)) read(rows);
    return true;
  }
  void finish() {
    const GroupOfRows own = call().own_rows();
    if (lacks(Without::kLateEnd)) return;
    read({0, own.begin});
    read({own.end, stage_.scene_.m});
  }
  void tell_ended(int peer) {
    if (lacks(Without::kEnd) || lacks(Without::kLateEnd)) return;
    end(peer);
  }

  void set_last_row() {  // of the order
    const ArrivingCall all = call();
    SegmentedOrder::Cursor cursor;
    const int row = all.gate.sweep.at(all.gate.sweep.count() - 1, cursor).row;
    const TileRows tile = all.gate.parts.rows(row, all.tile_rows);
    last_row_ = std::min(tile.row + all.tile_rows, tile.end);
  }

 private:
  bool lacks(Without what) const { return stage_.without_ == what; }
  Simulation& simulation() { return stage_.simulation_; }
  WeakMemory& memory() { return stage_.simulation_.memory(); }
  Flag* flag(int rank, int index) { return &stage_.flags_[rank][index]; }
  std::uint32_t number() const {
    return lacks(Without::kNextEpoch) ? 1U : static_cast<std::uint32_t>(call_);
  }

  // Of a word of this rank, and of what is looked at in its place.
  int index_of(const std::uint32_t* word) const {
    const auto index = static_cast<int>(word - stage_.words_[rank_]);
    return lacks(Without::kRightWait) && is_second(index) ? index - 1 : index;
  }
  bool is_second(int index) const { return index < kEnded && index % stage_.scene_.chunks == 1; }
  bool is_left_out(int index) const {
    return (lacks(Without::kWait) && is_second(index)) ||
           (lacks(Without::kGuard) && index >= kEnded);
  }
  std::uint32_t look(int index) {
    return stage_.scene_.epoch + static_cast<std::uint32_t>(flag(rank_, index)->epoch);
  }
  void wait(int index) {
    simulation().wait_for_flag(rank_, flag(rank_, index), number() - (index < kEnded ? 0 : 1));
  }

  void copy(int peer, GroupOfRows rows) {
    for (int row = rows.begin; row < rows.end; ++row) {
      const std::uint32_t value = Stage::value(row, call_);
      simulation().interrupt(rank_);
      memory().store(rank_, stage_.row(peer, row), reinterpret_cast<const std::byte*>(&value),
                     sizeof value);
    }
  }
  void read(GroupOfRows rows) {
    for (int row = rows.begin; row < rows.end; ++row) {
      std::uint32_t seen = 0;
      simulation().interrupt(rank_);
      memory().load(rank_, reinterpret_cast<std::byte*>(&seen), stage_.row(rank_, row),
                    sizeof seen);
      if (seen == Stage::value(row, call_)) continue;
      simulation().report(Breach::kWrongResult, "a row is not what was put");
    }
  }
  void tell(int peer, int index, Publish publish) {
    memory().send(rank_, publish);
    memory().store_flag(rank_, flag(peer, index), {number(), number()});
  }
  void end(int peer) {
    const bool releases = !lacks(Without::kReleaseOfEnd);
    if (releases) memory().release(rank_);
    tell(peer, kEnded + rank_, releases ? Publish::kStores : Publish::kEarlierKernels);
  }
  void tell_all_ended() {
    for (int peer = 0; peer < stage_.scene_.ranks; ++peer) {
      if (peer != rank_) end(peer);
    }
  }

  Stage& stage_;
  const int rank_, call_;
  GateFailure failure_;
  int awaited_ = 0, last_row_ = 0;
  GroupOfRows put_late_{};
};

void Stage::run_rank(int rank) {
  for (int call = 1; call <= scene_.calls; ++call) {
    Rank one(*this, rank, call);
    one.set_last_row();
    if (!fused::run_arriving(one, one.call())) {
      simulation_.report(Breach::kOutcome, "a call failed");
    }
  }
  simulation_.wait_until_delivered(rank);
}

// In random schedules, until something is found.
Breach found_at_random(const Scene& scene, Without without, std::uint64_t schedules) {
  Stage stage(scene, without);
  for (std::uint64_t seed = 1; seed <= schedules; ++seed) {
    RandomSchedule schedule(seed, scene.ranks);
    stage.run(schedule);
    if (stage.violation().breach != Breach::kNone) return stage.violation().breach;
  }
  return Breach::kNone;
}

struct Searched {
  int schedules = 0;
  bool complete = false;
  Violation violation;
};

Searched search_all(const Scene& scene) {
  constexpr int kMost = 100'000;
  Stage stage(scene, Without::kNothing);
  ExhaustiveSchedule schedule;
  Searched all;
  do {
    stage.run(schedule);
    all.violation = stage.violation();
    if (all.violation.breach != Breach::kNone || ++all.schedules == kMost) return all;
  } while (schedule.advance());
  all.complete = true;
  return all;
}

// Even shards, shorter ones, empty ones; tiles with rows of two shards; epochs that wrap.
const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all = {
      {},
      {.m = 3, .calls = 3},
      {.chunks = 1, .m = 1, .calls = 3},
      {.m = 7, .tile_rows = 3, .epoch = 0xFFFFFFFE},
      {.m = 4, .calls = 3, .epoch = 0x7FFFFFFE},
      {.ranks = 3, .m = 6, .epoch = 0xFFFFFFFF},
      {.ranks = 3, .m = 11, .tile_rows = 2},
      {.ranks = 3, .chunks = 1, .m = 2, .calls = 3, .epoch = 0xFFFFFFFD},
  };
  return all;
}

std::string name_of(const Scene& scene) {
  return std::to_string(scene.ranks) + " ranks, " + std::to_string(scene.m) + " rows";
}

TEST(Arriving, RowsAreReadAsTheyWerePutUnderAnySchedule) {
  for (const Scene& scene : scenes()) {
    EXPECT_EQ(found_at_random(scene, Without::kNothing, 3000), Breach::kNone) << name_of(scene);
  }
}

// Schedules that differ only in the order of independent steps count once. Where all ranks have
// rows, none can be a call ahead of a wait, so that each wait sees one epoch only.
TEST(Arriving, NoScheduleEndsInADeadlockOrAWrongRead) {
  for (const Scene& scene : scenes()) {
    const Searched all = search_all(scene);
    EXPECT_TRUE(all.complete) << name_of(scene);
    EXPECT_EQ(all.violation.breach, Breach::kNone) << name_of(scene) << ": " << all.violation.text;
    EXPECT_EQ(all.schedules, 1) << name_of(scene);
  }
}

struct Loss {
  std::string name;
  Without without;
  Breach breach;
};

class ArrivingWithout : public ::testing::TestWithParam<Loss> {};

// In two calls without anything between them, of ranks that have two chunks each.
TEST_P(ArrivingWithout, IsFound) {
  for (const Scene& scene : {Scene{}, Scene{.ranks = 3, .m = 6, .epoch = 0xFFFFFFFE}}) {
    EXPECT_EQ(found_at_random(scene, GetParam().without, 3000), GetParam().breach)
        << name_of(scene);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, ArrivingWithout,
    ::testing::Values(Loss{"FlagBehindData", Without::kFlagBehindData, Breach::kEarlyLoad},
                      Loss{"Release", Without::kRelease, Breach::kEarlyLoad},
                      Loss{"Wait", Without::kWait, Breach::kEarlyLoad},
                      Loss{"RightWait", Without::kRightWait, Breach::kEarlyLoad},
                      Loss{"Acquire", Without::kAcquire, Breach::kEarlyLoad},
                      Loss{"NextEpoch", Without::kNextEpoch, Breach::kEarlyStore},
                      Loss{"Guard", Without::kGuard, Breach::kEarlyStore},
                      Loss{"GuardAcquire", Without::kGuardAcquire, Breach::kEarlyStore},
                      Loss{"LateEnd", Without::kLateEnd, Breach::kEarlyStore},
                      Loss{"ReleaseOfEnd", Without::kReleaseOfEnd, Breach::kEarlyStore},
                      Loss{"End", Without::kEnd, Breach::kDeadlock},
                      Loss{"OwnShardInPlace", Without::kOwnShardInPlace, Breach::kWrongResult}),
    [](const auto& loss) { return loss.param.name; });

}  // namespace
}  // namespace tutti::simulated
