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

TEST(ExplainPipelines, PredictsTheFusedKernel) {
  const ExplainPipelinesArguments arguments{
      .algorithms = "fused", .m = "8192", .n = "1792", .k = "4096", .layout = "column"};
  const std::string text = explained(arguments);
  EXPECT_THAT(text, StartsWith("all_gather_matmul/fused: a prediction, of rank 0 of 8 x NVIDIA "
                               "H200\nown_matmul alone (128x"));
  EXPECT_THAT(text, HasSubstr("\nfrontier, 2 chunks per shard "));
  ExplainPipelinesArguments as_json = arguments;
  as_json.format = "json";
  const auto fused = nlohmann::json::parse(explained(as_json)).at("fused");
  EXPECT_EQ(fused.at("kind"), "prediction");
  const auto orders = fused.at("orders");
  ASSERT_EQ(orders.size(), 10u);  // 3 orders by 1 and 2 chunks, then 4 numbers of pullers
  EXPECT_EQ(orders[1].at("order"), "rotated");
  const auto number = [&](int which, const char* name) {
    return orders[static_cast<std::size_t>(which)].at(name).get<double>();
  };
  // 58.7 MB at 290 GB/s, 7 copies.
  EXPECT_NEAR(number(1, "last_us"), 45 + 7 * 2.5 + 58.72e6 / 290e3, 0.05 * 203);
  for (int which = 0; which < 10; ++which) {
    EXPECT_GE(number(which, "total_us"), number(which, "last_us"));
    EXPECT_NEAR(number(which, "total_us"),
                number(which, "matmul_us") + number(which, "order_us") +
                    number(which, "gating_us") + number(which, "contention_us"),
                1e-9);
  }
}

TEST(ExplainPipelines, RefusesWhatIsNotFused) {
  EXPECT_THAT(refused({.algorithms = "fused", .gpu = "h999"}), HasSubstr("h999"));
  EXPECT_THAT(refused({.algorithms = "fused", .layout = "tall"}), HasSubstr("'tall'"));
  const auto text = [](const ExplainPipelinesArguments& arguments) {
    return pipelines_text(take(read_pipelines_question(arguments))).status();
  };
  EXPECT_EQ(text({.algorithms = "fused", .k = "0"}).message(),
            "fused: --m, --n and --k have to be at least 1");
  EXPECT_EQ(text({.algorithms = "fused", .gpu = "a100-sxm4-40gb"}).code(),
            StatusCode::kUnsupported);
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
