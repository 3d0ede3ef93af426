#include "pipelines/validate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "pipelines/check.hpp"
#include "pipelines/origins.hpp"
#include "programs.hpp"
#include "support/check.hpp"

namespace tutti::pipelines::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using tutti::test::take;

using Lists = std::vector<std::vector<Instruction>>;

// The `number`th of rank 0's instructions of this kind.
template <class Action>
Action& nth(Lists& ranks, int number) {
  for (Instruction& instruction : ranks[0]) {
    auto* action = std::get_if<Action>(&instruction.action);
    if (action != nullptr && number-- == 0) return *action;
  }
  throw std::out_of_range("no such instruction");
}

// What check() says of three ranks with 3 rows each whose lists were changed.
std::string why(Protocol protocol, const std::function<void(Lists&)>& change) {
  const Program program = take(derive(small(Algorithm::kShift, protocol, 3, 9)));
  Lists ranks = take(checked(program));
  change(ranks);
  const Status status = check(program, ranks);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return status.message();
}

TEST(PipelineValidate, RefusesNumbersOutOfRange) {
  const auto get = [](const std::function<void(Lists&)>& change) {
    return why(Protocol::kGet, change);
  };
  EXPECT_EQ(get([](Lists& ranks) { ranks[0][0].stream = 2; }),
            "rank 0: Synchronize(stream 0 waits for caller): stream 2 is out of range");
  EXPECT_THAT(get([](Lists& ranks) { ranks[0][0].stream = -2; }), HasSubstr("stream -2 is out of"));
  EXPECT_THAT(get([](Lists& ranks) { nth<WaitForStream>(ranks, 0).on = 2; }),
              HasSubstr("waits for stream 2, which is none of the others"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Signal>(ranks, 0).word.index = 1; }),
              HasSubstr("word 1 that rank 0 writes in rank 2's memory is out of range"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Signal>(ranks, 0).word.rank = 3; }),
              HasSubstr("in rank 3's memory is out of range"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Signal>(ranks, 0).word.writer = 1; }),
              HasSubstr("writes a word of rank 1's"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Await>(ranks, 0).word.rank = 1; }),
              HasSubstr("waits for a word of rank 1"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Move>(ranks, 1).from.rank = -1; }),
              HasSubstr("rank -1 is out of range"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Move>(ranks, 1).from.buffer = 7; }),
              HasSubstr("buffer 7 is out of range"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Move>(ranks, 0).from.rows[0].end = 4; }),
              HasSubstr("A[0:4] of rank 0 is out of range: the buffer has 3 rows"));
  EXPECT_EQ(get([](Lists& ranks) { ranks.pop_back(); }), "lists of 2 ranks, for a program of 3");
}

TEST(PipelineValidate, RefusesSidesThatDoNotFit) {
  const auto get = [](const std::function<void(Lists&)>& change) {
    return why(Protocol::kGet, change);
  };
  EXPECT_THAT(get([](Lists& ranks) { nth<Move>(ranks, 0).to.rows[0].end = 2; }),
              HasSubstr("its two sides have other numbers of rows"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Multiply>(ranks, 0).c.clear(); }),
              HasSubstr("its two sides have other numbers of rows"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Move>(ranks, 1).to.rank = 2; }),
              HasSubstr("moves rows between two other ranks"));
  EXPECT_THAT(get([](Lists& ranks) { nth<Multiply>(ranks, 1).a.rank = 1; }),
              HasSubstr("multiplies rows of another rank"));
  EXPECT_THAT(get([](Lists& ranks) {
                nth<Move>(ranks, 0).to = {0, 4, {{0, 3}}};
              }),  // C0
              HasSubstr("moves rows to a buffer that has other columns"));
  EXPECT_THAT(get([](Lists& ranks) {
                nth<Multiply>(ranks, 0).a = {0, 4, {{0, 3}}};
              }),
              HasSubstr("multiplies a buffer that has not K columns"));
}

TEST(PipelineValidate, RefusesStreamsThatAreNotForkedAndJoined) {
  EXPECT_EQ(why(Protocol::kPut, [](Lists& ranks) { ranks[0].pop_back(); }),
            "rank 0: stream 1 is not joined to the caller's stream");
  // A word that is written after the join.
  EXPECT_EQ(why(Protocol::kPut,
                [](Lists& ranks) {
                  auto& list = ranks[0];
                  const auto joins = std::ranges::find_if(list, [](const Instruction& one) {
                    return one.stream == kCallerStream &&
                           std::holds_alternative<WaitForStream>(one.action);
                  });
                  std::rotate(joins - 2, joins - 1, list.end());
                }),
            "rank 0: stream 0 is not joined to the caller's stream");
  EXPECT_THAT(why(Protocol::kPut,
                  [](Lists& ranks) {
                    std::erase_if(ranks[0], [](const Instruction& one) {
                      return one.node == "Synchronize(stream 1 waits for caller)";
                    });
                  }),
              HasSubstr("stream 1 has not waited for the caller's"));
}

