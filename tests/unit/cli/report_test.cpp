#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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

std::string headline_of(const std::vector<ResultFile>& files) {
  const auto text = render_headline(files, files.front().path);
  return text.is_ok() ? *text : text.status().to_string();
}

TEST(Headline, ShowsTheOtherLibrariesAndNamesEveryFile) {
  EXPECT_EQ(headline_of({some_files().front(), some_peer()}),
            "all_reduce, 8 ranks (processes), bf16 sum, backend cuda, symmetric buffers, graph of "
            "10 operations, cache hot. NVLink multicast: off for all libraries; with it: not "
            "measured.\n\n"
            "| bytes | tutti us | algorithm | NCCL us | torch symm_mem us | speed-up over the best "
            "other |\n"
            "|---:|---:|---|---:|---:|---:|\n"
            "| 1K | 4.00 | one_shot | 16.00 | 2.00 | 0.50x |\n"
            "| 1M | 12.50 | two_shot | 25.00 | n/a | 2.00x |\n"
            "\nFrom [results/h200x8/all_reduce.json](results/h200x8/all_reduce.json): 8 x NVIDIA "
            "H200, driver 580.159, CUDA 13.0, NCCL 2.28.9, tutti 0.1.0, 2026-11-21T01:02:03Z; 0.52 "
            "us between empty kernels in a graph, 1.33 us one way between two GPUs.\n"
            "And [results/h200x8/torch.json](results/h200x8/torch.json): 8 x NVIDIA H200, driver "
            "580.159, CUDA 13.0, NCCL 2.28.9, torch 2.11.0, 2026-11-21T01:02:03Z; 0.52 us between "
            "empty kernels in a graph, 1.33 us one way between two GPUs.\n"
            "\nNCCL is the faster of `nccl` and `torch_nccl`, NCCL symmetric the faster of "
            "`nccl_window` and `nccl_copy_engine`.\n");
}

TEST(Headline, IsOfTheLargestGroup) {
  ResultFile file = some_files().front();
  Row four = file.record.rows.front();
  four.ranks = 4;
  four.time_us.p50 = 77;
  file.record.rows.insert(file.record.rows.begin(), four);
  EXPECT_THAT(headline_of({file}), HasSubstr("8 ranks"));
  EXPECT_THAT(headline_of({file}), Not(HasSubstr("77")));
}

