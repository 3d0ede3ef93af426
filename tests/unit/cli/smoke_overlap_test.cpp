// A matmul beside an all_gather on the command line, on the host backend, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "drivers/matmul.hpp"
#include "run_tutti.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BenchOverlap : public testing::Test {
 protected:
  void SetUp() override {
    const auto blas = make_blas_matmul({.m = 1, .n = 1, .k = 1});
    if (!blas.is_ok()) GTEST_SKIP() << blas.status().message();
  }

  static Ended overlap(std::vector<std::string> arguments) {
    const std::vector<std::string> common = {"bench", "overlap", "--backend", "host", "--m",
                                             "48",    "--n",     "40",        "--k",  "36",
                                             "-n",    "3",       "-w",        "1"};
    arguments.insert(arguments.begin(), common.begin(), common.end());
    return run_tutti(arguments);
  }

  // The rows of a run that must go well, each checked.
  static std::vector<nlohmann::json> rows_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    const Ended ended = overlap(std::move(arguments));
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    if (ended.exit_code != 0) return {};
    const auto record = nlohmann::json::parse(ended.out);
    EXPECT_EQ(record.at("schema"), "tutti.bench/1");
    std::vector<nlohmann::json> rows = record.at("rows");
    for (const auto& row : rows) expect_sound(row);
    return rows;
  }

  static std::vector<std::string> phases_of(const std::vector<nlohmann::json>& rows) {
    std::vector<std::string> phases;
    for (const auto& row : rows) phases.push_back(row.at("overlap").at("phase"));
    return phases;
  }

 private:
  static void expect_sound(const nlohmann::json& row) {
    const auto& overlap = row.at("overlap");
    EXPECT_EQ(row.at("collective"), "overlap");
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_EQ(row.at("time_us").at("n"), 3);
    EXPECT_EQ(overlap.at("m"), 48);
    EXPECT_EQ(overlap.at("per_rank_us").size(), row.at("ranks"));
    const double all = row.at("time_us").at("max");
    for (const auto& rank : overlap.at("per_rank_us")) EXPECT_LE(rank.at("max"), all);
    for (const char* part : {"matmul_us", "gather_us"}) EXPECT_LE(overlap.at(part), all) << row;
    const bool both = overlap.at("matmul_us") > 0 && overlap.at("gather_us") > 0;
    EXPECT_EQ(overlap.at("exposed_us").is_null(), !both);
    EXPECT_EQ(overlap.at("efficiency").is_null(), !both);
    EXPECT_EQ(overlap.at("matmul_slowdown").is_null(), !both);
  }
};

TEST_F(BenchOverlap, MeasuresEveryPhaseAndChecksIt) {
  for (const char* launch : {"processes", "threads"}) {
    const auto rows = rows_of({"--ranks", "3", "--ag-mb", "1", "--launch", launch});
    EXPECT_THAT(phases_of(rows), ElementsAre("matmul", "all_gather", "sequential", "overlap"));
    EXPECT_EQ(rows.at(1).at("bytes"), 3 << 20);
    EXPECT_FALSE(rows.at(3).at("overlap").at("library").get<std::string>().empty());
  }
}

TEST_F(BenchOverlap, GathersWhatItMultiplies) {
  const auto rows = rows_of({"--ranks", "4", "--dependent"});
  EXPECT_THAT(phases_of(rows), ElementsAre("matmul", "all_gather", "sequential"));
  EXPECT_EQ(rows.at(2).at("bytes"), 48 * 36 * 4);
  EXPECT_TRUE(rows.at(2).at("overlap").at("dependent").get<bool>());
}

TEST_F(BenchOverlap, HasLinesForEachAlgorithm) {
  const auto rows = rows_of({"--ag-mb", "1", "--algorithms", "push,copy_engine", "--modes",
                             "matmul,all_gather,overlap", "--buffers", "plain"});
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].at("algorithm"), "matmul");
  EXPECT_EQ(rows[2].at("algorithm"), "push");
  EXPECT_EQ(rows[4].at("algorithm"), "copy_engine");
}

