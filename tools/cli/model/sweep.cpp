#include "model/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "bench/printers/printers.hpp"
#include "bench/statistics.hpp"

namespace tutti::cli {
namespace {

using model::ModelledAlgorithm;

constexpr std::size_t kMostMessages = 500'000;  // of a rank: minutes
constexpr std::size_t kLeastWidth = 9;
constexpr std::string_view kNetworkPrefix = "network_";

// What all columns begin with is left out.
std::string_view title_of(const ModelledAlgorithm& algorithm) {
  std::string_view name = algorithm.name;
  if (name.starts_with(kNetworkPrefix)) name.remove_prefix(kNetworkPrefix.size());
  return name;
}
std::size_t width_of(const ModelledAlgorithm& algorithm) {
  return std::max(title_of(algorithm).size(), kLeastWidth) + 2;
}

double bus_bandwidth_of(const ModelOptions& options, const ModelledLine& line, double us) {
  return bus_bandwidth(options.collective, algorithm_bandwidth(line.bytes, us), line.ranks);
}

}  // namespace

std::optional<std::size_t> ModelledLine::fastest() const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < us.size(); ++i) {
    if (us[i] && (!best || *us[i] < *us[*best])) best = i;
  }
  return best;
}

ModelledLine simulate_line(const ModelOptions& options, int nodes, std::size_t bytes) {
  model::Links links = options.links;
  links.cluster.nodes = nodes;
  links.cluster.ranks_per_node = options.ranks_per_node;
  const int ranks = links.cluster.ranks();
  const std::size_t parts = has_pieces(options.collective) ? static_cast<std::size_t>(ranks) : 1;
  // Whole elements of each rank, and one at least.
  const std::size_t unit = parts * size_of(options.dtype);
  const bool barrier = options.collective == Collective::kBarrier;
  ModelledLine line{.nodes = nodes, .ranks = ranks};
  line.bytes = barrier ? 0 : std::max(bytes / unit, std::size_t{1}) * unit;
  for (const ModelledAlgorithm& algorithm : options.algorithms) {
    const auto operation = operation_of({.collective = options.collective,
                                         .schedule = algorithm.schedule,
                                         .between = algorithm.between,
                                         .dtype = options.dtype,
                                         .bytes = line.bytes,
                                         .root = options.root},
                                        links);
    line.chunk_bytes.push_back(operation.chunk_bytes);
    line.us.emplace_back();
    line.approximate.push_back(false);
    line.why_not.emplace_back();
    if (algorithm.needs_nodes && nodes < 2) {
      line.why_not.back() = "needs two nodes or more";
      continue;
    }
    const std::size_t messages = messages_of(operation, links.cluster);
    if (messages > kMostMessages) {
      line.why_not.back() =
          fmt::format("each rank would send {} messages of {}; up to {} are simulated", messages,
                      format_bytes(operation.chunk_bytes), kMostMessages);
      continue;
    }
    const auto time = simulate(operation, links.cluster, options.folding);
    if (time.is_ok()) {
      line.us.back() = time->us;
      line.approximate.back() = time->is_approximate;
    } else {
      line.why_not.back() = time.status().message();
    }
  }
  return line;
}

std::string heading_of(const ModelOptions& options) {
  std::string text = fmt::format(
      "# {} over {}, {} of each node, {}: us of the slowest rank; * fastest, with its busbw; ~ "
      "about\n",
      to_string(options.collective), options.links.cluster.name,
      options.ranks_per_node == 1 ? "1 rank" : fmt::format("{} ranks", options.ranks_per_node),
      to_string(options.dtype));
  text += fmt::format("{:>7}{:>8}{:>12}", "nodes", "ranks", "bytes");
  for (const ModelledAlgorithm& algorithm : options.algorithms) {
    text += fmt::format("{:>{}}", title_of(algorithm), width_of(algorithm));
  }
  return text + fmt::format("{:>11}\n", "busbw GB/s");
}

std::string text_of(const ModelOptions& options, const ModelledLine& line) {
  const auto fastest = line.fastest();
  std::string text = fmt::format("{:>7}{:>8}{:>12}", line.nodes, line.ranks, line.bytes);
  for (std::size_t i = 0; i < line.us.size(); ++i) {
    const std::string time = line.us[i] ? time_text(*line.us[i]) : "-";
    const char* const about = line.approximate[i] ? "~" : "";
    const std::string marked = fmt::format("{}{}{}", fastest == i ? "*" : "", about, time);
    text += fmt::format("{:>{}}", marked, width_of(options.algorithms[i]));
  }
  const double busbw = fastest ? bus_bandwidth_of(options, line, *line.us[*fastest]) : 0;
  return text + fmt::format("{:>11.2f}\n", busbw);
}

std::vector<Row> rows_of(const ModelOptions& options, const ModelledLine& line) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < line.us.size(); ++i) {
    if (!line.us[i]) continue;
    const double us = *line.us[i];
    rows.push_back({.collective = std::string(to_string(options.collective)),
                    .algorithm = std::string(options.algorithms[i].name),
                    .backend = "model",
                    .ranks = line.ranks,
                    .dtype = std::string(to_string(options.dtype)),
                    .op = reduces(options.collective) ? "sum" : std::string(kNoOp),
                    .bytes = line.bytes,
                    .count = line.bytes / size_of(options.dtype),
                    .root = options.root,
                    .buffers = "plain",
                    .mode = "eager",
                    .cache = "hot",
                    .launch = "model",
                    .blocks = 1,
                    .threads = 1,
                    .chunk_bytes = line.chunk_bytes[i],
                    .time_us = {.p50 = us, .p90 = us, .p99 = us, .min = us, .max = us, .n = 1},
                    .algbw_gbps = algorithm_bandwidth(line.bytes, us),
                    .busbw_gbps = bus_bandwidth_of(options, line, us)});
  }
  return rows;
}

}  // namespace tutti::cli
