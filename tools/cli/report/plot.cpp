#include "report/plot.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/units.hpp"
#include "bench/all_gather_matmul/ranks/options.hpp"
#include "bench/all_gather_matmul/ranks/print.hpp"
#include "bench/matmul/print.hpp"
#include "bench/overlap/phase.hpp"
#include "bench/printers/comparison.hpp"
#include "report/chart.hpp"

namespace tutti::cli {
namespace {

constexpr std::string_view kSizeTitle = "message size (K = 1024 bytes)";

// "bf16 sum, CUDA graph, symmetric buffers, p50 of the slowest rank"
std::string conditions_of(const Group& group) {
  const Row& r = group.first();
  return fmt::format("{}{}, {}, {} buffers, p50 of the slowest rank", r.dtype,
                     r.op == kNoOp ? "" : " " + r.op,
                     r.graph_operations > 0 ? "CUDA graph" : r.mode, r.buffers);
}

std::string machine_text(const Section& section, const Group& group) {
  const int ranks = group.first().ranks;
  const std::string& gpu = section.file->record.environment.gpu;
  return group.first().backend == "cuda" && !gpu.empty() ? fmt::format("{} x {}", ranks, gpu)
                                                         : fmt::format("{} ranks", ranks);
}

std::string name_of(const Section& section, const Group& group, std::string_view kind) {
  return fmt::format("{}_{}_{}_{}.svg", section.file->machine, section.file->what,
                     group.first().ranks, kind);
}

Curve curve_for(Library library) {
  constexpr std::array kColours = {colour::kNccl, colour::kNcclSymmetric, colour::kTorch,
                                   colour::kVllm};
  return {.name = std::string(to_string(library)),
          .colour = kColours[static_cast<std::size_t>(library)]};
}

// The value of a row of a size, for one kind of chart.
using Value = double (*)(const Compared& size, const Row& row);

double speed_up_of(const Compared& size, const Row& row) {
  return size.best_other()->time_us.p50 / row.time_us.p50;
}

double bandwidth_of(const Compared&, const Row& row) { return row.busbw_gbps; }

void add_point(Curve& curve, const Compared& size, const Row* row, Value value) {
  if (row == nullptr || row->time_us.p50 <= 0) return;
  curve.points.push_back({static_cast<double>(size.bytes), value(size, *row)});
}

// Auto, a curve for each other library, and tutti's algorithms, which have no name here.
std::vector<Curve> curves_of(const Group& group, const std::vector<Compared>& sizes, Value value) {
  std::vector<Curve> curves = {{.name = "tutti, auto", .colour = colour::kAuto, .bold = true}};
  for (const Compared& size : sizes) add_point(curves.front(), size, size.chosen, value);
  for (const Library library : kOtherLibraries) {
    curves.push_back(curve_for(library));
    for (const Compared& size : sizes) {
      add_point(curves.back(), size, size.of(library), value);
    }
  }
  for (const Series& series : series_of(group.rows)) {
    if (library_of(series.algorithm) != Library::kTutti) continue;
    curves.emplace_back();
    for (const Compared& size : sizes) {
      const auto row = std::find_if(group.rows.begin(), group.rows.end(), [&](const Row* each) {
        return each->bytes == size.bytes && series.shows(*each) && !each->emulated;
      });
      add_point(curves.back(), size, row == group.rows.end() ? nullptr : *row, value);
    }
  }
  std::erase_if(curves, [](const Curve& curve) { return curve.points.empty(); });
  return curves;
}

LineChart chart_of(const Section& section, const Group& group, std::string_view what) {
  return {.title = {.title = fmt::format("{} on {}: {}", group.first().collective,
                                         machine_text(section, group), what),
                    .conditions = conditions_of(group),
                    .remark = section.multicast(group)},
          .x_title = std::string(kSizeTitle),
          .y_title = {},
          .curves = {},
          .grey_text = "other algorithms of tutti"};
}

std::vector<Compared> sizes_where(std::vector<Compared> sizes, bool (*holds)(const Compared&)) {
  std::erase_if(sizes, [holds](const Compared& size) { return size.bytes == 0 || !holds(size); });
  return sizes;
}

void add_speed_up(const Section& section, const Group& group, const std::vector<Compared>& all,
                  std::vector<Plot>& plots) {
  const auto sizes = sizes_where(all, [](const Compared& size) {
    return size.complete && size.chosen != nullptr && size.best_other() != nullptr;
  });
  if (sizes.size() < 2) return;
  LineChart chart = chart_of(section, group, "speed-up over the best other library");
  chart.y_title = "speed-up (1 = the best other library)";
  chart.curves = curves_of(group, sizes, speed_up_of);
  chart.reference = 1;
  chart.values = true;
  plots.push_back({.name = name_of(section, group, "speedup"),
                   .text = chart.title.title,
                   .svg = render_chart(chart)});
}

void add_bandwidth(const Section& section, const Group& group, const std::vector<Compared>& all,
                   std::vector<Plot>& plots) {
  const auto sizes = sizes_where(all, [](const Compared& size) { return size.bytes >= 1 * MiB; });
  if (sizes.size() < 2) return;
  LineChart chart = chart_of(section, group, "bus bandwidth");
  chart.y_title = "bus bandwidth, GB/s (1 GB = 1e9 bytes)";
  chart.curves = curves_of(group, sizes, bandwidth_of);
  plots.push_back({.name = name_of(section, group, "bandwidth"),
                   .text = chart.title.title,
                   .svg = render_chart(chart)});
}

const Row* row_of_phase(const Group& group, Phase phase, std::string_view algorithm) {
  const auto row = std::find_if(group.rows.begin(), group.rows.end(), [&](const Row* each) {
    return each->overlap->phase == to_string(phase) &&
           (algorithm.empty() || each->algorithm == algorithm);
  });
  return row == group.rows.end() ? nullptr : *row;
}

// Each algorithm's all_gather next to a matmul, or before it if its result is what is multiplied.
std::vector<Plot> overlap_plot(const Section& section, const Group& group) {
  const Row* matmul = row_of_phase(group, Phase::kMatmul, "");
  if (matmul == nullptr) return {};
  const OverlapRow& o = *matmul->overlap;
  BarChart chart{.title = {.title = fmt::format("all_gather {} a GEMM on {}",
                                                o.dependent ? "before" : "concurrent with",
                                                machine_text(section, group)),
                           .conditions = fmt::format("m {}, n {}, k {}, {}", o.m, o.n, o.k,
                                                     conditions_of(group)),
                           .remark = section.multicast(group)},
                 .x_title = "time, us (lower is better)",
                 .parts = {"GEMM alone", "exposed communication"},
                 .bars = {{.name = "GEMM alone", .parts = {matmul->time_us.p50}}}};
  for (const std::string& algorithm : algorithms_of(group)) {
    const Phase phase = o.dependent ? Phase::kSequential : Phase::kOverlap;
    const Row* both = row_of_phase(group, phase, algorithm);
    if (both == nullptr || !both->overlap->exposed_us) continue;
    const std::string name = library_of(algorithm) == Library::kTutti
                                 ? fmt::format("tutti, {}", algorithm)
                                 : std::string(to_string(library_of(algorithm)));
    chart.bars.push_back(
        {.name = name, .parts = {matmul->time_us.p50, *both->overlap->exposed_us}});
  }
  if (chart.bars.size() < 2) return {};
  const std::string kind = fmt::format("{}_{}x{}x{}", group.first().dtype, o.m, o.n, o.k);
  return {{.name = name_of(section, group, kind),
           .text = chart.title.title,
           .svg = render_chart(chart)}};
}

// Of each shape the speed of the own kernel and of what a call takes, over the best of cuBLASLt.
std::vector<Plot> matmul_plot(const Section& section, const Group& group) {
  BarChart chart{.title = {.title = fmt::format("matmul on {}: speed over the best of cuBLASLt",
                                                section.file->record.environment.gpu),
                           .conditions = title_of_matmul(group),
                           .remark = "rows are m x n x k; higher is better"},
                 .x_title = "speed-up (1 = the best of cuBLASLt's heuristics)",
                 .parts = {"own kernel", "auto"},
                 .bars = {},
                 .stacked = false,
                 .decimals = 3,
                 .reference = 1};
  for (const MatmulRow* shape : shapes_of(group)) {
    const auto ratio = [&](std::string_view algorithm) {
      const Row* row = matmul_row(group, *shape, algorithm);
      return row == nullptr ? 0 : row->matmul->ratio;
    };
    const double own = ratio(kOwnRow), taken = ratio(kAutoName);
    if (own > 0 || taken > 0) chart.bars.push_back({extents_text(*shape), {own, taken}});
  }
  if (chart.bars.empty()) return {};
  for (const auto& [name, algorithm] :
       {std::pair("the own kernel", kOwnRow), std::pair("auto", kAutoName)}) {
    const double mean = mean_ratio(group, algorithm);
    if (mean > 0) chart.title.remark += fmt::format("; geometric mean of {}: {:.3f}", name, mean);
  }
  return {{.name = fmt::format("{}_{}_{}.svg", section.file->machine, section.file->what,
                               kind_text(group)),
           .text = chart.title.title,
           .svg = render_chart(chart)}};
}

// "fused", "pipelined_ring_put_4_streams"
std::string kind_of_gathered(const Row& row) {
  std::string text = row.algorithm;
  if (!row.matmul->gathered->pipeline.empty()) text += " " + row.matmul->gathered->pipeline;
  std::erase(text, ',');
  std::ranges::replace(text, ' ', '_');
  return text;
}

BarChart chart_of_gathered(const Section& section, const Group& group, const Row& row) {
  const std::string& pipeline = row.matmul->gathered->pipeline;
  return {
      .title = {.title = fmt::format("all_gather_matmul on {}: {}{}", machine_text(section, group),
                                     row.algorithm, pipeline.empty() ? "" : " (" + pipeline + ")"),
                .conditions = title_of_gathered(group),
                .remark = "rows are m x n x k; higher is better"},
      .x_title = "speed-up (1 = what it is compared with)",
      .parts = {"over unfused", "over the matmul alone"},
      .bars = {},
      .stacked = false,
      .decimals = 3,
      .reference = 1};
}

// Of each algorithm its speed over what gathers first, and over the matmul alone.
std::vector<Plot> gathered_plots(const Section& section, const Group& group) {
  std::vector<std::pair<std::string, BarChart>> charts;  // by kind
  for (const Row* row : group.rows) {
    const GatheredRow& gathered = *row->matmul->gathered;
    if (!gathered.speed_up || row->algorithm == kUnfusedRow) continue;
    const std::string kind = kind_of_gathered(*row);
    auto chart = std::ranges::find(charts, kind, &std::pair<std::string, BarChart>::first);
    if (chart == charts.end()) {
      chart = charts.insert(chart, {kind, chart_of_gathered(section, group, *row)});
    }
    const double alone = gathered.over_alone.value_or(0) > 0 ? 1 / *gathered.over_alone : 0;
    chart->second.bars.push_back({extents_text(*row->matmul), {*gathered.speed_up, alone}});
  }
  std::vector<Plot> plots;
  plots.reserve(charts.size());
  for (const auto& [kind, chart] : charts) {
    plots.push_back({.name = name_of(section, group, kind_text(group) + "_" + kind),
                     .text = chart.title.title,
                     .svg = render_chart(chart)});
  }
  return plots;
}

}  // namespace

std::vector<Plot> plots_of(const Section& section, const Group& group) {
  if (group.first().matmul) {
    if (group.first().matmul->gathered) return gathered_plots(section, group);
    return group.first().matmul->arrival ? std::vector<Plot>{} : matmul_plot(section, group);
  }
  if (group.first().overlap) return overlap_plot(section, group);
  std::vector<Plot> plots;
  const std::vector<Compared> sizes = compare(group, section.rows_beside(group));
  add_speed_up(section, group, sizes, plots);
  add_bandwidth(section, group, sizes, plots);
  return plots;
}

std::vector<const Group*> drawn_groups(const std::vector<Group>& groups) {
  std::vector<const Group*> drawn;
  for (const Group& group : groups) {
    const auto same = std::find_if(drawn.begin(), drawn.end(), [&](const Group* each) {
      const Row& first = group.first();
      return !first.overlap && !first.matmul && !each->first().matmul &&
             each->first().ranks == group.first().ranks;
    });
    if (same == drawn.end()) {
      drawn.push_back(&group);
    } else if ((*same)->first().mode != "graph" && group.first().mode == "graph") {
      *same = &group;
    }
  }
  return drawn;
}

}  // namespace tutti::cli
