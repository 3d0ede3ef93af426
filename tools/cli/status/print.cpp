#include "status/print.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1e3) : fmt::format("{:.1f} s", seconds);
}

// The time of day of a moment of the page's steady clock.
std::string time_of_day(const Snapshot& page, std::uint64_t at_ns) {
  const auto since_open = static_cast<std::int64_t>(at_ns - page.opened_ns);
  const auto seconds = static_cast<std::time_t>((page.opened_unix_ns + since_open) / 1'000'000'000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
}

std::span<const RecordedOperation> last_operations(const Member& member, int most) {
  if (!member.found) return {};
  const std::span<const RecordedOperation> all(member.found->page.operations);
  return all.last(std::min(all.size(), static_cast<std::size_t>(most)));
}

double duration_us(const RecordedOperation& operation) {
  const bool known = operation.ended_ns >= operation.started_ns;
  return known ? static_cast<double>(operation.ended_ns - operation.started_ns) * 1e-3 : 0;
}

std::string print_operation(const RecordedOperation& operation) {
  const std::string took =
      operation.ended_ns == 0 ? "" : fmt::format(", {:.1f} us", duration_us(operation));
  return fmt::format("                 {}: {}{}\n", to_string(operation),
                     to_string(operation.state), took);
}

std::string print_member(const Member& member) {
  if (!member.found) return fmt::format("  {:>4}  {:>8}  {:<8} absent\n", member.rank, "-", "-");
  const RecordedOperation* operation = member.operation();
  std::string doing = "no operation yet";
  if (operation != nullptr) {
    doing = fmt::format("{} {}{}", to_string(*operation), operation->unfinished() ? "for " : "",
                        seconds_text(member.seconds));
    if (!operation->unfinished()) doing += fmt::format(" ago, {}", to_string(operation->state));
  }
  if (!member.waits_for.empty()) {
    doing += fmt::format(", waits for {}", fmt::join(member.waits_for, ", "));
  }
  return fmt::format("  {:>4}  {:>8}  {:<8} {:<8} {}\n", member.rank, member.found->page.process_id,
                     to_string(member.found->writer), to_string(member.activity), doing);
}

std::string hosts_of(const Verdict& verdict) {
  std::vector<std::string> hosts;
  for (const Member& member : verdict.members) {
    if (member.found) hosts.push_back(member.found->page.host);
  }
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return fmt::format("{}", fmt::join(hosts, ", "));
}

Backend backend_of(const Verdict& verdict) {
  const auto any = std::find_if(verdict.members.begin(), verdict.members.end(),
                                [](const Member& member) { return member.found.has_value(); });
  return any == verdict.members.end() ? Backend::kHost : any->found->page.backend;
}

std::string print_verdict(const Verdict& verdict, int operations) {
  std::string text = fmt::format("group {:016x} of {} ranks on {}, backend {}: {}\n", verdict.group,
                                 verdict.members.size(), hosts_of(verdict),
                                 to_string(backend_of(verdict)), to_string(verdict.health));
  text += fmt::format("  {:>4}  {:>8}  {:<8} {:<8} {}\n", "rank", "pid", "process", "state",
                      "operation");
  for (const Member& member : verdict.members) {
    text += print_member(member);
    for (const auto& operation : last_operations(member, operations)) {
      text += print_operation(operation);
    }
  }
  if (verdict.first_failed) {
    const Snapshot& page =
        verdict.members[static_cast<std::size_t>(*verdict.first_failed)].found->page;
    text += fmt::format("  first failure: rank {}, {}: {}: {}\n", *verdict.first_failed,
                        time_of_day(page, page.failure->at_ns), to_string(page.failure->code),
                        page.failure->text);
  }
  for (const Culprit& culprit : verdict.culprits) {
    text += fmt::format("  -> rank {}: {}\n", culprit.rank, fmt::join(culprit.why, "; "));
  }
  return text;
}

ordered_json to_value(const RecordedOperation& operation) {
  return {{"sequence", operation.sequence},
          {"algorithm", operation.row},
          {"count", operation.count},
          {"bytes", operation.bytes},
          {"dtype", to_string(operation.dtype)},
          {"op", op_text(operation)},
          {"signature", fmt::format("{:08x}", operation.signature)},
          {"state", to_string(operation.state)},
          {"duration_us",
           operation.ended_ns == 0 ? ordered_json(nullptr) : ordered_json(duration_us(operation))}};
}

ordered_json to_value(const Member& member, int operations) {
  ordered_json value = {{"rank", member.rank}, {"state", to_string(member.activity)}};
  if (!member.found) return value;
  const Snapshot& page = member.found->page;
  value["host"] = page.host;
  value["pid"] = page.process_id;
  value["device"] = page.device;
  value["process"] = to_string(member.found->writer);
  value["waits_for"] = member.waits_for;
  value["seconds"] = member.seconds;
  const RecordedOperation* operation = member.operation();
  value["operation"] = operation == nullptr ? ordered_json(nullptr) : to_value(*operation);
  if (page.failure) {
    value["failure"] = {{"code", to_string(page.failure->code)},
                        {"text", page.failure->text},
                        {"time", time_of_day(page, page.failure->at_ns)}};
  }
  if (operations == 0) return value;
  value["operations"] = ordered_json::array();
  for (const auto& each : last_operations(member, operations)) {
    value["operations"].push_back(to_value(each));
  }
  return value;
}

ordered_json to_value(const Verdict& verdict, int operations) {
  ordered_json value = {{"group", fmt::format("{:016x}", verdict.group)},
                        {"health", to_string(verdict.health)},
                        {"backend", to_string(backend_of(verdict))},
                        {"ranks", verdict.members.size()}};
  value["members"] = ordered_json::array();
  for (const Member& member : verdict.members) {
    value["members"].push_back(to_value(member, operations));
  }
  value["culprits"] = ordered_json::array();
  for (const Culprit& culprit : verdict.culprits) {
    value["culprits"].push_back({{"rank", culprit.rank}, {"why", culprit.why}});
  }
  return value;
}

}  // namespace

Health worst_of(const std::vector<Verdict>& verdicts) {
  Health worst = Health::kHealthy;
  for (const Verdict& verdict : verdicts) worst = std::max(worst, verdict.health);
  return worst;
}

std::string print_verdicts(const std::vector<Verdict>& verdicts, int operations) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    if (!text.empty()) text += '\n';
    text += print_verdict(verdict, operations);
  }
  return text;
}

std::string print_verdicts_json(const std::vector<Verdict>& verdicts, int operations) {
  ordered_json value = {{"schema", "tutti.status/1"}, {"health", to_string(worst_of(verdicts))}};
  value["groups"] = ordered_json::array();
  for (const Verdict& verdict : verdicts) value["groups"].push_back(to_value(verdict, operations));
  return value.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::cli
