#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/printable.hpp"
#include "doctor/findings.hpp"

namespace tutti::cli {
namespace {

constexpr std::string_view kRed = "\x1b[31m", kPlain = "\x1b[0m";

}  // namespace

std::string print_findings(const std::vector<Finding>& findings, bool colour) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  std::string text;
  for (const Finding& finding : findings) {
    const bool red = colour && finding.severity == Severity::kBroken;
    text += fmt::format("{}{:<6}  {:<{}}  {}{}\n", red ? kRed : "", to_string(finding.severity),
                        finding.subject, width, printable(finding.text), red ? kPlain : "");
    if (!finding.fix.empty())
      text += fmt::format("{:<8}{:<{}}  -> {}\n", "", "", width, printable(finding.fix));
  }
  return text;
}

std::string print_findings_json(const std::vector<Finding>& findings, const Facts& facts) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    lines.push_back({{"severity", to_string(finding.severity)},
                     {"subject", finding.subject},
                     {"text", finding.text},
                     {"fix", finding.fix}});
  }
  nlohmann::ordered_json transfers = nlohmann::ordered_json::array();
  for (const PeerTransfer& t : facts.transfers) {
    transfers.push_back({{"from", t.from},
                         {"to", t.to},
                         {"allowed", t.allowed},
                         {"intact", t.intact},
                         {"gbps", t.gbps},
                         {"why", t.why}});
  }
  const nlohmann::ordered_json value = {{"machine", nlohmann::json(facts.machine)},
                                        {"transfers", std::move(transfers)},
                                        {"communicator_bytes", facts.communicator_bytes},
                                        {"findings", std::move(lines)}};
  return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::cli
