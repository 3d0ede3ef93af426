#include "pipelines/derive.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "pipelines/print.hpp"
#include "programs.hpp"
#include "support/check.hpp"

namespace tutti::pipelines::test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using tutti::test::take;

Description described(Algorithm algorithm, Protocol protocol, int ranks) {
  return {.algorithm = algorithm,
          .ranks = ranks,
          .m = 8192,
          .k = 4096,
          .products = {{.n = 1792}},
          .protocol = protocol,
          .streams = 2,
          .tiles = 4};
}

std::string listing(const Description& description) { return print(take(derive(description))); }

TEST(PipelineDerive, ShiftOfGetsAsNodes) {
  Description description = described(Algorithm::kShift, Protocol::kGet, 4);
  description.symmetric_a = true;
  const Program program = take(derive(description));
  constexpr BufferId kA = 0, kGathered = 1;
  const Index owner = mod(kRank + kStep, 4), reader = mod(kRank - kStep, 4), word = constant(0);
  const Slice a{kA, kRank}, arrived{kGathered, owner};
  const Transfer offer{reader, a, {}, word, word};
  const Transfer get{owner, arrived, Slice{kA, owner}, word, word};
  const Index caller = constant(kCallerStream);
  EXPECT_EQ(program.setup, (Nodes{{Allocate{kGathered}}, {ShareHandles{{kA}}}}));
  EXPECT_EQ(program.call,
            (Nodes{{SetCurrentStream{caller}},
                   {For{Variable::kStep, 1, 3, {{SendPost{offer}}}}},
                   {For{Variable::kStream, 0, 1, {{Synchronize{kStream, caller}}}}},
                   {SetCurrentStream{constant(0)}},
                   {Matmul{a}},
                   {For{Variable::kStep,
                        1,
                        3,
                        {{SetCurrentStream{mod(kStep, 2)}}, {RecvPost{get}}, {Matmul{arrived}}}}},
                   {SetCurrentStream{caller}},
                   {For{Variable::kStream, 0, 1, {{Synchronize{caller, kStream}}}}},
                   {For{Variable::kStep, 1, 3, {{SendWait{offer}}}}}}));
}

