// Charts as SVG text: no library, no script, the same bytes for the same values. They are read on
// a page and on a slide: a white background, and colours that differ in brightness, too.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::cli {

// Colours of names that stand in several charts. Each means one thing everywhere.
namespace colour {
inline constexpr std::string_view kAuto = "#0050b5", kNccl = "#d55e00", kNcclSymmetric = "#1b8a5a",
                                  kTorch = "#9b2fae", kVllm = "#7a4b12", kGrey = "#b8bcc2";
}

struct ChartTitle {
  std::string title, conditions, remark = {};  // three lines
};

struct Point {
  double x = 0, y = 0;
};

struct Curve {
  std::string name;  // in the legend; empty: thin and grey, one of several that the legend sums up
  std::string_view colour = colour::kGrey;
  bool bold = false;
  std::vector<Point> points = {};
};

// Over message sizes, by their logarithm; values from 0 on.
struct LineChart {
  ChartTitle title;
  std::string x_title, y_title;
  std::vector<Curve> curves;
  std::optional<double> reference = {};  // a dashed line across
  bool values = false;                   // next to points of the bold curve
  std::string grey_text = {};            // what the grey curves are
};
std::string render_chart(const LineChart& chart);  // one without a point is a frame alone

struct Bar {
  std::string name;
  std::vector<double> parts;  // one for each of BarChart::parts
};

// Horizontal bars of parts that add up, or that are compared.
struct BarChart {
  ChartTitle title;
  std::string x_title;
  std::vector<std::string> parts;  // at most two
  std::vector<Bar> bars;
  bool stacked = true;                   // else one below the other, without those that are 0
  int decimals = 0;                      // of values
  std::optional<double> reference = {};  // a dashed line
};
std::string render_chart(const BarChart& chart);

std::string xml_text(std::string_view text);  // with &, <, > and " escaped

}  // namespace tutti::cli
