// Who survives: every order of events among three ranks, and random ones among up to eight.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "unit/bootstrap/shrink_world.hpp"

namespace tutti::testing {
namespace {

// Every state that can be reached, once. Empty, or the first complaint.
class Explorer {
 public:
  explicit Explorer(std::size_t limit) : limit_(limit) {}

  std::string explore(const ShrinkWorld& first) {
    seen_.insert(first);
    open_.push_back(first);
    while (!open_.empty()) {
      const ShrinkWorld world = std::move(open_.back());
      open_.pop_back();
      const auto events = world.possible();
      if (events.empty()) {
        if (std::string complaint = world.complaint(); !complaint.empty()) return complaint;
      }
      for (const auto& event : events) {
        ShrinkWorld next = world;
        next.happen(event);
        if (seen_.size() > limit_) return "too many states";
        if (seen_.insert(next).second) open_.push_back(std::move(next));
      }
    }
    return "";
  }

 private:
  std::size_t limit_;
  std::set<ShrinkWorld> seen_;
  std::vector<ShrinkWorld> open_;
};

// All are ready, and rank 0 has just said so to all.
ShrinkWorld with_commits_under_way(const ShrinkRules& rules) {
  ShrinkWorld world(rules);
  while (!world.has_ended(0)) world.happen(world.possible().front());
  return world;
}

std::string play_at_random(ShrinkWorld world, unsigned seed) {
  std::mt19937 random(seed);
  for (auto events = world.possible(); !events.empty(); events = world.possible()) {
    // Deaths and stalls are rare, so that they come at all moments.
    const auto& event = events[random() % events.size()];
    const bool is_fault = event.kind == ShrinkWorld::Event::Kind::kDie ||
                          event.kind == ShrinkWorld::Event::Kind::kStall;
    if (is_fault && random() % 4 != 0) continue;
    world.happen(event);
  }
  return world.complaint();
}

std::string explore(const ShrinkWorld& world) { return Explorer(200'000).explore(world); }

// Few ranks: all that can happen.
std::vector<ShrinkWorld> small_worlds(ShrinkMutation mutation) {
  std::vector<ShrinkWorld> worlds;
  const auto add = [&](ShrinkRules rules) {
    rules.mutation = mutation;
    worlds.emplace_back(rules);
  };
  for (int deaths = 0; deaths <= 2; ++deaths) add({.ranks = 3, .deaths = deaths});
  add({.ranks = 2, .deaths = 1, .stalls = 2});
  add({.ranks = 3, .deaths = 1, .late = {0}});
  add({.ranks = 3, .deaths = 1, .late = {2}});
  add({.ranks = 3, .late = {0, 1}});
  worlds.push_back(with_commits_under_way({.ranks = 4, .deaths = 2, .mutation = mutation}));
  return worlds;
}

TEST(ShrinkAgreement, HoldsWhateverTheOrderOfEvents) {
  for (const ShrinkWorld& world : small_worlds(ShrinkMutation::kNone)) {
    EXPECT_EQ(explore(world), "");
  }
}

TEST(ShrinkAgreement, HoldsAmongUpToEightRanks) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    ShrinkRules rules{.ranks = 3 + static_cast<int>(seed % 6),
                      .deaths = static_cast<int>(seed / 6 % 4),
                      .stalls = static_cast<int>(seed / 24 % 4)};
    if (seed % 5 == 0) rules.late = {static_cast<int>(seed / 5) % rules.ranks};
    ASSERT_EQ(play_at_random(ShrinkWorld(rules), seed), "") << seed;
    rules.late = {};
    ASSERT_EQ(play_at_random(with_commits_under_way(rules), seed), "") << seed;
    rules.fences = rules.one_host = false;
    ASSERT_EQ(play_at_random(ShrinkWorld(rules), seed), "") << seed << " on several hosts";
  }
}

TEST(ShrinkAgreement, NeedsEachOfItsRules) {
  for (const auto mutation : {ShrinkMutation::kNoPromise, ShrinkMutation::kProposesEarly,
                              ShrinkMutation::kCommitsEarly, ShrinkMutation::kKeepsCommit,
                              ShrinkMutation::kForgetsToExclude, ShrinkMutation::kIgnoresEnds}) {
    const auto worlds = small_worlds(mutation);
    const bool found = std::any_of(worlds.rbegin(), worlds.rend(), [](const ShrinkWorld& world) {
      return !explore(world).empty();
    });
    EXPECT_TRUE(found) << "mutation " << static_cast<int>(mutation);
  }
  EXPECT_NE(explore(ShrinkWorld({.ranks = 2, .stalls = 2, .fences = false})), "");
}

TEST(ShrinkMessages, AreReadAsTheyWereWritten) {
  using Kind = ShrinkMessage::Kind;
  const ShrinkBallot ballot{.round = 3, .coordinator = 1, .nonce = 77};
  const std::vector<ShrinkMessage> messages{
      {.kind = Kind::kJoin, .follows = 2, .left_ns = 5},
      {.kind = Kind::kPropose, .ballot = ballot, .members = {1, 2}},
      {.kind = Kind::kReady, .ballot = ballot},
      {.kind = Kind::kCommit, .ballot = ballot},
      {.kind = Kind::kGiveUp, .code = StatusCode::kResourceExhausted, .text = "no memory"}};
  for (const ShrinkMessage& message : messages) {
    const Bytes bytes = encode(message);
    const auto read = decode_shrink_message(bytes, 3);
    ASSERT_TRUE(read.is_ok());
    EXPECT_EQ(*read, message);
    for (std::size_t length = 0; length < std::min<std::size_t>(bytes.size(), 40); ++length) {
      EXPECT_FALSE(decode_shrink_message(ByteView(bytes).first(length), 3).is_ok()) << length;
    }
  }
}

TEST(ShrinkMessages, AreRefusedWhereTheyCannotBeRight) {
  using Kind = ShrinkMessage::Kind;
  const ShrinkBallot ballot{.round = 3, .coordinator = 1, .nonce = 77};
  const std::vector<ShrinkMessage> messages{
      {.kind = Kind::kJoin, .follows = 3},
      {.kind = Kind::kJoin, .follows = -1},
      {.kind = Kind::kPropose, .ballot = ballot, .members = {1, 1}},
      {.kind = Kind::kPropose, .ballot = ballot, .members = {2, 1}},
      {.kind = Kind::kPropose, .ballot = ballot, .members = {-1, 1}},
      {.kind = Kind::kPropose, .ballot = ballot, .members = {0, 3}},
      {.kind = Kind::kPropose, .ballot = ballot, .members = {0, 1, 2, 3}},
      {.kind = Kind::kPropose, .ballot = ballot},
      {.kind = Kind::kCommit},
      {.kind = Kind::kCommit, .ballot = {.round = ~0U, .coordinator = 1}},
      {.kind = Kind::kReady, .ballot = {.round = 1, .coordinator = 3}},
      {.kind = static_cast<Kind>(5)}};
  for (const ShrinkMessage& message : messages) {
    EXPECT_FALSE(decode_shrink_message(encode(message), 3).is_ok());
  }
}

}  // namespace
}  // namespace tutti::testing
