#include "pipelines/print.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "pipelines/check.hpp"
#include "programs.hpp"
#include "support/check.hpp"

namespace tutti::pipelines::test {
namespace {

using tutti::test::take;

TEST(PipelinePrint, Indices) {
  EXPECT_EQ(index_text(mod(kRank + kStep, 8)), "(rank + step) mod 8");
  EXPECT_EQ(index_text(mod(kRank - kStep + 1, 8)), "(rank - step + 1) mod 8");
  EXPECT_EQ(index_text(mod(kTile, 4)), "t mod 4");
  EXPECT_EQ(index_text(constant(0) - kStep), "-step");
  EXPECT_EQ(index_text(constant(3)), "3");
  EXPECT_EQ(index_text(mod(kRank - kStep, 8), Bindings{1, 3}), "6");
}

TEST(PipelinePrint, WhatARankEnqueues) {
  Description description = small(Algorithm::kShift, Protocol::kGet, 2, 7);
  description.symmetric_a = true;
  const Program program = take(derive(description));
  EXPECT_EQ(print(program, take(checked(program))[1]),
            "  caller  writes ready[0] of rank 0\n"
            "       0  waits for the caller's stream\n"
            "       1  waits for the caller's stream\n"
            "       0  C0[shard 1], C1[shard 1] = Matmul(A, B0 + bias0, B1)\n"
            "       1  waits for ready[0] from rank 0\n"
            "       1  copy_engine moves A[0:4] of rank 0 to A_gathered[0:4] of rank 1\n"
            "       1  writes done[0] of rank 0\n"
            "       1  C0[shard 0], C1[shard 0] = Matmul(A_gathered[shard 0], B0 + bias0, B1)\n"
            "  caller  waits for stream 0\n"
            "  caller  waits for stream 1\n"
            "  caller  waits for done[0] from rank 0\n");
}

TEST(PipelinePrint, Json) {
  const Program program = take(derive(small(Algorithm::kTiles, Protocol::kPut, 3, 9)));
  const auto json = to_json(program);
  EXPECT_EQ(json.at("algorithm"), "pipelined_tiles");
  EXPECT_EQ(json.at("buffers").at(1).dump(),
            R"({"name":"A_gathered","rows":9,"columns":4,"role":"workspace","symmetric":true})");
  EXPECT_EQ(json.at("symmetric_a"), false);
  EXPECT_EQ(json.at("gathered"), false);
  EXPECT_EQ(json.at("symmetric_gathered"), false);
  EXPECT_EQ(json.at("words"), 3);
  EXPECT_EQ(json.at("words_per_rank"), 18);
  EXPECT_EQ(json.at("workspace_bytes"), 256);
  EXPECT_EQ(json.at("once").at(1).dump(), R"({"node":"ShareHandles","buffers":["A_gathered"]})");
  const auto& tile = json.at("each_call").at(3);
  EXPECT_EQ(tile.at("variable"), "t");
  EXPECT_EQ(tile.at("last"), 2);
  EXPECT_EQ(tile.at("body").at(2).at("body").at(0).dump(),
            R"({"node":"SendPost","peer":"(rank - step) mod 3",)"
            R"("local":{"buffer":"A","shard":"rank","tile":"t"},"ready":"0","done":"t",)"
            R"("remote":{"buffer":"A_gathered","shard":"rank","tile":"t"}})");
  EXPECT_EQ(tile.at("body").back().at("products").at(0).dump(),
            R"({"b":"B0","c":"C0","bias":"bias0"})");

  const auto instructions = to_json(program, take(checked(program))[0]);
  EXPECT_EQ(instructions.at(0).dump(),
            R"x({"stream":-1,"node":"RecvPost(A_gathered[shard 1] <- rank 1)",)x"
            R"("do":"signal","word":"ready","index":0,"writer":0,"rank":1})");
  std::set<std::string> done;
  for (const auto& instruction : instructions) done.insert(instruction.at("do"));
  EXPECT_EQ(done, (std::set<std::string>{"signal", "wait_for_stream", "copy", "await", "move",
                                         "matmul"}));
  const auto first = [&](const char* what) {
    return *std::ranges::find_if(instructions,
                                 [&](const auto& one) { return one.at("do") == what; });
  };
  EXPECT_EQ(first("move").at("mover"), "copy_engine");
  EXPECT_EQ(first("matmul").at("c").at(1).dump(),
            R"({"rank":0,"buffer":"C1","rows":[[0,1],[3,4],[6,7]]})");
}

TEST(PipelinePrint, EveryWordHasAPlaceOfItsOwn) {
  const Program program = take(derive(small(Algorithm::kTiles, Protocol::kGet, 3, 9)));
  std::set<std::pair<int, std::size_t>> places;
  std::size_t written = 0;
  for (const auto& list : take(checked(program))) {
    for (const Instruction& instruction : list) {
      const auto* signal = std::get_if<Signal>(&instruction.action);
      if (signal == nullptr) continue;
      ++written;
      const std::size_t position = position_of(signal->word, program);
      EXPECT_LT(position, words_per_rank(program));
      places.insert({signal->word.rank, position});
    }
  }
  EXPECT_EQ(places.size(), written);
}

}  // namespace
}  // namespace tutti::pipelines::test
