#include <fmt/core.h>

#include "base/units.hpp"
#include "planning/choose.hpp"

namespace tutti {
namespace {

std::string question_text(const Request& request) {
  std::string text = fmt::format("{} of {} ({} x {})", to_string(request.collective),
                                 format_bytes(request.bytes()), request.count,
                                 elements_text(request.collective, request.dtype, request.op));
  if (request.hidden > 0) text += fmt::format(", hidden {}", request.hidden);
  text += request.symmetric ? ", symmetric" : ", staged";
  if (request.in_place) text += ", in place";
  if (request.capturing) text += ", in a capture";
  if (request.deterministic) text += ", deterministic";
  if (request.sm_budget) text += fmt::format(", {} SMs at most", *request.sm_budget);
  return text;
}

std::string line_of(const Candidate& candidate) {
  const std::string time =
      candidate.predicted_us > 0 ? fmt::format("{:.1f} us", candidate.predicted_us) : "-";
  return fmt::format("  {} {:<28} {:>12}  {}\n", candidate.chosen ? '*' : ' ', candidate.algorithm,
                     time, candidate.why);
}

}  // namespace

std::string explain(const Request& request, const Topology& topology, const TuningTable& table,
                    Rows rows) {
  const auto plan = choose(request, topology, table, rows);
  std::string text = question_text(request) + "\n" + to_text(topology) + "\n";
  text += plan.is_ok() ? "plan: " + to_string(*plan) : "no plan: " + plan.status().message();
  text += "\n";
  for (const Candidate& candidate : candidates(request, topology, table, rows)) {
    text += line_of(candidate);
  }
  return text;
}

}  // namespace tutti