std::string golden(const std::string& name) {
  std::ifstream file(std::string(TUTTI_PIPELINES) + "/" + name + ".txt");
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(PipelineDerive, AllAlgorithmsAndProtocols) {
  for (const Algorithm algorithm : kAllAlgorithms) {
    for (const Protocol protocol : {Protocol::kGet, Protocol::kPut}) {
      const auto name = fmt::format("{}_{}", to_string(algorithm), to_string(protocol));
      EXPECT_EQ(listing(described(algorithm, protocol, 4)), golden(name)) << name;
    }
  }
}

TEST(PipelineDerive, ASymmetricAIsReadDirectly) {
  Description description = described(Algorithm::kRing, Protocol::kGet, 4);
  description.symmetric_a = true;
  EXPECT_EQ(listing(description), golden("pipelined_ring_symmetric"));
}

TEST(PipelineDerive, InterStreamOrderLetsEachStreamBeginAfterTheOneBefore) {
  Description description = described(Algorithm::kShift, Protocol::kPut, 8);
  description.streams = 4;
  description.inter_stream_order = true;
  EXPECT_EQ(listing(description), golden("pipelined_shift_ordered"));
}

TEST(PipelineDerive, ASymmetricGatheredAIsNotAllocated) {
  Description description = described(Algorithm::kShift, Protocol::kPut, 2);
  EXPECT_THAT(listing(description), testing::Not(HasSubstr("Copy(")));
  description.gathered = true;
  description.symmetric_gathered = true;
  EXPECT_THAT(listing(description), HasSubstr("Copy(A -> A_gathered[shard rank])"));
  EXPECT_THAT(listing(description), testing::Not(HasSubstr("Allocate")));
}

// Peers put rows into a workspace, and the rank copies them on.
TEST(PipelineDerive, AnotherGatheredAIsCopiedOut) {
  for (const Algorithm algorithm : kAllAlgorithms) {
    Description description = described(algorithm, Protocol::kPut, 3);
    description.gathered = true;
    const Program program = take(derive(description));
    EXPECT_FALSE(program.buffers[1].is_callers());
    ASSERT_EQ(program.gathered, 4);
    EXPECT_TRUE(program.buffers[4].is_callers());
    EXPECT_FALSE(program.buffers[4].is_symmetric);
    const bool tiles = algorithm == Algorithm::kTiles;
    EXPECT_THAT(print(program), HasSubstr(tiles ? "Copy(A_gathered[tile t of all shards] -> "
                                                  "A_output[tile t of all shards])"
                                                : "Copy(A -> A_output[shard rank])"));
  }
}

// With get, peers read the other ranks' A alone.
TEST(PipelineDerive, AGatheredAThatPeersDoNotUseIsTheOutput) {
  Description description = described(Algorithm::kShift, Protocol::kGet, 3);
  description.symmetric_a = true;
  description.gathered = true;
  const Program program = take(derive(description));
  EXPECT_EQ(program.gathered, 1);
  EXPECT_FALSE(program.buffers[1].is_symmetric);
  EXPECT_EQ(program.setup, (Nodes{{ShareHandles{{0}}}}));
  EXPECT_EQ(workspace_bytes(program), 0u);
  description.algorithm = Algorithm::kRing;  // which forwards from it
  EXPECT_EQ(take(derive(description)).gathered, 4);
}

TEST(PipelineDerive, WorkspacesAreAligned) {
  Description description = described(Algorithm::kShift, Protocol::kPut, 2);
  description.m = 3;
  description.k = 50;
  Program program = take(derive(description));
  EXPECT_EQ(workspace_bytes(program), 512u);  // of 300
  program.buffers.push_back({"more", 1, 1});
  program.setup.push_back({Allocate{4}});
  EXPECT_EQ(workspace_bytes(program), 768u);
  EXPECT_THAT(workspace_offsets(program), ElementsAre(0, 0, 0, 0, 512));
}

TEST(PipelineDerive, OneRankOnlyMultiplies) {
  EXPECT_EQ(listing(described(Algorithm::kShift, Protocol::kGet, 1)),
            "all_gather_matmul/pipelined_shift: get by copy_engine, inter-stream order off\n"
            "(A [8192, 4096], B0 [4096, 1792]) -> (C0 [8192, 1792]), bf16\n"
            "A over 1 rank: 8192 rows each; shards over 1 stream\n"
            "EACH CALL:\n"
            "  Synchronize(stream 0 waits for caller)\n"
            "  SetCurrentStream(stream 0)\n"
            "  C0[shard rank] = Matmul(A, B0)\n"
            "  SetCurrentStream(caller)\n"
            "  Synchronize(caller waits for stream 0)\n");
}

TEST(PipelineDerive, ShardsAndTilesAreCeilDivided) {
  Description description = described(Algorithm::kTiles, Protocol::kGet, 4);
  description.m = 13;  // shards of 4 rows, the last of 1
  EXPECT_EQ(shard_rows(description, 3), (Rows{12, 13}));
  description.m = 5;  // of 2, 2, 1 and none
  EXPECT_EQ(shard_rows(description, 2), (Rows{4, 5}));
  EXPECT_EQ(shard_rows(description, 3).count(), 0u);
  description.tiles = 2;
  EXPECT_EQ(tile_rows(description, 1, 1), (Rows{3, 4}));
  EXPECT_EQ(tile_rows(description, 2, 1).count(), 0u);
  const Bindings tile1 = {0, 0, 1, 0};
  const Program uneven = take(derive(description));
  EXPECT_THAT(rows_of(uneven, {1, {}, kTile}, tile1), ElementsAre(Rows{1, 2}, Rows{3, 4}));
  EXPECT_THAT(rows_of(uneven, {1, constant(3)}, tile1), IsEmpty());
  EXPECT_THAT(rows_of(uneven, {0, constant(2)}, tile1), ElementsAre(Rows{0, 1}));  // A of rank 2
}

std::string why_not(const Description& description) {
  const auto program = derive(description);
  EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
  return program.status().message();
}

TEST(PipelineDerive, RefusesInvalidDescriptions) {
  const Description good = described(Algorithm::kShift, Protocol::kGet, 4);
  Description bad = good;
  bad.ranks = 0;
  EXPECT_EQ(why_not(bad), "all_gather_matmul: ranks 0: must be between 1 and 16");
  bad = good;
  bad.streams = 17;
  EXPECT_THAT(why_not(bad), EndsWith("streams 17: must be between 1 and 16"));
  bad = good;
  bad.tiles = -1;
  EXPECT_THAT(why_not(bad), EndsWith("tiles -1: must be between 1 and 64"));
  bad = good;
  bad.products.clear();
  EXPECT_THAT(why_not(bad), EndsWith("no B"));
  bad = good;
  bad.symmetric_gathered = true;
  EXPECT_THAT(why_not(bad), EndsWith("the gathered A is symmetric, but no output"));
  bad = good;
  bad.m = std::numeric_limits<std::size_t>::max();
  EXPECT_THAT(why_not(bad), HasSubstr("the size of A ["));
  bad = good;
  bad.products.push_back({.n = std::size_t{1} << 50});
  EXPECT_THAT(why_not(bad), HasSubstr("the size of B ["));
}

}  // namespace
}  // namespace tutti::pipelines::test
