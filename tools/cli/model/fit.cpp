#include "model/fit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/try.hpp"
#include "model/nelder_mead.hpp"

namespace tutti::model {
namespace {

// Those that are not 0. They are found as logarithms, so none becomes 0 or negative.
std::vector<double*> fitted_fields(Links& links) {
  Link& link = links.cluster.between;
  Processor& processor = links.cluster.processor;
  std::vector<double*> fields = {
      &link.delay_us,     &link.payload_part,    &link.burst_bytes,        &processor.start_us,
      &processor.send_us, &processor.receive_us, &processor.copy_gb_per_s, &processor.sum_gb_per_s};
  std::erase_if(fields, [](const double* field) { return *field == 0; });
  return fields;
}

Point point_of(Links links) {
  Point point;
  for (const double* field : fitted_fields(links)) point.push_back(std::log(*field));
  return point;
}

Links at_point(const Links& start, const Point& point) {
  Links links = start;
  const std::vector<double*> fields = fitted_fields(links);
  // Beyond this nothing is told apart, and files refuse it.
  constexpr double kLeast = 1e-4, kMost = 1e6;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    *fields[i] = std::clamp(std::exp(point[i]), kLeast, kMost);
  }
  Link& link = links.cluster.between;
  link.payload_part = std::min(link.payload_part, 1.0);
  return links;
}

// Four digits: more would only say how the search ended.
void round_fields(Links& links) {
  for (double* field : fitted_fields(links)) *field = std::stod(fmt::format("{:.4g}", *field));
  Link& link = links.cluster.between;
  link.payload_part = std::min(link.payload_part, 1.0);
}

double mean_log_error(std::span<const ComparedCall> calls) {
  double sum = 0;
  for (const ComparedCall& call : calls) {
    sum += std::abs(std::log(call.modelled_us / call.measured.us));
  }
  return sum / static_cast<double>(calls.size());
}

template <class Value>
std::size_t place_of(const std::set<Value>& all, Value value) {
  return static_cast<std::size_t>(std::distance(all.begin(), all.find(value)));
}

}  // namespace

SplitCalls split_calls(std::span<const MeasuredCall> calls) {
  std::set<std::size_t> sizes;
  std::set<int> ranks;
  for (const MeasuredCall& each : calls) {
    sizes.insert(each.call.bytes);
    ranks.insert(each.ranks);
  }
  SplitCalls split;
  for (const MeasuredCall& each : calls) {
    const bool other_size = place_of(sizes, each.call.bytes) % 2 != 0;
    const bool other_ranks = ranks.size() > 2 && place_of(ranks, each.ranks) % 2 != 0;
    (other_size || other_ranks ? split.held_out : split.fitted).push_back(each);
  }
  return split;
}

Result<FittedLinks> fit(std::span<const MeasuredCall> calls, const Links& start,
                        int ranks_per_node) {
  const SplitCalls split = split_calls(calls);
  if (split.fitted.empty() || split.held_out.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "--fit needs results of two sizes or more: half of them are held out");
  }
  TUTTI_TRY(compare(split.fitted, start, ranks_per_node).status());
  const auto error_at = [&](const Point& point) {
    const auto compared = compare(split.fitted, at_point(start, point), ranks_per_node);
    return compared.is_ok() ? mean_log_error(*compared) : std::numeric_limits<double>::max();
  };
  FittedLinks fitted;
  fitted.links = at_point(start, least_of(error_at, point_of(start), {}));
  round_fields(fitted.links);
  TUTTI_ASSIGN(const auto seen, compare(split.fitted, fitted.links, ranks_per_node));
  TUTTI_ASSIGN(fitted.held_out_calls, compare(split.held_out, fitted.links, ranks_per_node));
  fitted.fitted = errors_of(seen);
  fitted.held_out = errors_of(fitted.held_out_calls);
  return fitted;
}

}  // namespace tutti::model