TEST_F(BenchOverlap, ArithmeticInsteadOfAMatmul) {
  const auto rows = rows_of({"--ag-mb", "1", "--compute", "arithmetic", "--pause", "5"});
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("overlap").at("compute"), "arithmetic");
    EXPECT_EQ(row.at("overlap").at("pause_ms"), 5);
  }
  EXPECT_EQ(rows[0].at("overlap").at("library"), "arithmetic");
  const Ended wrong =
      overlap({"--ag-mb", "1", "--compute", "arithmetic", "--inject", "flip:1:matmul"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("element 0 of the product"));
}

TEST_F(BenchOverlap, GathersInPlace) {
  for (const char* dependent : {"", "--dependent"}) {
    std::vector<std::string> words = {"--ranks", "4", "--in-place", "--algorithms", "push"};
    words.emplace_back(*dependent == '\0' ? "--ag-mb=1" : dependent);
    for (const auto& row : rows_of(words)) {
      EXPECT_EQ(row.at("in_place").get<bool>(), row.at("bytes") > 0);
    }
    words.insert(words.end(), {"--inject", "flip:0:push"});
    EXPECT_EQ(overlap(words).exit_code, 1);
  }
}

TEST_F(BenchOverlap, PrintsTablesAndAppends) {
  const ScratchFolder folder;
  const auto run = [&](const char* mebibytes) {
    const Ended ended =
        overlap({"--ag-mb", mebibytes, "--algorithms", "push", "--modes", "matmul,all_gather",
                 "--output", folder / "overlap.json", "--append"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("all_gather            push  slowest"));
    return nlohmann::json::parse(folder.read("overlap.json")).at("rows").size();
  };
  EXPECT_EQ(run("1"), 2u);
  EXPECT_EQ(run("1"), 2u);
  EXPECT_EQ(run("2"), 3u);  // the matmul alone is the same
}

TEST_F(BenchOverlap, NamesAnAlgorithmThatCannotRunHere) {
  const Ended ended = overlap({"--ag-mb", "1", "--algorithms", "push,nccl"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, testing::ContainsRegex("# 2 ranks: nccl: .*host"));
}

// Negative controls: each defect is made on purpose and must be found.

TEST_F(BenchOverlap, FindsAWrongProduct) {
  const Ended ended =
      overlap({"--ag-mb", "1", "--algorithms", "push", "--inject", "flip:1:matmul"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("WRONG RESULT with 2 ranks, matmul, matmul: 2 elements, first "
                                   "rank 1, element 0 of the product"));
  EXPECT_THAT(ended.err, HasSubstr("2 ranks, overlap, push: 2 elements, first rank 1"));
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("of what was gathered")));
}

TEST_F(BenchOverlap, FindsAWrongBitOfWhatWasGathered) {
  for (const char* dependent : {"", "--dependent"}) {
    std::vector<std::string> words = {"--algorithms", "push", "--inject", "flip:0:push"};
    words.emplace_back(*dependent == '\0' ? "--ag-mb=1" : dependent);
    const Ended ended = overlap(words);
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_THAT(ended.err, HasSubstr("all_gather, push: 2 elements, first rank 0, element 0 of "
                                     "what was gathered"));
    EXPECT_THAT(ended.err, testing::Not(HasSubstr("of the product")));
  }
}

TEST_F(BenchOverlap, NamesARankThatCrashes) {
  const Ended ended = overlap({"--ag-mb", "1", "--algorithms", "push", "--inject", "crash:1:push"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("rank 1: ended by signal 9 (Killed)"));
}

TEST(BenchOverlapUsage, RefusesWhatItCannotMeasure) {
  const Ended csv = run_tutti({"bench", "overlap", "--backend", "host", "--format", "csv"});
  EXPECT_EQ(csv.exit_code, 2);
  EXPECT_THAT(csv.err, HasSubstr("tutti bench overlap: prints a table"));
  EXPECT_EQ(run_tutti({"bench", "overlap", "--rows", "3"}).exit_code, 2);
  const Ended nothing = run_tutti({"bench"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.out + nothing.err, HasSubstr("collective is missing"));
  EXPECT_THAT(run_tutti({"bench", "--help"}).out,
              HasSubstr("Measure an all_gather that runs concurrently with a matmul"));
}

}  // namespace
}  // namespace tutti::cli
