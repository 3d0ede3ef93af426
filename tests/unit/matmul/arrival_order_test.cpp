// A gated matmul's orders, followed on the host: which block computes which rows when, from which
// A.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/units.hpp"
#include "fakes/fake_cuda.hpp"
#include "matmul/forecast.hpp"
#include "matmul/gated_arguments.hpp"
#include "some_problem.hpp"
#include "support/check.hpp"

namespace tutti {
namespace {

using test::problem_of;
using test::require_ok;
using test::tile_named;

template <int kRows>
struct RowsOfTiles {
  static constexpr int kM = kRows;
};

// What the kernel is told of one call, and what follows from it.
class Followed {
 public:
  Followed(std::size_t m, const MatmulTiling& cut, const ArrivalPlan& arrivals, bool own_a)
      : plan(arrivals), tiling(cut) {
    call.problem = problem_of(m, {296, 8}, 64);
    call.problem.b_layout = MatrixLayout::kColumnMajor;
    call.a = this;
    const Arrival arrival = {.plan = plan, .own_a = own_a ? &call : nullptr, .own_lda = 64};
    require_ok(fill_gated_arguments(cuda(), {call, tiling, arrival}, arguments, gate));
  }

  TileWork work(int index, int rank) const {
    SegmentedOrder::Cursor cursor;
    return tiling.tile->m == 256
               ? work_of<RowsOfTiles<256>>(arguments, gate, cursor, {index, rank})
               : work_of<RowsOfTiles<128>>(arguments, gate, cursor, {index, rank});
  }
  int end_of(const TileWork& work) const { return std::min(work.row + tiling.tile->m, work.end); }
  int tiles() const { return gate.sweep.count(); }

  // In the order in which they come; ranks of a cluster one after another.
  void each(const std::function<void(const TileWork&)>& visit) const {
    for (int index = 0; index < tiles(); ++index) {
      for (int rank = 0; rank < arguments.cluster; ++rank) visit(work(index, rank));
    }
  }

  // By the definition of a shard alone.
  int shard_of(int row) const {
    const int m = static_cast<int>(call.problem.m);
    return row / ((m + plan.shards - 1) / plan.shards);
  }
  // When the last shard comes that a tile of a cluster needs: 0 is the own one.
  int last_arrival(int index) const {
    int last = 0;
    for (int rank = 0; rank < arguments.cluster; ++rank) {
      const TileWork tile = work(index, rank);
      for (int row = tile.row; row < end_of(tile); ++row) {
        last = std::max(last, (shard_of(row) - plan.own + plan.shards) % plan.shards);
      }
    }
    return last;
  }

  const ArrivalPlan plan;
  const MatmulTiling tiling;
  CheckedMatmul call;
  OwnMatmulArguments arguments;
  ArrivalGate gate;

