#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/printable.hpp"
#include "doctor/findings.hpp"

namespace tutti::cli {
namespace {

constexpr std::string_view kRed = "\x1b[31m", kYellow = "\x1b[33m", kPlain = "\x1b[0m";

std::string_view colour_of(Severity severity) {
  return severity == Severity::kFailure ? kRed : severity == Severity::kWarning ? kYellow : "";
}

std::string indented(std::string text) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\n') text.insert(at, "  ");
    const std::size_t end = text.find('\n', at);
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return text;
}

std::string counted(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string summary(const std::vector<Finding>& findings) {
  const auto count = [&](Severity severity) {
    return static_cast<std::size_t>(
        std::count_if(findings.begin(), findings.end(),
                      [&](const Finding& finding) { return finding.severity == severity; }));
  };
  return fmt::format("\n{}, {}\n", counted(count(Severity::kFailure), "failure"),
                     counted(count(Severity::kWarning), "warning"));
}

}  // namespace

std::string print_findings(const std::vector<Finding>& findings, const Facts& facts, bool colour) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  const std::string transfers = print_transfers(facts.transfers);
  std::string text;
  std::string_view group;
  for (std::size_t k = 0; k < findings.size(); ++k) {
    const Finding& finding = findings[k];
    if (k == 0 || finding.group != group)
      text += fmt::format("{}{}\n", k == 0 ? "" : "\n", finding.group);
    group = finding.group;
    const std::string_view begin = colour ? colour_of(finding.severity) : "";
    text +=
        fmt::format("  {}{:<4}{}  {:<{}}  {}\n", begin, to_string(finding.severity),
                    begin.empty() ? "" : kPlain, finding.subject, width, printable(finding.text));
    if (!finding.fix.empty()) {
      text += fmt::format("{:<8}{:<{}}  fix: {}\n", "", "", width, printable(finding.fix));
    }
    const bool last = k + 1 == findings.size() || findings[k + 1].group != group;
    if (last && group == kGpuGroup && !transfers.empty()) text += "\n" + indented(transfers);
  }
  return text + summary(findings);
}

std::string print_findings_json(const std::vector<Finding>& findings, const Facts& facts) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    lines.push_back({{"severity", to_string(finding.severity)},
                     {"group", finding.group},
                     {"subject", finding.subject},
                     {"text", finding.text},
                     {"fix", finding.fix}});
  }
  nlohmann::ordered_json transfers = nlohmann::ordered_json::array(), host = transfers;
  for (const Transfer& t : facts.transfers) {
    const auto end = [](int gpu) {
      return gpu == kHostEnd ? nlohmann::ordered_json("host") : nlohmann::ordered_json(gpu);
    };
    (t.between_gpus() ? transfers : host)
        .push_back({{"from", end(t.from)},
                    {"to", end(t.to)},
                    {"allowed", t.allowed},
                    {"intact", t.intact},
                    {"skipped", t.skipped},
                    {"gbps", t.gbps},
                    {"latency_us", t.latency_us},
                    {"why", t.why}});
  }
  const nlohmann::ordered_json value = {{"machine", nlohmann::json(facts.machine)},
                                        {"transfers", std::move(transfers)},
                                        {"host_transfers", std::move(host)},
                                        {"communicator_bytes", facts.communicator_bytes},
                                        {"findings", std::move(lines)}};
  return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::cli
