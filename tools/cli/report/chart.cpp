#include "report/chart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/printable.hpp"
#include "base/units.hpp"

namespace tutti::cli {
namespace {

constexpr double kWidth = 760, kHeight = 446, kLeft = 64, kRight = 24, kTop = 112, kBottom = 54;
constexpr double kCharacterWidth = 6.8;  // of 12 pixels, on average and not less
constexpr double kBarHeight = 26, kBarPitch = 40, kBarLeft = 150;
constexpr std::array<std::string_view, 2> kPartColours = {"#7f8ea3", "#d55e00"};

std::string open_svg(double height, const ChartTitle& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" role=\"img\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#222222\">\n"
      "<title>{2}</title>\n"
      "<rect class=\"paper\" width=\"{0:g}\" height=\"{1:g}\" fill=\"#ffffff\"/>\n"
      "<text x=\"20\" y=\"28\" font-size=\"17\" font-weight=\"bold\">{2}</text>\n"
      "<text class=\"faint\" x=\"20\" y=\"47\" fill=\"#555555\">{3}</text>\n"
      "<text class=\"faint\" x=\"20\" y=\"63\" fill=\"#555555\">{4}</text>\n",
      kWidth, height, xml_text(title.title), xml_text(title.conditions), xml_text(title.remark));
}

std::string text_at(Point at, std::string_view anchor, std::string_view text,
                    std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}{}>{}</text>\n", at.x,
                     at.y, anchor, more.empty() ? "" : " ", more, xml_text(text));
}

std::string line(Point from, Point to, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", from.x,
                     from.y, to.x, to.y, style);
}

constexpr std::string_view kGridStyle = "class=\"grid\" stroke=\"#e6e8eb\"";
constexpr std::string_view kAxisStyle = "class=\"axis\" stroke=\"#8a8f98\"";

// 1, 2 or 5 times a power of ten: at most `most` steps from 0 to `value`.
double step_for(double value, int most) {
  const double least = value / most;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

// From 0 to `most`, between two places.
struct LinearAxis {
  double step = 1, most = 1, from = 0, to = 0;
  double place(double value) const { return from + (to - from) * value / most; }
  std::string text(double value) const {
    return fmt::format("{:.{}f}", value, step < 1 ? static_cast<int>(-std::log10(step) + 0.99) : 0);
  }
};

// With room for a little more than `value`.
LinearAxis axis_up_to(double value, int steps, double from, double to) {
  const double step = value > 0 ? step_for(value * 1.02, steps) : 1;
  return {step, step * std::max(1.0, std::ceil(value * 1.02 / step)), from, to};
}

struct SizeAxis {
  double least = 1, most = 1;
  double place(double bytes) const {
    const double from = kLeft + 20, to = kWidth - kRight - 16;
    if (most <= least) return (from + to) / 2;
    return from + (to - from) * std::log2(bytes / least) / std::log2(most / least);
  }
};

struct Axes {
  SizeAxis x;
  LinearAxis y;
};

Axes axes_for(const LineChart& chart) {
  SizeAxis x{.least = HUGE_VAL, .most = 0};
  double largest = chart.reference.value_or(0);
  for (const Curve& curve : chart.curves) {
    for (const Point& point : curve.points) {
      x.least = std::min(x.least, point.x);
      x.most = std::max(x.most, point.x);
      largest = std::max(largest, point.y * (chart.values ? 1.08 : 1));
    }
  }
  return {x, axis_up_to(largest, 7, kHeight - kBottom, kTop)};
}

// Powers of two, or every other one if there are many.
std::vector<double> ticks_of(const SizeAxis& x) {
  std::vector<double> ticks;
  const double factor = std::log2(x.most / x.least) > 11 ? 4 : 2;
  const double most = std::min(x.most, static_cast<double>(kMostBytes));
  for (double bytes = std::exp2(std::ceil(std::log2(x.least))); bytes <= most; bytes *= factor) {
    ticks.push_back(bytes);
  }
  return ticks;
}

std::string frame_of(const LineChart& chart, const Axes& axes) {
  std::string svg;
  for (const double bytes : ticks_of(axes.x)) {
    const double at = axes.x.place(bytes);
    svg += line({at, kTop}, {at, kHeight - kBottom}, kGridStyle);
    svg += text_at({at, kHeight - kBottom + 17}, "middle",
                   format_bytes(static_cast<std::size_t>(bytes)));
  }
  for (double value = 0; value <= axes.y.most * 1.001; value += axes.y.step) {
    const double y = axes.y.place(value);
    svg += line({kLeft, y}, {kWidth - kRight, y}, value > 0 ? kGridStyle : kAxisStyle);
    svg += text_at({kLeft - 8, y + 4}, "end", axes.y.text(value));
  }
  svg += line({kLeft, kTop}, {kLeft, kHeight - kBottom}, kAxisStyle);
  svg += text_at({(kLeft + kWidth - kRight) / 2, kHeight - 14}, "middle", chart.x_title);
  const double middle = (kTop + kHeight - kBottom) / 2;
  return svg + text_at({18, middle}, "middle", chart.y_title,
                       fmt::format("transform=\"rotate(-90 18 {:.1f})\"", middle));
}

double thickness_of(const Curve& curve) { return curve.bold ? 3.6 : curve.name.empty() ? 1 : 1.8; }

// As pages may restyle it.
std::string_view class_of(const Curve& curve) {
  return curve.bold ? "auto" : curve.name.empty() ? "other" : "named";
}

std::string curve_of(const Curve& curve, const Axes& axes) {
  const std::string_view kind = class_of(curve);
  std::string points, dots;
  for (const Point& point : curve.points) {
    const double x = axes.x.place(point.x), y = axes.y.place(point.y);
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x, y);
    if (curve.name.empty()) continue;
    dots += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n",
                        kind, x, y, curve.bold ? 3.6 : 2.4, curve.colour);
  }
  return fmt::format(
             "<polyline class=\"{}\" points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
             "stroke-linejoin=\"round\"/>\n",
             kind, points, curve.colour, thickness_of(curve)) +
         dots;
}

