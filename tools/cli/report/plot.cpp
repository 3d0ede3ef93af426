// A plot as SVG text: no library, no script, the same bytes for the same results.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.hpp"
#include "bench/printers/printers.hpp"
#include "report/pages.hpp"

namespace tutti::cli {
namespace {

constexpr double kWidth = 720, kHeight = 420, kLeft = 70, kRight = 120, kTop = 40, kBottom = 50;
constexpr double kCharacterWidth = 7;
constexpr std::array<const char*, 12> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000", "#882255",
                                                  "#999933", "#332288", "#888888", "#aa4499"};

// Maps a positive value to a place between two ends, by its logarithm.
struct Axis {
  double least, most, from, to;
  double place(double value) const {
    if (most <= least) return (from + to) / 2;
    return from + (to - from) * std::log(value / least) / std::log(most / least);
  }
};

struct Frame {
  Axis x, y;
};

Frame frame_for(const std::vector<const Row*>& rows) {
  const auto [small, large] = std::minmax_element(
      rows.begin(), rows.end(), [](const Row* a, const Row* b) { return a->bytes < b->bytes; });
  const auto [fast, slow] = std::minmax_element(
      rows.begin(), rows.end(),
      [](const Row* a, const Row* b) { return a->time_us.p50 < b->time_us.p50; });
  const double lowest = std::pow(10, std::floor(std::log10((*fast)->time_us.p50)));
  const double highest = std::pow(10, std::ceil(std::log10((*slow)->time_us.p50)));
  return {.x = {static_cast<double>((*small)->bytes), static_cast<double>((*large)->bytes), kLeft,
                kWidth - kRight},
          .y = {lowest, highest, kHeight - kBottom, kTop}};
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     text);
}

std::string grid(const std::vector<const Row*>& rows, const Frame& frame) {
  std::string svg;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    svg += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
        "stroke=\"#ddd\"/>\n",
        x1, y1, x2, y2);
  };
  for (double time = frame.y.least; time <= frame.y.most * 1.001; time *= 10) {
    const double y = frame.y.place(time);
    line(kLeft, y, kWidth - kRight, y);
    svg += text_at(kLeft - 6, y + 4, "end", fmt::format("{:g} us", time));
  }
  std::vector<std::size_t> sizes;
  sizes.reserve(rows.size());
  for (const Row* row : rows) sizes.push_back(row->bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  constexpr std::size_t kMostLabels = 10;
  const std::size_t step = ceil_div(sizes.size(), kMostLabels);
  for (std::size_t k = 0; k < sizes.size(); k += step) {
    const double x = frame.x.place(static_cast<double>(sizes[k]));
    line(x, kTop, x, kHeight - kBottom);
    svg += text_at(x, kHeight - kBottom + 18, "middle", format_bytes(sizes[k]));
  }
  return svg;
}

std::vector<const Row*> shown_by(const Series& series, const std::vector<const Row*>& rows) {
  std::vector<const Row*> shown;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(shown),
               [&](const Row* row) { return series.shows(*row); });
  return shown;
}

// Of the whole picture: names of curves stand to the right of the axes.
double width_for(const std::vector<Series>& all) {
  std::size_t longest = 0;
  for (const Series& series : all) longest = std::max(longest, series.title().size());
  return std::max(kWidth, kWidth - kRight + 8 + kCharacterWidth * static_cast<double>(longest));
}

std::string curve(const std::vector<const Row*>& rows, const Frame& frame, const char* colour) {
  std::string points;
  for (const Row* row : rows) {
    points += fmt::format("{:.1f},{:.1f} ", frame.x.place(static_cast<double>(row->bytes)),
                          frame.y.place(row->time_us.p50));
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                     points, colour);
}

}  // namespace

std::string render_plot(const std::vector<const Row*>& all, const std::string& title) {
  constexpr double kLeast = 1e-3;  // a nanosecond; times are kept with no more decimals
  std::vector<const Row*> rows;    // what a logarithm can show
  std::copy_if(all.begin(), all.end(), std::back_inserter(rows),
               [](const Row* row) { return row->bytes > 0 && row->time_us.p50 >= kLeast; });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row* a, const Row* b) { return a->bytes < b->bytes; });
  const std::vector<Series> curves = series_of(rows);
  std::erase_if(rows, [&](const Row* row) {
    return std::none_of(curves.begin(), curves.end(),
                        [&](const Series& series) { return series.shows(*row); });
  });
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0:g}\" height=\"{1:g}\" "
      "fill=\"#fff\"/>\n",
      width_for(curves), kHeight);
  svg += text_at(kLeft, kTop - 16, "start", title);
  if (rows.empty()) return svg + "</svg>\n";
  const Frame frame = frame_for(rows);
  svg += grid(rows, frame);
  for (std::size_t k = 0; k < curves.size(); ++k) {
    const char* colour = kColours[k % kColours.size()];
    svg += curve(shown_by(curves[k], rows), frame, colour);
    svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n", kWidth - kRight + 8,
                    kTop + 16 * static_cast<double>(k + 1), colour, curves[k].title());
  }
  return svg + "</svg>\n";
}

}  // namespace tutti::cli
