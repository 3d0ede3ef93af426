// What all_to_all_v/push copies from where to where, block by block: the body runs over a team that
// writes down copies instead of making them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/all_to_all_v/push.hpp"

namespace tutti {
namespace {

using Table = std::vector<std::vector<std::size_t>>;  // [from][to], bytes

struct PlannedCopy {
  int rank, block, phase;  // how many barriers the block had passed
  std::uintptr_t from, to;
  std::size_t bytes;
};

// Buffers of all ranks lie far apart, at addresses that nobody follows.
enum class Area : std::uintptr_t { kInput = 1, kOutput, kStaging };
constexpr int kAreaBits = 40, kRankBits = 34;
std::byte* address(Area area, int rank) {
  const auto bits = static_cast<std::uintptr_t>(area) << kAreaBits |
                    static_cast<std::uintptr_t>(rank) << kRankBits;
  return reinterpret_cast<std::byte*>(bits);
}
Area area_of(std::uintptr_t at) { return static_cast<Area>(at >> kAreaBits); }
int rank_of(std::uintptr_t at) {
  return static_cast<int>(at >> kRankBits) & ((1 << (kAreaBits - kRankBits)) - 1);
}
std::size_t place_of(std::uintptr_t at) { return at & ((std::uintptr_t{1} << kRankBits) - 1); }

class PlanningTeam {
 public:
  static constexpr int kMaxRanks = tutti::kMaxRanks;

  PlanningTeam(const KernelArgs& work, const Table& table, int block,
               std::vector<PlannedCopy>& plan)
      : work_(work), table_(table), block_(block), plan_(plan) {}

  int block() const { return block_; }
  Buffers<kMaxRanks> buffers() const {
    Buffers<kMaxRanks> all{};
    for (int r = 0; r < work_.ranks; ++r) {
      all.outputs.at[r] =
          address(work_.stage_output ? Area::kStaging : Area::kOutput, rank_behind(work_, r));
    }
    return all;
  }
  void arrive(Publish) { ++barriers_; }
  Outcome wait() const { return Outcome::kDone; }
  Outcome barrier(Publish) {
    ++barriers_;
    return Outcome::kDone;
  }
  Outcome finish() const { return Outcome::kDone; }
  template <class F>
  void publish_counts(F&&) const {}
  std::uint32_t published(int from, int to) const { return counted(from, to); }
  template <class Load, class IsRight>
  Outcome learn_counts(Load&&, IsRight&&) const {
    return Outcome::kDone;
  }
  std::uint32_t counted(int from, int to) const {
    return static_cast<std::uint32_t>(
        table_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]);
  }
  template <class T, class F>
  void for_each_tile(Range, F&&) const {}
  template <class T>
  void copy_alone(Range range, const std::byte* from, std::byte* to) {
    if (range.count == 0) return;
    plan_.push_back({work_.rank, block_, barriers_,
                     reinterpret_cast<std::uintptr_t>(from) + range.first,
                     reinterpret_cast<std::uintptr_t>(to) + range.first, range.count});
  }

 private:
  const KernelArgs& work_;
  const Table& table_;
  int block_, barriers_ = 0;
  std::vector<PlannedCopy>& plan_;
};

struct PushCase {
  Table table;
  bool same;  // all_gather_v
  bool in_place;
  int blocks;
  std::size_t staging_bytes;  // 0: peers address outputs

