#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/units.hpp"
#include "planning/choose.hpp"

namespace tutti {

std::string_view buffers_text(const Request& request) {
  return request.by_address    ? "plain buffers that all ranks reach"
         : request.symmetric() ? "symmetric buffers"
                               : "staged";
}

namespace {

std::string question_text(const Request& request) {
  std::string text = fmt::format("{} of {} ({} x {})", to_string(request.collective),
                                 format_bytes(request.bytes()), request.count,
                                 elements_text(request.collective, request.dtype, request.op));
  if (request.hidden > 0) text += fmt::format(", hidden {}", request.hidden);
  text += fmt::format(", {}", buffers_text(request));
  if (request.in_place) text += ", in place";
  if (request.capturing) text += ", in a CUDA graph";
  if (request.deterministic) text += ", deterministic";
  if (request.sm_budget) text += fmt::format(", at most {} SMs", *request.sm_budget);
  return text;
}

std::string line_of(const Candidate& candidate, std::size_t width) {
  const bool known = candidate.predicted_us > 0;
  const std::string time = known ? fmt::format("{:.1f} us", candidate.predicted_us) : "-";
  const char* const origin = !known ? "" : candidate.measured ? "measured" : "predicted";
  return fmt::format("  {} {:<{}}  {:>10}  {:<9}  {}\n", candidate.chosen ? '*' : ' ',
                     candidate.algorithm, width, time, origin, candidate.why);
}

// A line for each, under its heading; * is what the plan takes.
std::string lines_of(const std::vector<Candidate>& all) {
  std::size_t width = 0;
  for (const Candidate& candidate : all) width = std::max(width, candidate.algorithm.size());
  std::string text =
      fmt::format("    {:<{}}  {:>10}  {:<9}  {}\n", "algorithm", width, "time", "", "reason");
  for (const Candidate& candidate : all) text += line_of(candidate, width);
  return text;
}

}  // namespace

std::string explain(const Request& request, const Topology& topology, const TuningTable& table,
                    Rows rows) {
  const auto plan = choose(request, topology, table, rows);
  std::string text = question_text(request) + "\n" + to_text(topology) + "\n";
  text += plan.is_ok() ? "plan: " + to_string(*plan) : "no plan: " + plan.status().message();
  text += "\n";
  return text + lines_of(candidates(request, topology, table, rows));
}

}  // namespace tutti