TEST(PipelineValidate, RefusesNodesThatCannotBeLowered) {
  const Program good = take(derive(small(Algorithm::kShift, Protocol::kGet, 3, 9)));
  Program program = good;
  program.call.push_back({Copy{{0, kRank}, {8, kRank}}});
  EXPECT_EQ(lower(program).status().message(), "Copy of buffer 8: there are 7");
  program = good;
  program.call.push_back({RecvPost{{constant(1), {1, constant(1)}, {}, constant(0), constant(0)}}});
  EXPECT_EQ(lower(program).status().message(),
            "RecvPost moves rows, and does not say where the peer has them");
  program = good;
  program.description.ranks = 0;
  EXPECT_EQ(lower(program).status().message(), "a program of 0 ranks");
  program = good;
  program.streams = -1;
  EXPECT_EQ(lower(program).status().message(), "a program of -1 streams");
  program = good;
  program.products[0].c = 9;
  EXPECT_EQ(lower(program).status().message(), "a product's buffer is out of range");
}

TEST(PipelineOrigins, RangesAreSplitAndReplaced) {
  OriginMap map;
  map.assign({0, 10}, 100);
  map.assign({3, 5}, 50);
  map.assign({8, 12}, 0);
  const auto found = map.find({2, 20});
  std::vector<std::size_t> numbers;
  for (const auto& [rows, origin] : found) {
    numbers.insert(numbers.end(), {rows.begin, rows.end, origin});
  }
  EXPECT_THAT(numbers, testing::ElementsAre(2, 3, 102, 3, 5, 50, 5, 8, 105, 8, 12, 0));
  map.assign({1, 9}, 7);  // across all
  EXPECT_EQ(map.find({0, 30}).size(), 3u);
  EXPECT_EQ(map.find({8, 9}).at(0).origin, 14u);
  EXPECT_EQ(map.find({9, 10}).at(0).origin, 1u);
}

TEST(PipelineOrigins, RefusesRowsThatAreMultipliedIntoOtherRowsOfC) {
  EXPECT_THAT(
      why(Protocol::kPut,
          [](Lists& ranks) { std::swap(nth<Multiply>(ranks, 1).c, nth<Multiply>(ranks, 2).c); }),
      AllOf(StartsWith("rank 0, call 1, stream 0: C0[shard 2], C1[shard 2] = Matmul("),
            HasSubstr("row 6 of A, in A_gathered[6:9] of rank 0, is multiplied into row "
                      "3")));
}

TEST(PipelineOrigins, RefusesRowsThatAreMultipliedTwice) {
  const auto twice = [](Lists& ranks) {
    const auto own = std::ranges::find_if(ranks[0], [](const Instruction& one) {
      return std::holds_alternative<Multiply>(one.action);
    });
    ranks[0].insert(own, *own);
  };
  EXPECT_THAT(why(Protocol::kGet, twice),
              HasSubstr("writes C0[0:3] of rank 0 again, after rank 0, call 1, stream 0"));
}

// Rank 0 gets the third row of a peer for its second. Nothing else is wrong.
TEST(PipelineOrigins, RefusesRowsThatAreMovedWrongly) {
  EXPECT_THAT(why(Protocol::kGet,
                  [](Lists& ranks) {
                    Move& move = nth<Move>(ranks, 1);
                    move.from.rows = {{3, 4}, {5, 6}, {5, 6}};
                    move.to.rows = {{3, 4}, {4, 5}, {5, 6}};
                  }),
              HasSubstr("row 5 of A, in A_gathered[3:6] of rank 0, is multiplied into row 4"));
}

// Rows may be anywhere in between; as an output they may not.
TEST(PipelineOrigins, OnlyAnOutputHasItsRowsInOrder) {
  Description description = small(Algorithm::kShift, Protocol::kGet, 3, 9);
  description.streams = 1;
  description.symmetric_a = true;
  for (const bool gathered : {false, true}) {
    description.gathered = gathered;
    const Program program = take(derive(description));
    Lists ranks = take(checked(program));
    const int first = gathered ? 1 : 0;  // after the own copy
    std::swap(nth<Move>(ranks, first).to, nth<Move>(ranks, first + 1).to);
    std::swap(nth<Multiply>(ranks, 1).a, nth<Multiply>(ranks, 2).a);
    const std::string text = check(program, ranks).message();
    EXPECT_EQ(text, gathered ? "rank 0, call 1, the caller after the call: row 6 of A, in "
                               "A_gathered[0:9] of rank 0, is given to the caller as row 3"
                             : "");
  }
}

}  // namespace
}  // namespace tutti::pipelines::test
