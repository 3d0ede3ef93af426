#include "explain_pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/check.hpp"

namespace tutti::cli {
namespace {

using test::take;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string explained(const ExplainPipelinesArguments& arguments) {
  return take(pipelines_text(take(read_pipelines_question(arguments))));
}

std::string refused(const ExplainPipelinesArguments& arguments) {
  const auto question = read_pipelines_question(arguments);
  EXPECT_EQ(question.status().code(), StatusCode::kInvalidArgument);
  return question.status().message();
}

TEST(ExplainPipelines, PrintsTheProgramOfEachAlgorithm) {
  const std::string text = explained({.algorithms = "pipelined_ring,pipelined_tiles",
                                      .ranks = "4",
                                      .m = "4096",
                                      .n = "1792",
                                      .k = "512",
                                      .products = "2",
                                      .protocol = "put",
                                      .mover = "kernel",
                                      .streams = "3",
                                      .tiles = "2",
                                      .inter_stream_order = "on",
                                      .bias = true});
  EXPECT_THAT(text,
              StartsWith("all_gather_matmul/pipelined_ring: put by kernel, inter-stream order on\n"
                         "(A [1024, 512], B0 [512, 1792], bias0 [1, 1792], B1 [512, 1792], bias1 "
                         "[1, 1792]) -> (C0 [4096, 1792], C1 [4096, 1792]), bf16\n"
                         "A over 4 ranks: 1024 rows each; shards over 3 streams\n"));
  EXPECT_THAT(text, HasSubstr("\n\nall_gather_matmul/pipelined_tiles: "));
  EXPECT_THAT(text, HasSubstr("shards in 2 tiles of 512 rows, tiles over 2 streams\n"));
}

TEST(ExplainPipelines, PrintsWhatARankEnqueues) {
  const std::string text =
      explained({.ranks = "2", .m = "7", .rank = "1", .symmetric_a = true, .gathered = true});
  EXPECT_THAT(text, HasSubstr("2 ranks: 4 rows each, the last ones fewer; shards over 2 streams"));
  EXPECT_THAT(text, HasSubstr("\nRANK 1, BY STREAM:\n  caller  writes ready[0] of rank 0\n"));
  EXPECT_THAT(text,
              HasSubstr("  1  copy_engine moves A[0:4] of rank 0 to A_gathered[0:4] of rank 1\n"));
  EXPECT_THAT(text, EndsWith("  caller  waits for done[0] from rank 0\n"));
}

TEST(ExplainPipelines, PrintsJson) {
  const auto json = nlohmann::json::parse(explained({.ranks = "3", .rank = "2", .format = "json"}));
  const auto& pipeline = json.at("pipelines").at(0);
  EXPECT_EQ(pipeline.at("algorithm"), "pipelined_shift");
  EXPECT_EQ(pipeline.at("m"), 8192);
  EXPECT_EQ(pipeline.at("rank"), 2);
  EXPECT_EQ(pipeline.at("instructions").back().at("do"), "await");
}

TEST(ExplainPipelines, RefusesInvalidOptions) {
  EXPECT_EQ(refused({.ranks = "17"}), "--ranks: 17 is not between 1 and 16");
  EXPECT_EQ(refused({.ranks = "4", .rank = "4"}), "--rank: 4 is not between 0 and 3");
  EXPECT_THAT(refused({.algorithms = "pipelined_shift,"}), StartsWith("unknown pipeline ''"));
  EXPECT_EQ(read_pipelines_question({.dtype = "int8"}).status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(refused({.protocol = "gett"}), HasSubstr("did you mean 'get'?"));
  EXPECT_THAT(refused({.mover = "sm"}), HasSubstr("known are copy_engine, kernel"));
  EXPECT_THAT(refused({.inter_stream_order = "yes"}), HasSubstr("known are on, off"));
  EXPECT_EQ(refused({.protocol = "put", .symmetric_a = true}),
            "--symmetric: with --protocol put no peer reads A");
  EXPECT_EQ(refused({.symmetric_gathered = true}), "--symmetric-gathered needs --gathered");
  EXPECT_EQ(refused({.algorithms = "pipelined_ring", .tiles = "4"}),
            "--tiles: pipelined_ring has no tiles; pipelined_tiles has");
  EXPECT_THAT(refused({.format = "xml"}), HasSubstr("known are text, json"));
}

}  // namespace
}  // namespace tutti::cli