// Where the text of a point stands: above it, and aside where the curve is steep.
Point place_of_value(const std::vector<Point>& points, std::size_t k, const Axes& axes) {
  constexpr double kMostAside = 16;
  const double before = axes.y.place(points[k == 0 ? k : k - 1].y);
  const double after = axes.y.place(points[k + 1 == points.size() ? k : k + 1].y);
  const double aside = std::clamp((after - before) / 3, -kMostAside, kMostAside);
  return {axes.x.place(points[k].x) + aside, axes.y.place(points[k].y) - 9};
}

// Of the bold curve, at the ticks.
std::string values_of(const LineChart& chart, const Axes& axes) {
  std::string svg;
  const std::vector<double> ticks = ticks_of(axes.x);
  for (const Curve& curve : chart.curves) {
    if (!curve.bold) continue;
    for (std::size_t k = 0; k < curve.points.size(); ++k) {
      const Point& point = curve.points[k];
      if (std::find(ticks.begin(), ticks.end(), point.x) == ticks.end()) continue;
      svg +=
          text_at(place_of_value(curve.points, k, axes), "middle", fmt::format("{:.2f}", point.y),
                  fmt::format("class=\"auto\" font-weight=\"bold\" fill=\"{}\"", curve.colour));
    }
  }
  return svg;
}

struct LegendEntry {
  std::string_view name, colour, kind;
  double thickness;
};

// Next to each other in a line above the plot.
std::string legend_of(const std::vector<LegendEntry>& entries) {
  constexpr double kY = 90, kMark = 22;
  std::string svg;
  double x = 20;
  for (const LegendEntry& entry : entries) {
    svg += line({x, kY - 4}, {x + kMark, kY - 4},
                fmt::format("class=\"{}\" stroke=\"{}\" stroke-width=\"{}\"", entry.kind,
                            entry.colour, entry.thickness));
    svg += text_at({x + kMark + 6, kY}, "start", entry.name,
                   entry.kind == "auto" ? "font-weight=\"bold\"" : "");
    x += kMark + 6 + kCharacterWidth * static_cast<double>(entry.name.size()) + 18;
  }
  return svg;
}

// The grey curves have one entry for all of them.
std::string legend_of(const LineChart& chart) {
  std::vector<LegendEntry> entries, grey;
  for (const Curve& curve : chart.curves) {
    const LegendEntry entry{curve.name, curve.colour, class_of(curve), thickness_of(curve)};
    (curve.name.empty() ? grey : entries).push_back(entry);
  }
  if (!grey.empty()) {
    grey.front().name = chart.grey_text;
    entries.push_back(grey.front());
  }
  return legend_of(entries);
}

std::string part_of_bar(const BarChart& chart, std::size_t part, double value, Point at,
                        Point size) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\">"
      "<title>{}: {:.{}f}</title></rect>\n",
      at.x, at.y, size.x, size.y, kPartColours[part % kPartColours.size()],
      xml_text(chart.parts[part]), value, std::max(chart.decimals, 1));
}