TEST(Headline, HasSixSizesAtMost) {
  ResultFile file = some_files().front();
  file.record.rows.clear();
  for (std::size_t bytes = 512; bytes <= std::size_t{1} << 30; bytes *= 2) {
    file.record.rows.push_back(some_row("one_shot", bytes, 10, true));
    file.record.rows.push_back(some_row("nccl", bytes, 20));
  }
  const std::string text = headline_of({file});
  for (const char* size : {"1K", "16K", "128K", "1M", "16M", "256M"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n| ") + size + " | 10.00 |"));
  }
  EXPECT_THAT(text, Not(HasSubstr("| 512 |")));
  EXPECT_THAT(text, Not(HasSubstr("| 1G |")));
}

TEST(Headline, MissesNoResultInSilence) {
  ResultFile file = some_files().front();
  for (Row& row : file.record.rows) row.chosen = false;
  EXPECT_THAT(headline_of({file}), HasSubstr("has no choice of auto next to another library"));
  file.record.rows.clear();
  EXPECT_THAT(headline_of({file}), HasSubstr("has no results of a collective"));
}

TEST(Headline, StandsBetweenTheLinesThatNameItsFile) {
  const auto headline = find_headline(kReadme);
  ASSERT_TRUE(headline.is_ok() && headline->has_value());
  EXPECT_EQ((*headline)->path, "results/h200x8/all_reduce.json");
  EXPECT_EQ(kReadme.substr((*headline)->begin, (*headline)->end - (*headline)->begin), "old\n");
}

TEST(Headline, NeedsItsLinesOnceInOrderOrNotAtAll) {
  EXPECT_FALSE(find_headline("text")->has_value());
  for (const std::string& readme :
       {kBegin + "\n", kEnd, kEnd + kBegin + "\n", "<!-- headline from nowhere -->\n" + kEnd,
        kBegin + "\n" + kEnd + kBegin + "\n" + kEnd}) {
    EXPECT_FALSE(find_headline(readme).is_ok()) << readme;
  }
}

TEST(Docs, HoldTableProvenanceAndPlots) {
  const auto pages = render_docs(some_files(), "docs/benchmarks.md");
  ASSERT_EQ(pages.size(), 2u);  // of one size from 1M on: no bandwidths
  EXPECT_EQ(pages[0].path, "docs/benchmarks.md");
  EXPECT_THAT(pages[0].text, HasSubstr("8 x NVIDIA H200, driver 580.159, CUDA 13.0, NCCL 2.28.9"));
  EXPECT_THAT(pages[0].text,
              HasSubstr("| 1M | 2.00x | nccl | 146.8 | 128.0 | **12.50** | 25.00 |"));
  EXPECT_THAT(pages[0].text, HasSubstr("(benchmarks/h200x8_all_reduce_8_speedup.svg)"));
  EXPECT_THAT(pages[0].text, HasSubstr("; NVLink multicast: off for all libraries; with it: not "
                                       "measured)\n"));
  EXPECT_EQ(pages[1].path, "docs/benchmarks/h200x8_all_reduce_8_speedup.svg");
}

TEST(Docs, SayWhoUsedMulticast) {
  std::vector<ResultFile> files = {some_files().front(), some_peer()};
  files[0].record.environment.multicast = true;
  EXPECT_THAT(page_of(files), HasSubstr("; NVLink multicast: on for tutti, off for torch)"));
  files[1].record.environment.multicast = true;
  EXPECT_THAT(page_of(files), HasSubstr("; NVLink multicast: on)"));
  for (ResultFile& file : files) {
    for (Row& row : file.record.rows) row.backend = "host";
  }
  EXPECT_THAT(page_of(files), Not(HasSubstr("multicast")));
}

TEST(Peers, StandInTheTableOfWhatWasMeasuredAlike) {
  const std::vector<ResultFile> files = {some_files().front(), some_peer()};
  const auto pages = render_docs(files, "docs/benchmarks.md");
  const std::string& text = pages[0].text;
  EXPECT_THAT(text,
              HasSubstr("| bytes | speed-up | best other | busbw GB/s | one_shot | two_shot | "
                        "nccl | torch_one_shot | torch_nccl (in place) |\n"
                        "|---:|---:|---|---:|---:|---:|---:|---:|---:|\n"));
  // Chosen in its own file, and not bold here.
  EXPECT_THAT(text, HasSubstr("| 1K | 0.50x | torch_one_shot | 0.4 | **4.00** | 6.00 | 16.00 | "
                              "2.00 | 17.00 |\n"));
  EXPECT_THAT(text, HasSubstr("| 4K | n/a | torch_one_shot | n/a | n/a | n/a | n/a | 9.00 | n/a "
                              "|\n"));
  EXPECT_THAT(text, HasSubstr("\nFrom `results/h200x8/torch.json`: torch_one_shot, torch_nccl (in "
                              "place).\n"));
  EXPECT_THAT(text,
              HasSubstr("\nNext to it: 8 x NVIDIA H200, driver 580.159, CUDA 13.0, NCCL 2.28.9, "
                        "torch 2.11.0, 2026-11-21T01:02:03Z"));
  EXPECT_THAT(text, HasSubstr("Command: `torchrun peer.py`"));
  EXPECT_THAT(text, Not(HasSubstr("## torch on")));
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_THAT(pages[1].text, HasSubstr(">torch symm_mem</text>"));
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
    EXPECT_THAT(page, HasSubstr("GB/s | one_shot | two_shot | nccl |\n"));
    EXPECT_THAT(page, HasSubstr("GB/s | torch_one_shot | torch_nccl (in place) |\n"));
    EXPECT_THAT(page, Not(HasSubstr("Next to it")));
  }
  peer.machine = "h200x4";
  EXPECT_THAT(page_of({some_files().front(), peer}), HasSubstr("## torch on h200x4"));
  EXPECT_THAT(joined, Not(HasSubstr("## torch on")));
}

