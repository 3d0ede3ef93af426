#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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

Row in_place(Row row) {
  row.in_place = true;
  return row;
}

// A peer's rows beside those of some_files(), of 8 ranks.
ResultFile some_peer() {
  Record record = some_record();
  record.environment.torch = "2.11.0";
  record.environment.command = "torchrun peer.py";
  record.rows = {some_row("torch_one_shot", 1024, 2.0, true),
                 in_place(some_row("torch_nccl", 1024, 17.0)),
                 some_row("torch_one_shot", 4096, 9.0)};
  return {.path = "results/h200x8/torch.json",
          .machine = "h200x8",
          .what = "torch",
          .record = std::move(record)};
}

std::string page_of(const std::vector<ResultFile>& files) {
  return render_docs(files, "docs/benchmarks.md").front().text;
}

TEST(Peers, StandInTheTableOfWhatWasMeasuredAlike) {
  const std::vector<ResultFile> files = {some_files().front(), some_peer()};
  const auto pages = render_docs(files, "docs/benchmarks.md");
  const std::string& text = pages[0].text;
  EXPECT_THAT(text, HasSubstr("| bytes | one_shot | two_shot | nccl | torch_one_shot | torch_nccl "
                              "(in place) | best (speed-up over NCCL) | busbw GB/s |\n"
                              "|---:|---:|---:|---:|---:|---:|---|---:|\n"));
  // Faster than tutti and chosen in its own file: neither bold nor the best here.
  EXPECT_THAT(text,
              HasSubstr("| 1K | **4.00** | 6.00 | 16.00 | 2.00 | 17.00 | one_shot (4.00x) |"));
  EXPECT_THAT(text, HasSubstr("| 4K | n/a | n/a | n/a | 9.00 | n/a | n/a | n/a |\n"));
  EXPECT_THAT(text,
              HasSubstr("\nFrom `results/h200x8/torch.json`: torch_one_shot, torch_nccl (in "
                        "place). The best is that of `results/h200x8/all_reduce.json` alone.\n"));
  EXPECT_THAT(text,
              HasSubstr("\nBeside it: 8 x NVIDIA H200, driver 580.159, CUDA 13.0, NCCL 2.28.9, "
                        "torch 2.11.0, 2026-11-21T01:02:03Z"));
  EXPECT_THAT(text, HasSubstr("Command: `torchrun peer.py`"));
  EXPECT_THAT(text, Not(HasSubstr("## torch on")));
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_THAT(pages[1].text, HasSubstr(">torch_one_shot</text>"));
  EXPECT_THAT(pages[1].text, HasSubstr(">torch_nccl (in place)</text>"));
}

TEST(Peers, StandAloneWhereNothingWasMeasuredAlike) {
  ResultFile peer = some_peer();
  const std::string joined = page_of({some_files().front(), peer});
  const auto differ = [&](auto change) {
    ResultFile other = peer;
    for (Row& row : other.record.rows) change(row);
    return page_of({some_files().front(), other});
  };
  const std::vector<std::string> pages = {
      differ([](Row& row) { row.collective = "all_gather"; }),
      differ([](Row& row) { row.backend = "host"; }),
      differ([](Row& row) { row.ranks = 4; }),
      differ([](Row& row) { row.dtype = "fp32"; }),
      differ([](Row& row) { row.op = "max"; }),
      differ([](Row& row) { row.buffers = "plain"; }),
      differ([](Row& row) { row.mode = "eager"; }),
      differ([](Row& row) { row.graph_operations = 20; }),
      differ([](Row& row) { row.chained = true; }),
      differ([](Row& row) { row.cache = "cold"; }),
      differ([](Row& row) { row.launch = "threads"; }),
      differ([](Row& row) { row.hidden = 64; }),
  };
  for (const std::string& page : pages) {
    EXPECT_THAT(page, HasSubstr("## torch on h200x8"));
    EXPECT_THAT(page, HasSubstr("| bytes | one_shot | two_shot | nccl | best"));
    EXPECT_THAT(page, HasSubstr("| bytes | torch_one_shot | torch_nccl (in place) | best"));
    EXPECT_THAT(page, Not(HasSubstr("Beside it")));
  }
  peer.machine = "h200x4";
  EXPECT_THAT(page_of({some_files().front(), peer}), HasSubstr("## torch on h200x4"));
  EXPECT_THAT(joined, Not(HasSubstr("## torch on")));
}

TEST(Peers, KeepInTheirSectionWhatDoesNotMatch) {
  ResultFile peer = some_peer();
  peer.record.rows[2].ranks = 4;
  const std::string text = page_of({some_files().front(), peer});
  EXPECT_THAT(text, HasSubstr("| torch_one_shot | torch_nccl (in place) | best"));
  const std::size_t section = text.find("## torch on h200x8");
  ASSERT_NE(section, std::string::npos);
  EXPECT_THAT(text.substr(section), HasSubstr("4 ranks"));
  EXPECT_THAT(text.substr(section), Not(HasSubstr("8 ranks")));
}

TEST(Peers, NeverTakeAColumnThatIsThere) {
  ResultFile again = some_files().front();
  again.path = "results/h200x8/all_reduce_again.json";
  again.what = "all_reduce_again";
  for (Row& row : again.record.rows) row.time_us.p50 = 77;
  ResultFile second = some_peer();
  second.path = "results/h200x8/torch_again.json";
  second.what = "torch_again";
  for (Row& row : second.record.rows) row.time_us.p50 = 88;
  const std::string text = page_of({some_files().front(), again, some_peer(), second});
  const std::size_t other = text.find("## all_reduce_again on h200x8");
  const std::size_t third = text.find("## torch_again on h200x8");
  ASSERT_NE(other, std::string::npos);
  ASSERT_NE(third, std::string::npos);
  EXPECT_THAT(text.substr(0, other), Not(HasSubstr("77.00")));
  EXPECT_THAT(text.substr(0, other), Not(HasSubstr("88.00")));
  EXPECT_THAT(text.substr(other, third - other), HasSubstr("77.00"));
  EXPECT_THAT(text.substr(third), HasSubstr("88.00"));
}

TEST(Peers, AreFoundWhereverTheirFileStands) {
  const std::string after = page_of({some_files().front(), some_peer()});
  EXPECT_EQ(page_of({some_peer(), some_files().front()}), after);
}

TEST(Plot, LeavesRoomForLongNamesAndAColourForEach) {
  std::vector<Row> many;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}) {
    many.push_back(some_row(name, 1024, 4));
  }
  std::vector<const Row*> rows;
  for (const Row& row : many) rows.push_back(&row);
  const std::string narrow = render_plot(rows, "t");
  EXPECT_THAT(narrow, HasSubstr("viewBox=\"0 0 720 420\""));
  std::set<std::string> colours;
  for (std::size_t at = narrow.find("fill=\"none\" stroke="); at != std::string::npos;
       at = narrow.find("fill=\"none\" stroke=", at + 1)) {
    colours.insert(narrow.substr(at, 29));
  }
  EXPECT_EQ(colours.size(), many.size());
  const Row wide = in_place(some_row("torch_two_shot", 1024, 4));
  rows.push_back(&wide);
  EXPECT_THAT(render_plot(rows, "t"), HasSubstr("viewBox=\"0 0 783 420\""));
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