 private:
  static FakeCuda& cuda() {
    static FakeCuda fake(std::make_shared<FakeCudaWorld>(1));
    return fake;
  }
};

const MatmulTiling kTilings[] = {{&tile_named("128x256"), nullptr, 1000},
                                 {&tile_named("256x128"), nullptr, 1000},
                                 {&tile_named("128x256"), &tile_named("128x112"), 1},
                                 {&tile_named("128x192"), &tile_named("128x144"), 3}};

std::vector<ArrivalPlan> all_plans() {
  std::vector<ArrivalPlan> plans;
  for (const int shards : {1, 2, 3, 5, 8, 16}) {
    for (int own = 0; own < shards; ++own) {
      for (const ArrivalOrder order :
           {ArrivalOrder::kPlain, ArrivalOrder::kRotated, ArrivalOrder::kFrontier}) {
        plans.push_back({.shards = shards, .own = own, .order = order});
      }
    }
  }
  return plans;
}

// All plans of all sizes: rows at, before and behind tiles' ends, and less rows than shards.
void each_followed(const std::function<void(const Followed&)>& visit) {
  for (const std::size_t m : {1, 5, 127, 128, 129, 512, 1000, 1277, 4100}) {
    for (const MatmulTiling& tiling : kTilings) {
      for (const ArrivalPlan& plan : all_plans()) {
        for (const bool own_a : {false, true}) {
          visit({m, tiling, plan, own_a});
          if (testing::Test::HasFailure()) {
            FAIL() << tiling.tile->name << ", M " << m << ", own shard " << plan.own << " of "
                   << plan.shards << ", " << to_string(plan.order) << (own_a ? ", own A" : "");
          }
        }
      }
    }
  }
}

// Counts how often each row of C is computed in each column of tiles: `width` of each row is that
// of its first tile.
void expect_covered(const Followed& followed) {
  const auto m = followed.call.problem.m;
  constexpr std::size_t kMostColumns = 8;
  std::vector<int> counts(m * kMostColumns), widths(m, -1);
  followed.each([&](const TileWork& tile) {
    const auto which = static_cast<std::size_t>(&tile.product - followed.arguments.product);
    const int columns = followed.arguments.columns[tile.width];
    const auto column = 4 * which + static_cast<std::size_t>(tile.column / columns);
    EXPECT_EQ(tile.column % columns, 0);
    EXPECT_LT(tile.column, tile.product.n);
    for (int row = tile.row; row < followed.end_of(tile); ++row) {
      const auto at = static_cast<std::size_t>(row);
      ++counts[at * kMostColumns + column];
      if (widths[at] < 0) widths[at] = tile.width;
      if (widths[at] != tile.width) ADD_FAILURE() << "two widths in row " << row;
    }
  });
  for (std::size_t row = 0; row < m; ++row) {
    ASSERT_GE(widths[row], 0);
    const auto width = static_cast<std::size_t>(widths[row]);
    const auto columns = static_cast<std::size_t>(followed.arguments.columns[width]);
    for (std::size_t column = 0; column < kMostColumns; ++column) {
      const std::size_t of_product = column < 4 ? ceil_div(296, columns) : 1;
      const int count = counts[row * kMostColumns + column];
      if (count != (column % 4 < of_product ? 1 : 0)) {
        FAIL() << count << " times row " << row << ", column " << column;
      }
    }
  }
}

TEST(ArrivalOrders, EachElementOfCIsInOneTile) { each_followed(expect_covered); }

TEST(ArrivalOrders, ShardsComeInTheOrderOfArrival) {
  each_followed([](const Followed& followed) {
    if (followed.plan.order == ArrivalOrder::kPlain) return;
    const bool frontier = followed.plan.order == ArrivalOrder::kFrontier;
    int before = 0, largest = 0;  // of groups of 1, 1, 2, 4 and 8 shards: where the last one begins
    for (int index = 0; index < followed.tiles(); ++index) {
      const int last = followed.last_arrival(index);
      ASSERT_GE(last, before) << "tile " << index;
      largest = std::max(largest, last);
      before = last;
      if (frontier) {
        before = 0;
        for (const int first : {1, 2, 4, 8}) before = last >= first ? first : before;
      }
    }
    EXPECT_LT(largest, followed.plan.shards);
  });
}

TEST(ArrivalOrders, NarrowTilesAreTheLast) {
  each_followed([](const Followed& followed) {
    const SegmentedOrder& order = followed.gate.sweep;
    ASSERT_LE(order.segments, SegmentedOrder::kMostSegments);
    int wide = 0, narrow = 0;
    for (int index = 0; index < followed.tiles(); ++index) {
      const int width = followed.work(index, 0).width;
      ASSERT_TRUE(width == 1 || narrow == 0);
      (width == 0 ? wide : narrow) += 1;
    }
    const MatmulTiling& tiling = followed.tiling;
    const int wide_rows =
        tiling.narrow == nullptr ? order.rows : std::min(tiling.wide_rows, order.rows);
    EXPECT_EQ(wide, wide_rows * followed.arguments.order.wide.columns);
    EXPECT_EQ(narrow, (order.rows - wide_rows) * followed.arguments.order.narrow.columns);
  });
}

TEST(ArrivalOrders, TheOwnShardIsReadFromItsOwnMatrix) {
  each_followed([](const Followed& followed) {
    const bool has_own_a =
        followed.gate.own.words[0] != 0 && followed.gate.parts.end[1] > followed.gate.parts.end[0];
    bool own_read = false;
    followed.each([&](const TileWork& tile) {
      if (tile.row >= followed.end_of(tile)) return;  // the partner of an odd last row
      const SourceOfA source = followed.gate.source(followed.arguments, tile.row);
      const bool own = &source.map == &followed.gate.own;
      own_read = own_read || own;
      for (int row = tile.row; row < followed.end_of(tile); ++row) {
        if (!own && !has_own_a) break;
        ASSERT_EQ(followed.shard_of(row) == followed.plan.own, own) << "row " << row;
      }
      const int first = followed.plan.own * followed.gate.chunks.shard_rows;
      ASSERT_EQ(source.row, own ? tile.row - first : tile.row);
    });
    ASSERT_EQ(own_read, has_own_a);
  });
}

// The test above takes this from the gate.
TEST(ArrivalOrders, AnOwnMatrixIsUsedWhereItHasRows) {
  const MatmulTiling tiling = kTilings[0];
  EXPECT_TRUE(Followed(1000, tiling, {.shards = 3, .own = 2}, true).gate.parts.in_own(700));
  EXPECT_FALSE(Followed(1000, tiling, {.shards = 3, .own = 2}, true).gate.parts.in_own(667));
  EXPECT_FALSE(Followed(1000, tiling, {.shards = 3, .own = 2}, false).gate.parts.in_own(700));
  const Followed last(1000, tiling, {.shards = 3, .own = 2}, true);
  EXPECT_EQ(last.gate.own.words[2], 1000U - 2 * 334);  // as the fake driver encodes rows
  EXPECT_EQ(Followed(5, tiling, {.shards = 8, .own = 6}, true).gate.own.words[0], 0U);  // no rows
}

TEST(ArrivalOrders, WhereShardsAreWholeTilesTheGridIsThatOfThePlainMatmul) {
  const MatmulProblem problem = problem_of(4096, {1792}, 4096);
  const MatmulForecast cast = forecast(tile_named("128x256"), problem, 132);
  for (const ArrivalOrder order :
       {ArrivalOrder::kPlain, ArrivalOrder::kRotated, ArrivalOrder::kFrontier}) {
    for (const bool own_a : {false, true}) {
      const Followed followed(4096, cast.tiling, {.shards = 8, .own = 3, .order = order}, own_a);
      const TwoWidthsOrder& plain = followed.arguments.order;
      EXPECT_EQ(followed.tiles(), plain.count());
      if (order != ArrivalOrder::kPlain) continue;
      SegmentedOrder::Cursor cursor;  // goes on, as that of a block does
      for (int index = 0; index < plain.count(); ++index) {
        const TilePlace gated = followed.gate.sweep.at(index, cursor), open = plain[index];
        ASSERT_EQ(gated.row, open.row);
        ASSERT_EQ(gated.column, open.column);
        ASSERT_EQ(gated.width, open.width);
      }
    }
  }
}

TEST(ArrivalOrders, AFrontierSweepsGroupsThatGrow) {
  const Followed followed(4096, kTilings[0],
                          {.shards = 8, .own = 6, .order = ArrivalOrder::kFrontier}, true);
  std::vector<int> rows;
  for (int i = 0; i < followed.gate.sweep.segments; ++i) {
    rows.push_back(followed.gate.sweep.segment[i].sweep.rows);
  }
  EXPECT_EQ(rows, (std::vector<int>{2, 2, 4, 8}));  // of 256 rows; a shard has 512
  EXPECT_EQ(followed.gate.sweep.rotation, 12);
}

TEST(ArrivalOrders, GroupsOfShardsAreSweptTogether) {
  const Followed followed(4096, kTilings[0], {.shards = 8, .own = 6, .shard_groups = 2}, true);
  std::vector<int> rows;
  for (int i = 0; i < followed.gate.sweep.segments; ++i) {
    rows.push_back(followed.gate.sweep.segment[i].sweep.rows);
  }
  EXPECT_EQ(rows, (std::vector<int>{2, 6, 8}));  // of 256 rows: 1, 3 and 4 shards
}

TEST(ArrivalOrders, HaveNames) {
  for (const ArrivalOrder order :
       {ArrivalOrder::kPlain, ArrivalOrder::kRotated, ArrivalOrder::kFrontier}) {
    EXPECT_EQ(test::take(parse_arrival_order(to_string(order))), order);
  }
  EXPECT_EQ(parse_arrival_order("rotate").status().code(), StatusCode::kInvalidArgument);
}

struct WrongArrival {
  const char* word;  // of the message
  std::function<void(Arrival&)> change;
};

void expect_refused(const CheckedMatmul& call, const Arrival& good,
                    const std::vector<WrongArrival>& wrong) {
  for (const auto& [word, change] : wrong) {
    Arrival arrival = good;
    change(arrival);
    const Status status = check_arrival(call, arrival);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << word;
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
}

TEST(ArrivalOrders, WrongArrivalsAreRefused) {
  CheckedMatmul call;
  call.problem = problem_of(64, {64}, 64);
  std::uint32_t flag = 0;
  GateFailure failure;
  alignas(16) std::byte own[32];
  const Arrival good = {.plan = {.shards = 8, .chunks = 16, .own = 7},
                        .own_a = own,
                        .own_lda = 64,
                        .flags = &flag,
                        .timeout_ns = 1,
                        .failure = &failure};
  require_ok(check_arrival(call, good));
  const std::vector<WrongArrival> wrong = {
      {"0 shards", [](Arrival& a) { a.plan.shards = 0; }},
      {"17 shards", [](Arrival& a) { a.plan.shards = 17; }},
      {"0 chunks", [](Arrival& a) { a.plan.chunks = 0; }},
      {"17 chunks", [](Arrival& a) { a.plan.chunks = 17; }},
      {"0 k-groups", [](Arrival& a) { a.plan.k_groups = 0; }},
      {"2 k-groups", [](Arrival& a) { a.plan.k_groups = 2; }},
      {"8 groups of shards", [](Arrival& a) { a.plan.shard_groups = 8; }},
      {"only the rotated order",
       [](Arrival& a) {
         a.plan.shard_groups = 2;
         a.plan.order = ArrivalOrder::kFrontier;
       }},
      {"own shard -1", [](Arrival& a) { a.plan.own = -1; }},
      {"own shard 8", [](Arrival& a) { a.plan.own = 8; }},
      {"unknown order", [](Arrival& a) { a.plan.order = static_cast<ArrivalOrder>(3); }},
      {"null flags", [](Arrival& a) { a.flags = nullptr; }},
      {"null failure", [](Arrival& a) { a.failure = nullptr; }},
      {"timeout of 0", [](Arrival& a) { a.timeout_ns = 0; }},
      {"null replay", [](Arrival& a) { a.replayed = 1; }},
      {"own_lda 63", [](Arrival& a) { a.own_lda = 63; }},
      {"16 bytes", [](Arrival& a) { a.own_lda = 65; }},
      {"16 bytes", [&](Arrival& a) { a.own_a = own + 2; }}};
  expect_refused(call, good, wrong);
}

TEST(ArrivalOrders, WhatPullersCannotBringIsRefused) {
  CheckedMatmul call;
  call.problem = problem_of(64, {64}, 64);
  std::uint32_t word = 0;
  GateFailure failure;
  alignas(16) std::byte memory[32];
  call.a = memory;
  Arrival good = {.plan = {.shards = 2},
                  .flags = &word,
                  .timeout_ns = 1,
                  .failure = &failure,
                  .pull = {.pullers = 4, .lda = 64, .to = memory, .counters = &word}};
  good.pull.shard[1] = memory;
  require_ok(check_arrival(call, good));
  const std::vector<WrongArrival> wrong = {
      {"3 pullers: a multiple of 2", [](Arrival& a) { a.pull.pullers = 3; }},
      {"-2 pullers", [](Arrival& a) { a.pull.pullers = -2; }},
      {"of one chunk", [](Arrival& a) { a.plan.chunks = 2; }},
      {"two or more shards", [](Arrival& a) { a.plan.shards = 1; }},
      {"null counters", [](Arrival& a) { a.pull.counters = nullptr; }},
      {"the call's A", [](Arrival& a) { a.pull.to = nullptr; }},
      {"shard 1 ", [](Arrival& a) { a.pull.shard[1] = nullptr; }},
      {"at least k", [](Arrival& a) { a.pull.lda = 56; }},
      {"multiple of 16 bytes", [](Arrival& a) { a.pull.lda = 65; }},
      {"multiple of 16 bytes", [&](Arrival& a) { a.pull.shard[1] = memory + 8; }}};
  expect_refused(call, good, wrong);
  call.problem.k = 60;
  EXPECT_EQ(check_arrival(call, good).message(),
            "gated matmul: pullers need rows of a multiple of 16 bytes");
}

}  // namespace
}  // namespace tutti
