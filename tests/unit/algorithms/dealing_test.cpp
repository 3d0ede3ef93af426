// How pieces of any lengths are dealt to blocks: every byte to one block, and equally much to all.
#include "algorithms/dealing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace tutti {
namespace {

using Lengths = std::vector<std::size_t>;
constexpr std::size_t kDealtUnit = 128;

// Of so many pieces: equal ones, one long one among short ones or among none, steps, and random
// ones of which some are empty.
std::vector<Lengths> lengths_of(int pieces, std::mt19937_64& random) {
  const auto all = static_cast<std::size_t>(pieces);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  std::vector<Lengths> cases = {Lengths(all, 0), Lengths(all, 1), Lengths(all, 1 << 20),
                                Lengths(all, 4099)};
  Lengths long_one(all, 0);
  long_one[below(all)] = (1 << 24) + below(1000);
  cases.push_back(long_one);
  for (std::size_t& each : long_one) each += below(3000);
  cases.push_back(long_one);
  Lengths steps(all);
  for (std::size_t i = 0; i < all; ++i) steps[i] = (i + 1) * 100'003;
  cases.push_back(steps);
  for (const std::size_t limit : {20, 1000, 100'000, 5'000'000}) {
    Lengths some(all);
    for (std::size_t& each : some) each = below(4) == 0 ? 0 : below(limit);
    cases.push_back(some);
  }
  return cases;
}

Units units_in(const Lengths& lengths) {
  std::size_t units = 0;
  for (const std::size_t each : lengths) units += (each + kDealtUnit - 1) / kDealtUnit;
  return static_cast<Units>(units);
}

KernelArgs direct_work(int blocks, const Lengths& lengths) {
  KernelArgs work{};
  work.ranks = static_cast<int>(lengths.size());
  work.blocks = blocks;
  work.count = *std::max_element(lengths.begin(), lengths.end()) * lengths.size();
  return work;
}

// By block: its parts of all pieces.
std::vector<std::vector<Range>> deal(int blocks, const Lengths& lengths) {
  const KernelArgs work = direct_work(blocks, lengths);
  std::vector<std::vector<Range>> all;
  for (int b = 0; b < blocks; ++b) {
    const Dealing dealing(work, b);
    BlockRun run = dealing.run_of_pieces(units_in(lengths));
    std::vector<Range> parts;
    for (const std::size_t bytes : lengths) parts.push_back(dealing.in_pass(run.next(bytes), 0));
    all.push_back(parts);
  }
  return all;
}

std::size_t bytes_of(const std::vector<Range>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                         [](std::size_t sum, const Range& part) { return sum + part.count; });
}

// Calls f(blocks, lengths) for many of both.
template <class F>
void for_many(F&& f) {
  std::mt19937_64 random(1);
  for (int pieces = 1; pieces <= kMaxRanks; ++pieces) {
    for (const Lengths& lengths : lengths_of(pieces, random)) {
      for (int blocks = 1; blocks <= kMaxBlocks; blocks += blocks < 9 ? 1 : 17) f(blocks, lengths);
      f(kMaxBlocks, lengths);
    }
  }
}

TEST(DealingTest, EveryByteIsOneBlocks) {
  for_many([](int blocks, const Lengths& lengths) {
    const auto dealt = deal(blocks, lengths);
    for (std::size_t piece = 0; piece < lengths.size(); ++piece) {
      std::size_t next = 0;
      for (const auto& parts : dealt) {
        if (parts[piece].count == 0) continue;
        ASSERT_EQ(parts[piece].first, next) << blocks << " blocks, piece " << piece;
        ASSERT_EQ(next % kDealtUnit, 0u);
        next += parts[piece].count;
      }
      ASSERT_EQ(next, lengths[piece]) << blocks << " blocks, piece " << piece;
    }
  });
}

TEST(DealingTest, NoBlockHasATenthMoreThanAnother) {
  for_many([](int blocks, const Lengths& lengths) {
    std::vector<Units> units;
    Lengths bytes;
    for (const auto& parts : deal(blocks, lengths)) {
      Lengths counts;
      for (const Range& part : parts) counts.push_back(part.count);
      units.push_back(units_in(counts));
      bytes.push_back(bytes_of(parts));
    }
    const auto [fewest, most] = std::minmax_element(units.begin(), units.end());
    ASSERT_LE(*most - *fewest, 1u) << blocks << " blocks";
    // Pieces that end within a line are rounded up to it.
    const auto [least, largest] = std::minmax_element(bytes.begin(), bytes.end());
    const std::size_t rounding = kDealtUnit * (lengths.size() + 1);
    ASSERT_LE(*largest, *least + *least / 10 + rounding) << blocks << " blocks";
    if (*least > 10 * rounding) {
      ASSERT_LE(*largest * 10, *least * 11) << blocks << " blocks";
    }
  });
}

// When every block has done the same part of its share, so has every link, up to what one block
// has: two blocks at most serve another link as well.
TEST(DealingTest, LinksAreServedInProportionToTheirBytes) {
  for_many([](int blocks, const Lengths& lengths) {
    const auto dealt = deal(blocks, lengths);
    const Units share = units_in(lengths) / static_cast<Units>(blocks) + 1;
    for (const double done : {0.25, 0.5, 0.75}) {
      std::vector<double> served(lengths.size());
      for (const auto& parts : dealt) {
        double left = static_cast<double>(bytes_of(parts)) * done;
        for (std::size_t piece = 0; piece < lengths.size(); ++piece) {
          const double now = std::min(left, static_cast<double>(parts[piece].count));
          served[piece] += now;
          left -= now;
        }
      }
      for (std::size_t piece = 0; piece < lengths.size(); ++piece) {
        ASSERT_NEAR(served[piece], done * static_cast<double>(lengths[piece]),
                    static_cast<double>(share * kDealtUnit))
            << blocks << " blocks, piece " << piece;
      }
    }
  });
}

TEST(DealingTest, TheLongestPiecesThereCanBe) {
  constexpr std::size_t kLongest = (std::size_t{1} << 35) - 8;  // 2^32 - 1 elements of 8 bytes
  const auto dealt = deal(kMaxBlocks, Lengths(kMaxRanks - 1, kLongest));
  std::size_t all = 0;
  for (const auto& parts : dealt) all += bytes_of(parts);
  EXPECT_EQ(all, kLongest * (kMaxRanks - 1));
  EXPECT_EQ(dealt.back().back().first + dealt.back().back().count, kLongest);
}

// What is shorter than a line for each block is left to fewer blocks.
TEST(DealingTest, AShortMessageIsAFewBlocks) {
  const auto dealt = deal(32, {1000, 24, 0, 500});
  const auto busy = std::count_if(dealt.begin(), dealt.end(),
                                  [](const auto& parts) { return bytes_of(parts) > 0; });
  EXPECT_EQ(busy, 8 + 1 + 4);
}

struct StagedCase {
  int ranks, blocks;
  std::size_t staging_bytes;
};
const StagedCase kStagedCases[] = {
    {2, 1, 256},   {3, 2, 256},    {3, 3, 256},     {8, 3, 1024},      {16, 128, 1024},
    {5, 7, 16384}, {8, 32, 16384}, {4, 128, 16384}, {8, 128, 8 << 20}, {3, 100, 8 << 20}};

KernelArgs staged_work(const StagedCase& c) {
  KernelArgs work{};
  work.ranks = c.ranks;
  work.blocks = c.blocks;
  work.stage_output = true;
  work.staging_bytes = c.staging_bytes;
  return work;
}

// The beginning and end of every part that a block has in a pass of one piece, in order.
std::vector<std::pair<std::size_t, std::size_t>> parts_in_passes(const KernelArgs& work,
                                                                 std::size_t bytes, int to) {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (int b = 0; b < work.blocks; ++b) {
    const Dealing dealing(work, b);
    const Range run = dealing.run_of(bytes, 1, to);
    for (std::size_t done = 0; done < dealing.longest_run(bytes); done += dealing.room()) {
      const Range part = dealing.in_pass(run, done);
      EXPECT_LE(part.count, dealing.room());
      if (part.count > 0) parts.emplace_back(part.first, part.first + part.count);
    }
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

TEST(DealingTest, PassesCoverEveryPieceOnce) {
  for (const StagedCase& c : kStagedCases) {
    const KernelArgs work = staged_work(c);
    for (const std::size_t bytes : {0, 1, 15, 16, 17, 129, 1000, 5000, 23'457}) {
      for (int to = 0; to < c.ranks; to += 3) {
        std::size_t next = 0;
        for (const auto& [first, end] : parts_in_passes(work, bytes, to)) {
          EXPECT_EQ(first, next);
          next = end;
        }
        EXPECT_EQ(next, bytes) << c.ranks << " ranks, " << c.blocks << " blocks";
      }
    }
  }
}

// Each fills some blocks once; together they do not fill the same ones.
TEST(DealingTest, ShortPiecesBeginAtOtherBlocks) {
  const StagedCase c{8, 128, 8 << 20};
  constexpr std::size_t kBytes = 40 * kDealtUnit;
  for (int from = 0; from < c.ranks; ++from) {
    std::size_t most = 0;
    for (int b = 0; b < c.blocks; ++b) {
      std::size_t pushed = 0;
      for (int to = 0; to < c.ranks; ++to) {
        if (to != from) pushed += Dealing(staged_work(c), b).run_of(kBytes, from, to).count;
      }
      most = std::max(most, pushed);
    }
    EXPECT_LE(most, 3 * kDealtUnit);  // of 7 pieces; on the average 2.2
  }
}

// And a shorter piece never takes a pass more than a longer one.
TEST(DealingTest, NoRunIsLongerThanThatOfTheLongestPiece) {
  for (const StagedCase& c : kStagedCases) {
    const KernelArgs work = staged_work(c);
    for (std::size_t longest = 0; longest < 3000; longest += 37) {
      for (std::size_t bytes = 0; bytes <= longest; bytes += 53) {
        for (int b = 0; b < c.blocks; b += 3) {
          const Dealing dealing(work, b);
          ASSERT_LE(dealing.run_of(bytes, 0, 1).count, dealing.longest_run(longest));
        }
      }
    }
  }
}

TEST(DealingTest, EveryBlockHasRoomOfItsOwnInEverySlot) {
  for (const StagedCase& c : kStagedCases) {
    const std::size_t vectors = c.staging_bytes / static_cast<std::size_t>(c.ranks) / 16;
    const std::size_t busy = std::min(static_cast<std::size_t>(c.blocks), vectors);
    std::vector<Range> rooms;
    for (int from = 0; from < c.ranks; ++from) {
      for (int b = 0; b < c.blocks; ++b) {
        const Dealing dealing(staged_work(c), b);
        if (dealing.run_of(1 << 24, 0, 1).count > 0) {
          rooms.push_back({dealing.room_for(from), dealing.room()});
        }
      }
    }
    std::size_t end = 0;
    for (const Range& room : rooms) {  // in order
      EXPECT_GE(room.first, end);
      EXPECT_EQ(room.first % 16, 0u);
      EXPECT_GT(room.count, 0u);
      end = room.first + room.count;
    }
    EXPECT_LE(end, c.staging_bytes);
    EXPECT_EQ(rooms.size(), busy * static_cast<std::size_t>(c.ranks));
  }
}

}  // namespace
}  // namespace tutti