  int ranks() const { return static_cast<int>(table.size()); }
  std::size_t bytes(int from, int to) const {
    return table[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  std::size_t first_for(int rank, int to) const {
    std::size_t first = 0;
    for (int r = 0; !same && r < to; ++r) first += bytes(rank, r);
    return first;
  }
  std::size_t place(int from, int to) const {
    std::size_t first = 0;
    for (int r = 0; r < from; ++r) first += bytes(r, to);
    return first;
  }
  std::size_t longest() const {
    std::size_t longest = 0;
    for (const auto& row : table) longest = std::max(longest, *std::ranges::max_element(row));
    return longest;
  }
};

std::vector<PlannedCopy> plan_of(const PushCase& c) {
  std::vector<PlannedCopy> plan;
  for (int rank = 0; rank < c.ranks(); ++rank) {
    KernelArgs work{};
    work.rank = rank;
    work.ranks = c.ranks();
    work.blocks = c.blocks;
    work.count = c.longest() * static_cast<std::size_t>(c.ranks());
    work.stage_output = c.staging_bytes > 0;
    work.staging_bytes = c.staging_bytes;
    work.output = address(Area::kOutput, rank);
    work.input = c.in_place ? work.output + c.place(rank, rank) : address(Area::kInput, rank);
    for (int r = 0; r < c.ranks(); ++r) work.staging.at[r] = address(Area::kStaging, r);
    PieceCounts counts{};
    counts.kind = c.same ? PieceCounts::Kind::kSame : PieceCounts::Kind::kEach;
    counts.agreed = true;
    for (int block = 0; block < c.blocks; ++block) {
      PlanningTeam team(work, c.table, block, plan);
      EXPECT_EQ(AllToAllVPush::run<void>(team, work, counts), Outcome::kDone);
    }
  }
  return plan;
}

// What all ranks have for each rank: nothing, equal pieces, one rank's long one, a long one for one
// rank, and random ones.
std::vector<Table> tables_of(int ranks, bool same, std::mt19937_64& random) {
  const auto all = static_cast<std::size_t>(ranks);
  const auto filled = [&](const auto& length) {
    Table table(all, std::vector<std::size_t>(all));
    for (std::size_t from = 0; from < all; ++from) {
      for (std::size_t to = 0; to < all; ++to) table[from][to] = length(from, same ? 0 : to);
    }
    return table;
  };
  const std::uint64_t seed = random();
  const auto some = [&](std::size_t from, std::size_t to, std::size_t limit) -> std::size_t {
    std::mt19937_64 own(seed + from * 64 + to);
    return own() % 4 == 0 ? 0 : own() % limit;
  };
  std::vector<Table> tables = {
      filled([](auto, auto) -> std::size_t { return 0; }),
      filled([](auto, auto) -> std::size_t { return 20'000; }),
      filled([](auto from, auto) -> std::size_t { return from == 0 ? 300'001 : 16; }),
      filled([&](auto, auto to) -> std::size_t { return to == all / 2 ? 150'000 : 0; }),
      filled([&](auto from, auto to) { return some(from, to, 40); }),
      filled([&](auto from, auto to) { return some(from, to, 9000); }),
      filled([&](auto from, auto to) { return some(from, to, 200'000); })};
  // Long enough for blocks to begin with other ranks.
  if (ranks < 4) tables.push_back(filled([](auto, auto) -> std::size_t { return 5 << 18; }));
  return tables;
}

// Staged ones in one pass and in some.
template <class F>
void for_many_pushes(bool staged, F&& f) {
  std::mt19937_64 random(7);
  for (const int ranks : {1, 2, 3, 8, 16}) {
    for (const bool same : {false, true}) {
      for (const Table& table : tables_of(ranks, same, random)) {
        for (const int blocks : {1, 3, 31, 128}) {
          if (ranks * blocks > 512) continue;
          PushCase c{table, same, false, blocks, 0};
          if (staged) c.staging_bytes = blocks < 31 ? c.longest() / 512 * 256 + 1024 : 1 << 20;
          f(c);
          c.in_place = same;
          if (same) f(c);
        }
      }
    }
  }
}

std::string name_of(const PushCase& c) {
  return std::to_string(c.ranks()) + " ranks, " + std::to_string(c.blocks) + " blocks, " +
         std::to_string(c.longest()) + " bytes" + (c.same ? ", same" : "") +
         (c.in_place ? ", in place" : "");
}

struct Stretch {
  std::size_t first, bytes, source;  // source: the place in the sender's input
  int sender;
};

// Every byte of every output is written once, with what belongs there.
void expect_outputs(const PushCase& c, std::map<int, std::vector<Stretch>>& outputs) {
  for (int to = 0; to < c.ranks(); ++to) {
    std::vector<Stretch>& stretches = outputs[to];
    std::ranges::sort(stretches, {}, &Stretch::first);
    auto next = stretches.begin();
    for (int from = 0; from < c.ranks(); ++from) {
      if (c.in_place && from == to) continue;
      std::size_t at = c.place(from, to);
      const std::size_t end = at + c.bytes(from, to);
      while (next != stretches.end() && next->first < end) {
        ASSERT_EQ(next->first, at) << name_of(c);
        ASSERT_EQ(next->sender, from) << name_of(c);
        ASSERT_EQ(next->source, c.first_for(from, to) + at - c.place(from, to)) << name_of(c);
        at += next->bytes;
        ++next;
      }
      ASSERT_EQ(at, end) << name_of(c);
    }
    ASSERT_EQ(next, stretches.end()) << name_of(c);
  }
}

// Where in its input, or in place in its output, a copy of rank `rank` begins.
std::size_t source_of(const PushCase& c, const PlannedCopy& copy) {
  const std::size_t at = place_of(copy.from);
  return c.in_place ? at - c.place(copy.rank, copy.rank) : at;
}

TEST(UnevenPushTest, StoresEveryByteOnceWhereItBelongs) {
  for_many_pushes(false, [](const PushCase& c) {
    std::map<int, std::vector<Stretch>> outputs;
    for (const PlannedCopy& copy : plan_of(c)) {
      ASSERT_EQ(area_of(copy.from), c.in_place ? Area::kOutput : Area::kInput);
      ASSERT_EQ(area_of(copy.to), Area::kOutput);
      ASSERT_EQ(rank_of(copy.from), copy.rank);
      outputs[rank_of(copy.to)].push_back(
          {place_of(copy.to), copy.bytes, source_of(c, copy), copy.rank});
    }
    expect_outputs(c, outputs);
  });
}

// A slot's stretch is taken by the block that it was pushed by, in the same pass. No other block
// ever uses it, or what is taken in one pass might be overwritten in the next.
TEST(UnevenPushTest, BlocksTakeWhatTheirLikeHasPushed) {
  for_many_pushes(true, [](const PushCase& c) {
    using Place = std::tuple<int, int, std::size_t>;  // of whose staging, in which pass, where
    std::map<Place, PlannedCopy> pushed;
    std::map<int, std::map<std::size_t, std::pair<std::size_t, int>>> users;  // end and block
    std::map<int, std::vector<Stretch>> outputs;
    const std::vector<PlannedCopy> plan = plan_of(c);
    for (const PlannedCopy& copy : plan) {
      if (area_of(copy.to) == Area::kOutput) continue;
      const std::size_t at = place_of(copy.to);
      ASSERT_EQ(area_of(copy.to), Area::kStaging);
      ASSERT_NE(rank_of(copy.to), copy.rank);
      ASSERT_LE(at + copy.bytes, c.staging_bytes) << name_of(c);
      ASSERT_TRUE(pushed.emplace(Place{rank_of(copy.to), copy.phase / 2, at}, copy).second);
      auto& [end, block] =
          users[rank_of(copy.to)].emplace(at, std::pair{at, copy.block}).first->second;
      ASSERT_EQ(block, copy.block) << name_of(c);
      end = std::max(end, at + copy.bytes);
    }
    for (const auto& [rank, stretches] : users) {
      std::size_t end = 0;
      for (const auto& [first, user] : stretches) {
        ASSERT_GE(first, end) << name_of(c);
        end = user.first;
      }
    }
    for (const PlannedCopy& copy : plan) {
      if (area_of(copy.to) != Area::kOutput) continue;
      ASSERT_EQ(rank_of(copy.to), copy.rank);
      if (area_of(copy.from) != Area::kStaging) {  // own piece
        outputs[copy.rank].push_back(
            {place_of(copy.to), copy.bytes, source_of(c, copy), copy.rank});
        continue;
      }
      ASSERT_EQ(rank_of(copy.from), copy.rank);
      const auto found = pushed.find({copy.rank, copy.phase / 2 - 1, place_of(copy.from)});
      ASSERT_NE(found, pushed.end()) << name_of(c);
      ASSERT_EQ(found->second.block, copy.block);
      ASSERT_EQ(found->second.bytes, copy.bytes);
      outputs[copy.rank].push_back(
          {place_of(copy.to), copy.bytes, source_of(c, found->second), found->second.rank});
      pushed.erase(found);
    }
    ASSERT_TRUE(pushed.empty()) << name_of(c);
    expect_outputs(c, outputs);
  });
}

// By rank and block, of the copies that f(copy) names.
template <class F>
void expect_balance(const PushCase& c, const std::vector<PlannedCopy>& plan, F&& f) {
  std::vector<std::vector<std::size_t>> bytes(
      static_cast<std::size_t>(c.ranks()),
      std::vector<std::size_t>(static_cast<std::size_t>(c.blocks)));
  for (const PlannedCopy& copy : plan) {
    if (!f(copy)) continue;
    bytes[static_cast<std::size_t>(copy.rank)][static_cast<std::size_t>(copy.block)] += copy.bytes;
  }
  // Of staged ones each piece is rounded to lines by itself.
  const std::size_t rounding = 2 * 128 * static_cast<std::size_t>(c.ranks());
  for (const auto& blocks : bytes) {
    const auto [least, most] = std::ranges::minmax_element(blocks);
    ASSERT_LE(*most, *least + *least / 10 + rounding) << name_of(c);
  }
}

TEST(UnevenPushTest, BlocksHaveEquallyMuchToDo) {
  for (const bool staged : {false, true}) {
    for_many_pushes(staged, [](const PushCase& c) {
      const std::vector<PlannedCopy> plan = plan_of(c);
      expect_balance(c, plan, [](const auto& copy) { return rank_of(copy.to) != copy.rank; });
      expect_balance(c, plan, [](const auto& copy) { return rank_of(copy.to) == copy.rank; });
    });
  }
}

std::vector<int> receivers(const PushCase& c, int rank, int block) {
  std::vector<int> all;
  for (const PlannedCopy& copy : plan_of(c)) {
    const bool pushes = area_of(copy.from) != Area::kStaging && copy.phase == 1;
    if (copy.rank == rank && copy.block == block && pushes) all.push_back(rank_of(copy.to));
  }
  return all;
}

PushCase even_case(std::size_t bytes, int blocks, std::size_t staging_bytes) {
  return {Table(3, std::vector<std::size_t>(3, bytes)), false, false, blocks, staging_bytes};
}

TEST(UnevenPushTest, ShortPiecesGoToTheNextRankFirst) {
  EXPECT_EQ(receivers(even_case(5000, 1, 0), 1, 0), (std::vector{2, 0, 1}));
  for (const int block : {0, 1, 2, 3}) {
    EXPECT_EQ(receivers(even_case(5000, 4, 0), 1, block).back(), 1);
    EXPECT_EQ(receivers(even_case(5000, 4, 1 << 20), 1, block), (std::vector{2, 0, 1}));
  }
}

// Some blocks begin with the own piece and the others end with it.
TEST(UnevenPushTest, LinksAreBusyWhileLongOwnPiecesAreCopied) {
  for (const int block : {0, 1, 2, 3}) {
    const std::vector<int> all = receivers(even_case(5 << 18, 4, 0), 1, block);
    EXPECT_EQ(all.front() == 1, block % 2 == 1) << block;
    EXPECT_EQ(all.back() == 1, block % 2 == 0) << block;
  }
}

TEST(UnevenPushTest, BlocksBeginToStageLongPiecesForOtherRanks) {
  const PushCase c = even_case(5 << 18, 4, 8 << 20);
  EXPECT_EQ(receivers(c, 1, 0), (std::vector{2, 0, 1}));
  EXPECT_EQ(receivers(c, 1, 1), (std::vector{0, 1, 2}));
  EXPECT_EQ(receivers(c, 1, 2), (std::vector{1, 2, 0}));
}

}  // namespace
}  // namespace tutti
