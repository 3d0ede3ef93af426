#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exit_code.hpp"
#include "report/command.hpp"
#include "report/pages.hpp"
#include "scratch_folder.hpp"
#include "some_record.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kBegin = "<!-- headline from results/h200x8/all_reduce.json: not by hand -->";
const std::string kEnd = "<!-- end of headline -->";
const std::string kReadme = "# x\n" + kBegin + "\nold\n" + kEnd + "\nrest\n";

std::vector<ResultFile> some_files() {
  return {{.path = "results/h200x8/all_reduce.json",
           .machine = "h200x8",
           .what = "all_reduce",
           .record = some_record()}};
}

TEST(Headline, ShowsEverySizeAndNamesItsFile) {
  EXPECT_EQ(render_headline(some_files().front()),
            "all_reduce, 8 ranks (processes), bf16 sum, backend cuda, symmetric buffers, graph of "
            "10 operations, cache hot:\n\n"
            "| bytes | time us | algorithm | NCCL us | speed-up |\n"
            "|---:|---:|---|---:|---:|\n"
            "| 1K | 4.00 | one_shot | 16.00 | 4.00x |\n"
            "| 1M | 12.50 | two_shot | 25.00 | 2.00x |\n"
            "\nFrom [results/h200x8/all_reduce.json](results/h200x8/all_reduce.json); 8 x NVIDIA "
            "H200, driver 580.159, CUDA 13.0, NCCL 2.28.9, tutti 0.1.0, 2026-11-21T01:02:03Z; 0.52 "
            "us between empty kernels in a graph, 1.33 us one way between two GPUs.\n");
}

TEST(Headline, IsOfTheLargestGroup) {
  ResultFile file = some_files().front();
  Row four = file.record.rows.front();
  four.ranks = 4;
  four.time_us.p50 = 77;
  file.record.rows.insert(file.record.rows.begin(), four);
  EXPECT_THAT(render_headline(file), HasSubstr("8 ranks"));
  EXPECT_THAT(render_headline(file), Not(HasSubstr("77")));
}

TEST(Headline, GoesBetweenTheLinesThatNameItsFile) {
  const auto files = some_files();
  const auto readme = replace_headline(kReadme, files);
  ASSERT_TRUE(readme.is_ok());
  EXPECT_EQ(*readme, "# x\n" + kBegin + "\n" + render_headline(files.front()) + kEnd + "\nrest\n");
  EXPECT_EQ(*replace_headline(*readme, files), *readme);
  EXPECT_EQ(*replace_headline(kReadme, {}), "# x\n" + kBegin + "\n" + kEnd + "\nrest\n");
}

TEST(Headline, NeedsItsLinesOnceInOrder) {
  for (const std::string& readme :
       {std::string("text"), kBegin + "\n", kEnd, kEnd + kBegin + "\n",
        "<!-- headline from nowhere -->\n" + kEnd, kBegin + "\n" + kEnd + kBegin + "\n" + kEnd}) {
    EXPECT_FALSE(replace_headline(readme, some_files()).is_ok()) << readme;
  }
}

TEST(Docs, HoldTableProvenanceAndPlot) {
  const auto pages = render_docs(some_files(), "docs/benchmarks.md");
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0].path, "docs/benchmarks.md");
  EXPECT_THAT(pages[0].text, HasSubstr("8 x NVIDIA H200, driver 580.159, CUDA 13.0, NCCL 2.28.9"));
  EXPECT_THAT(pages[0].text, HasSubstr("| 1M | 128.0 | **12.50** | 25.00 | two_shot (2.00x) |"));
  EXPECT_THAT(pages[0].text, HasSubstr("(benchmarks/h200x8_all_reduce.svg)"));
  EXPECT_EQ(pages[1].path, "docs/benchmarks/h200x8_all_reduce.svg");
}

TEST(Plot, HasACurvePerAlgorithmAndIsAlwaysTheSame) {
  const Record record = some_record();
  std::vector<const Row*> rows;
  for (const Row& row : record.rows) rows.push_back(&row);
  const std::string svg = render_plot(rows, "title");
  std::size_t curves = 0;
  for (std::size_t at = svg.find("<polyline"); at != std::string::npos;
       at = svg.find("<polyline", at + 1)) {
    ++curves;
  }
  EXPECT_EQ(curves, 3u);
  EXPECT_EQ(svg, render_plot(rows, "title"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Plot, OfOnePointOrNoneIsStillOne) {
  const Row row = some_row("one_shot", 1024, 10), empty = some_row("one_shot", 0, 10);
  for (const auto& rows : std::vector<std::vector<const Row*>>{{&row}, {&empty}, {}}) {
    const std::string svg = render_plot(rows, "t");
    EXPECT_THAT(svg, HasSubstr("</svg>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

class ReportCommand : public testing::Test {
 protected:
  ReportCommand()
      : arguments_{.results = folder_ / "results",
                   .docs = folder_ / "docs/benchmarks.md",
                   .readme = folder_ / "README.md"} {
    folder_.write("results/h200x8/all_reduce.json", to_json_text(some_record()));
    std::string readme = kReadme;
    readme.replace(readme.find("results/"), 7, folder_ / "results");
    folder_.write("README.md", readme);
    readme_ = readme;
  }
  int run(bool check) {
    arguments_.check = check;
    return run_report(arguments_);
  }
  ScratchFolder folder_;
  ReportArguments arguments_;
  std::string readme_;
};

TEST_F(ReportCommand, WritesWhatCheckThenFindsCurrent) {
  EXPECT_EQ(run(true), kFailure);
  EXPECT_EQ(folder_.read("README.md"), readme_);  // checking writes nothing
  EXPECT_EQ(run(false), kSuccess);
  EXPECT_EQ(run(true), kSuccess);
  EXPECT_THAT(folder_.read("README.md"), HasSubstr("| 1M | 12.50 | two_shot |"));
}

TEST_F(ReportCommand, CheckFindsEveryStalePage) {
  ASSERT_EQ(run(false), kSuccess);
  for (const char* page :
       {"README.md", "docs/benchmarks.md", "docs/benchmarks/h200x8_all_reduce.svg"}) {
    const std::string current = folder_.read(page);
    std::string stale = current;
    stale.replace(stale.find("all_reduce"), 3, "old");
    folder_.write(page, stale);
    EXPECT_EQ(run(true), kFailure) << page;
    folder_.write(page, current);
  }
  EXPECT_EQ(run(true), kSuccess);
  Record newer = some_record();
  newer.rows[0].time_us.p50 = 3;
  folder_.write("results/h200x8/all_reduce.json", to_json_text(newer));
  EXPECT_EQ(run(true), kFailure);
}

TEST_F(ReportCommand, RefusesBrokenResultsAndFolders) {
  folder_.write("results/h200x8/broken.json", "{");
  EXPECT_EQ(run(false), kUsage);
  EXPECT_EQ(folder_.read("README.md"), readme_);
  arguments_.results = folder_ / "nowhere";
  EXPECT_EQ(run(false), kUsage);
}

}  // namespace
}  // namespace tutti::cli