TEST(Peers, KeepInTheirSectionWhatDoesNotMatch) {
  ResultFile peer = some_peer();
  peer.record.rows[2].ranks = 4;
  const std::string text = page_of({some_files().front(), peer});
  EXPECT_THAT(text, HasSubstr("| torch_one_shot | torch_nccl (in place) |\n"));
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

TEST(Peers, StandBesideTheFileOfTheirBuffers) {
  ResultFile registered = some_files().front();
  registered.path = "results/h200x8/all_reduce_registered.json";
  registered.what = "all_reduce_registered";
  ResultFile vllm = some_peer();
  vllm.path = "results/h200x8/vllm.json";
  vllm.what = "vllm";
  vllm.record.environment.vllm = "0.33.0";
  for (Row& row : registered.record.rows) row.buffers = "registered";
  for (Row& row : vllm.record.rows) {
    row.buffers = "registered";
    row.algorithm = "vllm_custom_allreduce";
    row.in_place = false;
  }
  const std::string text = page_of({some_files().front(), registered, vllm});
  const std::size_t section = text.find("## all_reduce_registered on h200x8");
  ASSERT_NE(section, std::string::npos);
  EXPECT_THAT(text.substr(0, section), Not(HasSubstr("vllm_custom_allreduce")));
  EXPECT_THAT(text.substr(section), HasSubstr("torch 2.11.0, vLLM 0.33.0, tutti"));
  EXPECT_THAT(text.substr(section), HasSubstr("| vllm_custom_allreduce |"));
  EXPECT_THAT(text, Not(HasSubstr("## vllm on")));
}

TEST(Peers, AreFoundWhereverTheirFileStands) {
  const std::string after = page_of({some_files().front(), some_peer()});
  EXPECT_EQ(page_of({some_peer(), some_files().front()}), after);
}

// Each element is closed by its own end, in order; and the text asks for nothing from elsewhere.
void expect_well_formed(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = page.substr(at + 1, end - at - 1);
    if (tag.starts_with("!DOCTYPE") || tag.ends_with("/")) continue;
    if (!tag.starts_with("/")) {
      open.push_back(tag.substr(0, tag.find(' ')));
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    EXPECT_EQ("/" + open.back(), tag);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(Html, IsOnePageWithEverySection) {
  std::vector<ResultFile> files = {some_files().front(), some_peer(), some_files().front()};
  files[2].path = "results/h200x4/all_reduce.json";
  files[2].machine = "h200x4";
  files[2].record.environment.command = "tutti bench all_reduce --bytes \"1K\" <&1";
  const std::string page = render_html(files);
  expect_well_formed(page);
  for (const char* text :
       {"<h2>all_reduce on h200x8</h2>", "<h2>all_reduce on h200x4</h2>",
        "href=\"#h200x4-all_reduce\"", "<svg ", "<td class=\"chosen\">12.50</td>",
        "NVLink multicast: off for all libraries",
        "8 x NVIDIA H200, driver 580.159, CUDA 13.0, NCCL 2.28.9", "<pre>torchrun peer.py</pre>",
        "<pre>tutti bench all_reduce --bytes &quot;1K&quot; &lt;&amp;1</pre>"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
  for (const char* request : {"<script", "<link", "src=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(request)));
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
  EXPECT_TRUE(folder_.read("README.md").starts_with("# x\n<!-- headline from "));
  EXPECT_TRUE(folder_.read("README.md").ends_with("\n" + kEnd + "\nrest\n"));
}

TEST_F(ReportCommand, NeedsNoReadmeNorAHeadlineInIt) {
  folder_.write("README.md", "no headline\n");
  EXPECT_EQ(run(false), kSuccess);
  EXPECT_EQ(folder_.read("README.md"), "no headline\n");
  arguments_.readme = folder_ / "none.md";
  EXPECT_EQ(run(true), kUsage);  // a file that was named has to be there
  arguments_.readme = "";
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder_ / "docs");
  EXPECT_EQ(run(true), kSuccess);
  std::filesystem::current_path(here);
}

TEST_F(ReportCommand, LeavesAHeadlineWhoseResultsAreNotThere) {
  folder_.write("README.md", kReadme);  // of results/ in the working directory
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(false), kSuccess);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("README.md stays as it is: its headline is from results/h200x8/"));
  EXPECT_EQ(folder_.read("README.md"), kReadme);
  EXPECT_EQ(run(true), kFailure);  // what it shows cannot be checked
}

TEST_F(ReportCommand, WritesOnePageAndNothingElse) {
  arguments_.html = folder_ / "page.html";
  EXPECT_EQ(run(true), kFailure);
  EXPECT_EQ(run(false), kSuccess);
  EXPECT_EQ(run(true), kSuccess);
  EXPECT_THAT(folder_.read("page.html"), HasSubstr("<h2>all_reduce on h200x8</h2>"));
  EXPECT_EQ(folder_.read("README.md"), readme_);
  EXPECT_EQ(folder_.read("docs/benchmarks.md"), "");
}

TEST_F(ReportCommand, CheckFindsEveryStalePage) {
  ASSERT_EQ(run(false), kSuccess);
  for (const char* page :
       {"README.md", "docs/benchmarks.md", "docs/benchmarks/h200x8_all_reduce_8_speedup.svg"}) {
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

TEST_F(ReportCommand, LeavesOutFilesOfOtherSchemasAndOfCampaigns) {
  folder_.write("results/published/ring.json", R"({"schema": "tutti.published/1"})");
  folder_.write(
      "results/namespaces/cell.json",
      R"({"schema": "tutti.bench/1", "environment": {"network": {"interface_bytes": []}}})");
  folder_.write("results/host/all_reduce_2.json",
                R"({"schema": "tutti.bench/1", "rows": [{"launches_us": [1.0]}]})");
  EXPECT_EQ(run(false), kSuccess);
  EXPECT_EQ(run(true), kSuccess);
}

TEST_F(ReportCommand, RefusesBrokenResultsAndFolders) {
  folder_.write("results/h200x8/broken.json", "{");
  EXPECT_EQ(run(false), kUsage);
  EXPECT_EQ(folder_.read("README.md"), readme_);
  for (const char* empty : {"nowhere", "results/h200x8"}) {
    arguments_.results = folder_ / empty;
    EXPECT_EQ(run(false), kUsage);
  }
  EXPECT_EQ(folder_.read("docs/benchmarks.md"), "");
}

}  // namespace
}  // namespace tutti::cli
