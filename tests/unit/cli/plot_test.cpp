#include "report/plot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "report/chart.hpp"
#include "some_record.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

std::vector<Plot> plots(const std::vector<Row>& rows) {
  Record record = some_record();
  record.rows = rows;
  const std::vector<ResultFile> files = {{"results/h200x8/x.json", "h200x8", "x", record}};
  const Section section{.file = files.data(), .rows = rows};
  const std::vector<Group> groups = groups_of(section.rows);
  return plots_of(section, groups.front());
}

// Of each algorithm two sizes from 1M on.
std::vector<Row> rows_of_all(const std::vector<std::string>& algorithms) {
  std::vector<Row> rows;
  double time = 10;
  for (const std::string& name : algorithms) {
    for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{1} << 21}) {
      rows.push_back(some_row(name, bytes, time, name == algorithms.front()));
    }
    time *= 2;
  }
  return rows;
}

TEST(Plot, NamesFourCurvesEachOfItsColourAndLeavesTheOthersGrey) {
  const auto drawn =
      plots(rows_of_all({"ring", "nccl", "nccl_window", "torch_one_shot", "a", "b"}));
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_EQ(drawn[0].name, "h200x8_x_8_speedup.svg");
  EXPECT_EQ(drawn[1].name, "h200x8_x_8_bandwidth.svg");
  for (const Plot& plot : drawn) {
    EXPECT_EQ(count(plot.svg, "<polyline class=\"auto\""), 1u);
    EXPECT_EQ(count(plot.svg, "<polyline class=\"named\""), 3u);
    EXPECT_EQ(count(plot.svg, "<polyline class=\"other\""), 3u);  // ring by itself, too
    std::set<std::string> colours;
    for (std::size_t at = plot.svg.find("fill=\"none\" stroke="); at != std::string::npos;
         at = plot.svg.find("fill=\"none\" stroke=", at + 1)) {
      colours.insert(plot.svg.substr(at, 29));
    }
    EXPECT_EQ(colours.size(), 5u);
    for (const char* name :
         {"tutti, auto", "NCCL", "NCCL symmetric", "torch symm_mem", "other algorithms of tutti"}) {
      EXPECT_THAT(plot.svg, HasSubstr(std::string(">") + name + "</text>"));
    }
    EXPECT_THAT(plot.svg, HasSubstr("NVLink multicast: off for all libraries"));
  }
  EXPECT_THAT(drawn[0].svg,
              HasSubstr("all_reduce on 8 x NVIDIA H200: speed-up over the best other"));
  EXPECT_EQ(count(drawn[0].svg, ">2.00</text>"), 2u);      // auto's at both sizes
  EXPECT_EQ(count(drawn[0].svg, "stroke-dasharray"), 1u);  // at 1
}

TEST(Plot, IsAlwaysTheSame) {
  const auto rows = rows_of_all({"ring", "nccl"});
  EXPECT_EQ(plots(rows)[0].svg, plots(rows)[0].svg);
}

TEST(Plot, HasNoSpeedUpWithoutAnotherLibrary) {
  const auto drawn = plots(rows_of_all({"ring", "push"}));
  ASSERT_EQ(drawn.size(), 1u);
  EXPECT_EQ(drawn[0].name, "h200x8_x_8_bandwidth.svg");
}

TEST(Plot, OfFewerThanTwoSizesIsNone) {
  EXPECT_TRUE(plots({some_row("one_shot", 1024, 10, true), some_row("nccl", 1024, 20)}).empty());
  EXPECT_TRUE(plots({some_row("one_shot", 0, 10, true), some_row("nccl", 0, 20),
                     some_row("one_shot", 8, 10, true), some_row("nccl", 8, 20)})
                  .empty());
}

TEST(Plot, StacksWhatAGatherAddsOnTheMatmul) {
  const auto drawn =
      plots({some_overlap_row(Phase::kMatmul, 1500), some_overlap_row(Phase::kAllGather, 300),
             some_overlap_row(Phase::kOverlap, 1700)});
  ASSERT_EQ(drawn.size(), 1u);
  EXPECT_EQ(drawn[0].name, "h200x8_x_8_fp16_8192x8192x8192.svg");
  EXPECT_THAT(drawn[0].svg, HasSubstr(">tutti, copy_engine</text>"));
  EXPECT_THAT(drawn[0].svg, HasSubstr("<title>exposed communication: 200.0</title>"));
  EXPECT_THAT(drawn[0].svg, HasSubstr(">1500 + 200</text>"));
}

TEST(Plot, DrawsEachNumberOfRanksOnceAndGraphsFirst) {
  std::vector<Row> rows;
  for (const int ranks : {2, 4}) {
    for (const char* mode : {"eager", "graph"}) {
      rows.push_back(some_row("ring", 1024, 10));
      rows.back().ranks = ranks;
      rows.back().mode = mode;
    }
  }
  const std::vector<Group> groups = groups_of(rows);
  const auto drawn = drawn_groups(groups);
  ASSERT_EQ(drawn.size(), 2u);
  for (const Group* group : drawn) EXPECT_EQ(group->first().mode, "graph");
  EXPECT_NE(drawn[0]->first().ranks, drawn[1]->first().ranks);
}

TEST(Chart, OfOnePointOrNoneIsStillOne) {
  const Curve one{.name = "<a>", .points = {{1024, 0}}};
  for (const auto& curves : std::vector<std::vector<Curve>>{{one}, {}}) {
    const std::string svg =
        render_chart({.title = {"t", "c"}, .x_title = "x", .y_title = "y", .curves = curves});
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_THAT(svg, Not(HasSubstr("<a>")));
  }
}

}  // namespace
}  // namespace tutti::cli
