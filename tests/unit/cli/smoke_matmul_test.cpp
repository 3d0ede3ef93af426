// Matmuls on the command line, on the host backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_tutti.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

Ended matmul(std::vector<std::string> arguments) {
  const std::vector<std::string> common = {"bench", "matmul", "--backend", "host",
                                           "-n",    "2",      "-w",        "0"};
  arguments.insert(arguments.begin(), common.begin(), common.end());
  return run_tutti(arguments);
}

TEST(BenchMatmul, MeasuresListsAndChecksThem) {
  const Ended ended =
      matmul({"--m", "1,33", "--n", "20", "--k", "24", "--layout", "row,column", "--products", "2",
              "--bias", "--algorithms", "host,auto", "--format", "json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto rows = nlohmann::json::parse(ended.out).at("rows");
  ASSERT_EQ(rows.size(), 8u);
  for (const auto& row : rows) {
    const auto& of = row.at("matmul");
    EXPECT_EQ(row.at("collective"), "matmul");
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_EQ(row.at("time_us").at("n"), 2);
    EXPECT_EQ(row.at("dtype"), "fp32");
    EXPECT_EQ(of.at("products"), 2);
    EXPECT_TRUE(of.at("bias").get<bool>());
    EXPECT_GT(of.at("tflops").get<double>(), 0);
    EXPECT_EQ(of.at("ratio"), 0);  // cuBLASLt is not there
  }
  EXPECT_EQ(rows[3].at("algorithm"), "auto");
  EXPECT_EQ(rows[3].at("matmul").at("m"), 33);
  EXPECT_EQ(rows[2].at("algorithm"), "host_matmul");
  EXPECT_EQ(rows[7].at("matmul").at("layout"), "column");
}

TEST(BenchMatmul, PrintsTablesAndAppends) {
  const ScratchFolder folder;
  const auto rows_after = [&](const char* rows) {
    const Ended ended = matmul(
        {"--m", rows, "--n", "16", "--k", "16", "--output", folder / "matmul.json", "--append"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("# fp32, B row-major, backend host"));
    return nlohmann::json::parse(folder.read("matmul.json")).at("rows").size();
  };
  EXPECT_EQ(rows_after("16"), 1u);
  EXPECT_EQ(rows_after("16"), 1u);
  EXPECT_EQ(rows_after("17"), 2u);
}

TEST(BenchMatmul, FindsAWrongElement) {
  const Ended ended = matmul({"--m", "40", "--n", "16", "--k", "16", "--algorithms", "host,auto",
                              "--inject", "flip:0:auto"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("# WRONG RESULT of auto, m 40, n 16, k 16: 2 elements, first "
                                   "row 0, column 0\n"));
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("host_matmul")));
}

TEST(BenchMatmul, RefusesWhatItCannotMeasure) {
  const Ended ended = matmul({"--m", "0"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.err, "tutti bench matmul: --m: 0 is not between 1 and 1048576\n");
  EXPECT_THAT(run_tutti({"bench", "matmull"}).err, HasSubstr("did you mean 'matmul'?"));
  EXPECT_THAT(run_tutti({"bench", "--help"}).out, HasSubstr("Measure the own matmul"));
}

TEST(BenchAllGatherMatmul, SaysWhatItCannotRun) {
  const Ended wrong = run_tutti({"bench", "all_gather_matmul", "--arrival", "trace:/no/such.json"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(
      wrong.err,
      "tutti bench all_gather_matmul: --arrival trace:/no/such.json: there is no such file\n");
  EXPECT_THAT(run_tutti({"bench", "all_gather_matmull"}).err,
              HasSubstr("did you mean 'all_gather_matmul'?"));
  EXPECT_THAT(run_tutti({"bench", "all_gather_matmul", "--help"}).out,
              HasSubstr("open|model|pull|trace:FILE|host"));
}

class BenchGatherMatmul : public testing::Test {
 protected:
  static Ended bench(std::vector<std::string> arguments) {
    const std::vector<std::string> common = {"bench",     "all_gather_matmul",
                                             "--backend", "host",
                                             "--m",       "50",
                                             "--n",       "24",
                                             "--k",       "36",
                                             "-n",        "3",
                                             "-w",        "1"};
    arguments.insert(arguments.begin(), common.begin(), common.end());
    return run_tutti(arguments);
  }
};

TEST_F(BenchGatherMatmul, MeasuresRanksAsProcessesAndThreads) {
  for (const char* launch : {"processes", "threads"}) {
    const Ended ended = bench({"--gpus", "3", "--launch", launch, "--layout", "row,column",
                               "--tiles", "3", "--protocol", "put", "--format", "json"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const auto rows = nlohmann::json::parse(ended.out).at("rows");
    ASSERT_EQ(rows.size(), 12u);
    for (const auto& row : rows) {
      EXPECT_EQ(row.at("wrong"), 0) << row;
      EXPECT_EQ(row.at("ranks"), 3);
      EXPECT_EQ(row.at("launch"), launch);
      EXPECT_EQ(row.at("time_us").at("n"), 3);
      EXPECT_EQ(row.at("matmul").at("gathered").at("alone"), "host_matmul_only");
    }
    EXPECT_EQ(rows[1].at("algorithm"), "unfused");
    EXPECT_EQ(rows[1].at("matmul").at("gathered").at("speed_up"), 1);
    EXPECT_EQ(rows[4].at("algorithm"), "pipelined_tiles");
    EXPECT_EQ(rows[4].at("matmul").at("gathered").at("pipeline"), "put, 3 tiles, 4 streams");
    EXPECT_EQ(rows[5].at("algorithm"), "fused");
    EXPECT_EQ(rows[11].at("matmul").at("layout"), "column");
    EXPECT_THAT(ended.err, HasSubstr("# 3 ranks: nccl_unfused: NCCL runs on GPUs\n"));
  }
}

TEST_F(BenchGatherMatmul, FindsAWrongProductOfARank) {
  const Ended ended =
      bench({"--algorithms", "pipelined_ring", "--inject", "flip:1:pipelined_ring"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("# rank 1: WRONG RESULT of pipelined_ring, m 50, n 24, k 36: 2 "
                                   "elements, first row 0, column 0\n"));
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("rank 0")));
  EXPECT_THAT(ended.out, HasSubstr("pipelined_ring (get, 4 streams, host_matmul)\n"));
}

TEST_F(BenchGatherMatmul, JoinsALauncherAndNamesARankThatCrashes) {
  const Ended joined =
      run_tutti({"run", "-n", "2", TUTTI_COMMAND, "bench", "all_gather_matmul", "--backend", "host",
                 "--m", "8", "--n", "8", "--k", "8", "-n", "2", "--algorithms", "unfused"});
  EXPECT_EQ(joined.exit_code, 0) << joined.err;
  EXPECT_THAT(joined.out, HasSubstr("[0] # fp32, B row-major, backend host"));
  EXPECT_THAT(joined.out, testing::Not(HasSubstr("[1]")));
  const Ended crashed = bench({"--inject", "crash:1:unfused"});
  EXPECT_EQ(crashed.exit_code, 1);
  EXPECT_THAT(crashed.err, HasSubstr("rank 1: ended by signal 9 (Killed)"));
}

TEST(ExplainMatmul, AnswersForAnotherMachine) {
  const Ended ended = run_tutti({"explain", "matmul", "--m", "4096", "--n", "1792", "--k", "4096",
                                 "--gpu", "h200", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto said = nlohmann::json::parse(ended.out);
  EXPECT_EQ(said.at("plan").at("algorithm"), "own_matmul");
  EXPECT_EQ(said.at("machine").at("multiprocessors"), 132);
  ASSERT_EQ(said.at("tiles").size(), 11u);
  EXPECT_EQ(said.at("tiles")[0].at("narrow"), "128x224");
  EXPECT_EQ(said.at("tiles")[0].at("narrow_from_row"), 2304);
  EXPECT_EQ(said.at("tiles")[1].at("narrow"), "");
  EXPECT_THAT(run_tutti({"explain", "matmul", "--m", "8", "--n", "8", "--k", "8", "--gpu",
                         "a100-sxm4-40gb"})
                  .out,
              HasSubstr("cannot run it"));
  EXPECT_EQ(run_tutti({"explain", "matmul", "--k", "0"}).err,
            "tutti explain matmul: --k: 0 is not between 1 and 1048576\n");
}

TEST(ExplainPipelines, OptionsReachTheProgram) {
  const Ended ended = run_tutti({"explain", "all_gather_matmul", "--ranks", "4", "--m", "4096",
                                 "--n", "1792", "--k", "4096", "--algorithms", "pipelined_tiles",
                                 "--protocol", "put", "--streams", "3", "--tiles", "5"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("all_gather_matmul/pipelined_tiles: put by copy_engine"));
  EXPECT_THAT(ended.out, HasSubstr("shards in 5 tiles of 205 rows, tiles over 3 streams\n"));
  EXPECT_EQ(run_tutti({"explain", "all_gather_matmul", "--tiles", "65"}).err,
            "tutti explain all_gather_matmul: --tiles: 65 is not between 1 and 64\n");
}

}  // namespace
}  // namespace tutti::cli