std::string stacked_bar(const BarChart& chart, const Bar& bar, const LinearAxis& x, double y) {
  std::string svg, text;
  double sum = 0;
  for (std::size_t k = 0; k < bar.parts.size(); ++k) {
    const double width = x.place(bar.parts[k]) - x.place(0);
    svg += part_of_bar(chart, k, bar.parts[k], {x.place(sum), y}, {width, kBarHeight});
    sum += bar.parts[k];
    text += fmt::format("{}{:.{}f}", text.empty() ? "" : " + ", bar.parts[k], chart.decimals);
  }
  return svg + text_at({x.place(sum) + 8, y + 17}, "start", text);
}

std::string compared_bars(const BarChart& chart, const Bar& bar, const LinearAxis& x, double y) {
  const auto parts = static_cast<double>(std::max<std::size_t>(chart.parts.size(), 1));
  const double height = (kBarHeight + 4) / parts;
  std::string svg;
  for (std::size_t k = 0; k < bar.parts.size(); ++k) {
    const double value = bar.parts[k], width = x.place(value) - x.place(0);
    if (value <= 0) continue;
    const double top = y - 2 + height * static_cast<double>(k);
    svg += part_of_bar(chart, k, value, {x.place(0), top}, {width, height - 1});
    svg += text_at({x.place(value) + 8, top + height - 4}, "start",
                   fmt::format("{:.{}f}", value, chart.decimals));
  }
  return svg;
}

std::string bar_of(const BarChart& chart, const Bar& bar, const LinearAxis& x, double y) {
  return text_at({kBarLeft - 10, y + 17}, "end", bar.name) +
         (chart.stacked ? stacked_bar(chart, bar, x, y) : compared_bars(chart, bar, x, y));
}

// Of the longest bar.
double length_of_bars(const BarChart& chart) {
  double longest = chart.reference.value_or(0);
  for (const Bar& bar : chart.bars) {
    double sum = 0;
    for (const double part : bar.parts) sum = chart.stacked ? sum + part : std::max(sum, part);
    longest = std::max(longest, sum);
  }
  return longest;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string render_chart(const LineChart& chart) {
  std::string svg = open_svg(kHeight, chart.title);
  const Axes axes = axes_for(chart);
  if (axes.x.most <= 0) return svg + "</svg>\n";
  svg += frame_of(chart, axes) + legend_of(chart);
  if (chart.reference) {
    const double y = axes.y.place(*chart.reference);
    svg += line({kLeft, y}, {kWidth - kRight, y},
                "class=\"axis\" stroke=\"#222222\" stroke-dasharray=\"5 4\"");
  }
  for (const bool named : {false, true}) {  // the first one lies on top
    for (std::size_t k = chart.curves.size(); k-- > 0;) {
      const Curve& curve = chart.curves[k];
      if (curve.name.empty() != named) svg += curve_of(curve, axes);
    }
  }
  if (chart.values) svg += values_of(chart, axes);
  return svg + "</svg>\n";
}

std::string render_chart(const BarChart& chart) {
  const double height = kTop + kBarPitch * static_cast<double>(chart.bars.size()) + kBottom;
  const double most = std::max(length_of_bars(chart), 1e-3) * 1.2;  // with room for a text
  const LinearAxis x{step_for(most, 8), most, kBarLeft, kWidth - kRight};
  std::string svg = open_svg(height, chart.title);
  for (double value = 0; value <= x.most * 1.001; value += x.step) {
    const double at = x.place(value);
    svg += line({at, kTop}, {at, height - kBottom}, value > 0 ? kGridStyle : kAxisStyle);
    svg += text_at({at, height - kBottom + 17}, "middle", x.text(value));
  }
  svg += text_at({(kBarLeft + kWidth - kRight) / 2, height - 14}, "middle", chart.x_title);
  std::vector<LegendEntry> entries;
  for (std::size_t k = 0; k < chart.parts.size(); ++k) {
    entries.push_back({chart.parts[k], kPartColours[k % kPartColours.size()], "part", 10});
  }
  svg += legend_of(entries);
  double y = kTop + (kBarPitch - kBarHeight) / 2;
  for (const Bar& bar : chart.bars) {
    svg += bar_of(chart, bar, x, y);
    y += kBarPitch;
  }
  if (chart.reference) {
    const double at = x.place(*chart.reference);
    svg += line({at, kTop}, {at, height - kBottom},
                "class=\"axis\" stroke=\"#222222\" stroke-dasharray=\"5 4\"");
  }
  return svg + "</svg>\n";
}

}  // namespace tutti::cli
