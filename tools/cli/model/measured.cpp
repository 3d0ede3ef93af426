#include "model/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/try.hpp"
#include "output_file.hpp"

namespace tutti::model {
namespace {

bool was_measured_alike(const cli::Row& row) {
  const bool repeated = row.backend != "cuda" || row.mode == "graph";
  return repeated && !row.in_place && !row.chained && row.hidden == 0 && !row.overlap &&
         !row.matmul && row.time_us.p50 > 0;
}

Status nothing_found(const std::string& file, const MeasuredFilter& filter) {
  std::vector<std::string_view> names;
  for (const ModelledAlgorithm& each : filter.algorithms) names.push_back(each.name);
  return {StatusCode::kInvalidArgument,
          fmt::format("{} has no results of {} that this link is a model of: of {}, out of place, "
                      "with a multiple of {} ranks",
                      file, to_string(filter.collective), fmt::join(names, ", "),
                      filter.ranks_per_node)};
}

}  // namespace

std::vector<MeasuredCall> measured_calls(const cli::Record& record, const MeasuredFilter& filter) {
  const bool ring = filter.chunks == Chunks::kRing;
  std::vector<MeasuredCall> calls;
  for (const cli::Row& row : record.rows) {
    const auto algorithm =
        std::ranges::find(filter.algorithms, row.algorithm, &ModelledAlgorithm::name);
    const auto dtype = parse_data_type(row.dtype);
    const bool fits = row.collective == to_string(filter.collective) &&
                      algorithm != filter.algorithms.end() && dtype.is_ok() && row.ranks >= 2 &&
                      row.ranks % filter.ranks_per_node == 0;
    if (!fits || !was_measured_alike(row)) continue;
    if (algorithm->needs_nodes && row.ranks == filter.ranks_per_node) continue;
    calls.push_back({.algorithm = row.algorithm,
                     .call = {.collective = filter.collective,
                              .schedule = algorithm->schedule,
                              .dtype = *dtype,
                              .bytes = row.bytes,
                              .root = row.root,
                              .chunk_bytes = row.chunk_bytes,
                              .blocks = ring ? row.blocks : 0},
                     .ranks = row.ranks,
                     .us = row.time_us.p50});
  }
  return calls;
}

Result<std::vector<MeasuredCall>> read_measured_calls(std::span<const std::string> files,
                                                      const MeasuredFilter& filter) {
  std::vector<MeasuredCall> all;
  for (const std::string& file : files) {
    TUTTI_ASSIGN(const std::string text, cli::read_file(file));
    TUTTI_ASSIGN(const cli::Record record, cli::record_from_json_text(text, file));
    const auto calls = measured_calls(record, filter);
    if (calls.empty()) return nothing_found(file, filter);
    all.insert(all.end(), calls.begin(), calls.end());
  }
  return all;
}

Result<std::vector<ComparedCall>> compare(std::span<const MeasuredCall> calls, const Links& links,
                                          int ranks_per_node, Folding folding) {
  // What was measured twice is simulated once.
  std::map<std::tuple<std::string, int, std::size_t, DataType, std::size_t, int, int>, double>
      known;
  std::vector<ComparedCall> compared;
  Links of_call = links;
  of_call.cluster.ranks_per_node = ranks_per_node;
  for (const MeasuredCall& each : calls) {
    const ModelledCall& call = each.call;
    const auto [at, is_new] = known.try_emplace({each.algorithm, each.ranks, call.bytes, call.dtype,
                                                 call.chunk_bytes, call.blocks, call.root});
    if (is_new) {
      of_call.cluster.nodes = each.ranks / ranks_per_node;
      TUTTI_ASSIGN(const SimulatedTime time,
                   simulate(operation_of(call, of_call), of_call.cluster, folding));
      at->second = time.us;
    }
    compared.push_back({each, at->second});
  }
  return compared;
}

Errors errors_of(std::span<const ComparedCall> calls) {
  std::vector<double> errors;
  for (const ComparedCall& call : calls) errors.push_back(std::abs(call.error_percent()));
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  return {errors.size(), errors[(errors.size() - 1) / 2], errors.back()};
}

}  // namespace tutti::model
