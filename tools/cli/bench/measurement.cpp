#include "bench/measurement.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace tutti::cli {
namespace {

using nlohmann::json;

json to_value(const Measurement& m) {
  return {{"kind", "measurement"},
          {"size", m.size},
          {"algorithm", m.algorithm},
          {"in_place", m.in_place},
          {"chosen", m.chosen},
          {"plan",
           {{"algorithm", m.plan.algorithm},
            {"blocks", m.plan.blocks},
            {"threads", m.plan.threads},
            {"chunk_bytes", m.plan.chunk_bytes},
            {"source", static_cast<int>(m.plan.source)}}},
          {"samples_us", m.samples_us},
          {"unstaged_us", m.unstaged_us},
          {"wrong", m.wrong ? json(*m.wrong) : json(nullptr)},
          {"first_wrong", m.first_wrong}};
}

json to_value(const Skipped& skipped) {
  return {{"kind", "skipped"}, {"algorithm", skipped.algorithm}, {"why", skipped.why}};
}

json to_value(const Failure& failure) {
  return {{"kind", "failure"}, {"code", static_cast<int>(failure.code)}, {"text", failure.text}};
}

json to_value(const Alive&) { return {{"kind", "alive"}}; }
json to_value(const Done&) { return {{"kind", "done"}}; }

Measurement measurement_from(const json& value) {
  Measurement m;
  value.at("size").get_to(m.size);
  value.at("algorithm").get_to(m.algorithm);
  value.at("in_place").get_to(m.in_place);
  value.at("chosen").get_to(m.chosen);
  const json& plan = value.at("plan");
  plan.at("algorithm").get_to(m.plan.algorithm);
  plan.at("blocks").get_to(m.plan.blocks);
  plan.at("threads").get_to(m.plan.threads);
  plan.at("chunk_bytes").get_to(m.plan.chunk_bytes);
  m.plan.source = static_cast<PlanSource>(plan.at("source").get<int>());
  value.at("samples_us").get_to(m.samples_us);
  value.at("unstaged_us").get_to(m.unstaged_us);
  if (!value.at("wrong").is_null()) m.wrong = value.at("wrong").get<std::uint64_t>();
  value.at("first_wrong").get_to(m.first_wrong);
  return m;
}

Result<Report> report_from(const json& value) {
  const auto kind = value.at("kind").get<std::string>();
  if (kind == "measurement") return Report(measurement_from(value));
  if (kind == "skipped") return Report(Skipped{value.at("algorithm"), value.at("why")});
  if (kind == "failure") {
    return Report(Failure{static_cast<StatusCode>(value.at("code").get<int>()), value.at("text")});
  }
  if (kind == "alive") return Report(Alive{});
  if (kind == "done") return Report(Done{});
  return Status(StatusCode::kMismatch, "a report of unknown kind '" + kind + "'");
}

}  // namespace

std::string to_json_text(const Report& report) {
  const json value = std::visit([](const auto& kind) { return to_value(kind); }, report);
  // Texts may quote anything, so bytes that are not UTF-8 are replaced rather than refused.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Report> report_from_json_text(std::string_view text) {
  try {
    return report_from(json::parse(text));
  } catch (const json::exception& error) {
    return Status(StatusCode::kMismatch, fmt::format("not a report: {}", error.what()));
  }
}

}  // namespace tutti::cli
