#include "bench/measurement.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json_errors.hpp"
#include "base/json_integer.hpp"
#include "base/try.hpp"

namespace tutti::cli {
namespace {

using nlohmann::json;

json to_value(const Plan& plan) {
  return {{"algorithm", plan.algorithm},
          {"blocks", plan.blocks},
          {"threads", plan.threads},
          {"chunk_bytes", plan.chunk_bytes},
          {"source", static_cast<int>(plan.source)},
          {"emulated", plan.emulated}};
}

json to_value(const std::optional<std::uint64_t>& wrong) {
  return wrong ? json(*wrong) : json(nullptr);
}

json to_value(const Measurement& m) {
  return {{"kind", "measurement"},      {"size", m.size},
          {"algorithm", m.algorithm},   {"in_place", m.in_place},
          {"chosen", m.chosen},         {"last", m.last},
          {"plain", m.plain},           {"plan", to_value(m.plan)},
          {"samples_us", m.samples_us}, {"unstaged_us", m.unstaged_us},
          {"sent_bytes", m.sent_bytes}, {"cpu_share", m.cpu_share},
          {"wrong", to_value(m.wrong)}, {"first_wrong", m.first_wrong}};
}

json to_value(const OverlapMeasurement& m) {
  return {{"kind", "overlap"},          {"phase", static_cast<int>(m.phase)},
          {"algorithm", m.algorithm},   {"chosen", m.chosen},
          {"plan", to_value(m.plan)},   {"library", m.library},
          {"samples_us", m.samples_us}, {"matmul_us", m.matmul_us},
          {"gather_us", m.gather_us},   {"megahertz", m.megahertz},
          {"wrong", to_value(m.wrong)}, {"first_wrong", m.first_wrong}};
}

json to_value(const GatherMatmulMeasurement& m) {
  return {{"kind", "gather_matmul"},    {"setting", m.setting},        {"algorithm", m.algorithm},
          {"config", m.config},         {"library", m.library},        {"last", m.last},
          {"samples_us", m.samples_us}, {"host_us", m.host_us},        {"megahertz", m.megahertz},
          {"wrong", to_value(m.wrong)}, {"first_wrong", m.first_wrong}};
}

json to_value(const Skipped& skipped) {
  return {{"kind", "skipped"}, {"algorithm", skipped.algorithm}, {"why", skipped.why}};
}

json to_value(const Trying& trying) {
  return {{"kind", "trying"}, {"size", trying.size}, {"candidate", trying.candidate}};
}

json to_value(const Dropped& dropped) {
  return {{"kind", "dropped"},
          {"size", dropped.size},
          {"candidate", dropped.candidate},
          {"why", dropped.why}};
}

json to_value(const Tuned& tuned) {
  return {{"kind", "tuned"},
          {"size", tuned.size},
          {"algorithm", tuned.best.algorithm},
          {"blocks", tuned.best.blocks},
          {"threads", tuned.best.threads},
          {"chunk_bytes", tuned.best.chunk_bytes},
          {"time_us", tuned.time_us},
          {"samples", tuned.samples},
          {"runner_up", tuned.runner_up},
          {"runner_up_us", tuned.runner_up_us}};
}

json to_value(const TunedAllGatherMatmul& tuned) {
  const AllGatherMatmulEntry& best = tuned.best;
  return {{"kind", "tuned_all_gather_matmul"},
          {"size", tuned.size},
          {"algorithm", to_string(best.way.algorithm)},
          {"protocol", to_string(best.way.protocol)},
          {"streams", best.way.streams},
          {"tiles", best.way.tiles},
          {"mover", to_string(best.way.mover)},
          {"inter_stream_order", best.way.inter_stream_order},
          {"transport", best.way.transport ? to_string(*best.way.transport) : "auto"},
          {"time_us", best.time_us},
          {"unfused_us", best.unfused_us},
          {"runner_up", to_string(best.runner_up)},
          {"runner_up_us", best.runner_up_us},
          {"samples", best.samples}};
}

json to_value(const Failure& failure) {
  return {{"kind", "failure"}, {"code", static_cast<int>(failure.code)}, {"text", failure.text}};
}

json to_value(const Operations& report) {
  json operations = json::array();
  for (const RecordedOperation& o : report.operations) {
    operations.push_back({{"sequence", o.sequence},
                          {"row", o.row},
                          {"count", o.count},
                          {"bytes", o.bytes},
                          {"dtype", static_cast<int>(o.dtype)},
                          {"op", o.op ? json(static_cast<int>(*o.op)) : json(nullptr)},
                          {"state", static_cast<unsigned>(o.state)},
                          {"started_ns", o.started_ns},
                          {"ended_ns", o.ended_ns}});
  }
  return {{"kind", "operations"}, {"operations", std::move(operations)}};
}

json to_value(const Alive&) { return {{"kind", "alive"}}; }
json to_value(const Done&) { return {{"kind", "done"}}; }

template <class E>
E enumerator_in(const json& object, const char* name, E first, E last) {
  const auto value = integer_in<int>(object, name);
  if (value >= static_cast<int>(first) && value <= static_cast<int>(last)) {
    return static_cast<E>(value);
  }
  throw json::other_error::create(501, std::string(name) + " is none of those known", &object);
}

Plan plan_from(const json& value) {
  Plan plan;
  value.at("algorithm").get_to(plan.algorithm);
  plan.blocks = integer_in<int>(value, "blocks");
  plan.threads = integer_in<int>(value, "threads");
  plan.chunk_bytes = integer_in<std::size_t>(value, "chunk_bytes");
  plan.source = enumerator_in(value, "source", PlanSource::kCall, PlanSource::kModel);
  value.at("emulated").get_to(plan.emulated);
  return plan;
}

std::optional<std::uint64_t> wrong_from(const json& value) {
  if (value.at("wrong").is_null()) return std::nullopt;
  return integer_in<std::uint64_t>(value, "wrong");
}

Measurement measurement_from(const json& value) {
  Measurement m;
  m.size = integer_in<std::size_t>(value, "size");
  value.at("algorithm").get_to(m.algorithm);
  value.at("in_place").get_to(m.in_place);
  value.at("chosen").get_to(m.chosen);
  value.at("last").get_to(m.last);
  value.at("plain").get_to(m.plain);
  m.plan = plan_from(value.at("plan"));
  value.at("samples_us").get_to(m.samples_us);
  value.at("unstaged_us").get_to(m.unstaged_us);
  value.at("sent_bytes").get_to(m.sent_bytes);
  value.at("cpu_share").get_to(m.cpu_share);
  m.wrong = wrong_from(value);
  value.at("first_wrong").get_to(m.first_wrong);
  return m;
}

OverlapMeasurement overlap_from(const json& value) {
  OverlapMeasurement m;
  m.phase = enumerator_in(value, "phase", Phase::kMatmul, Phase::kOverlap);
  value.at("algorithm").get_to(m.algorithm);
  value.at("chosen").get_to(m.chosen);
  m.plan = plan_from(value.at("plan"));
  value.at("library").get_to(m.library);
  value.at("samples_us").get_to(m.samples_us);
  value.at("matmul_us").get_to(m.matmul_us);
  value.at("gather_us").get_to(m.gather_us);
  value.at("megahertz").get_to(m.megahertz);
  m.wrong = wrong_from(value);
  value.at("first_wrong").get_to(m.first_wrong);
  return m;
}

GatherMatmulMeasurement gather_matmul_from(const json& value) {
  GatherMatmulMeasurement m;
  m.setting = integer_in<std::size_t>(value, "setting");
  value.at("algorithm").get_to(m.algorithm);
  value.at("config").get_to(m.config);
  value.at("library").get_to(m.library);
  value.at("last").get_to(m.last);
  value.at("samples_us").get_to(m.samples_us);
  value.at("host_us").get_to(m.host_us);
  value.at("megahertz").get_to(m.megahertz);
  m.wrong = wrong_from(value);
  value.at("first_wrong").get_to(m.first_wrong);
  return m;
}

Trying trying_from(const json& value) {
  return {integer_in<std::size_t>(value, "size"), value.at("candidate")};
}

Dropped dropped_from(const json& value) {
  return {integer_in<std::size_t>(value, "size"), value.at("candidate"), value.at("why")};
}

Tuned tuned_from(const json& value) {
  return {.size = integer_in<std::size_t>(value, "size"),
          .best = {.algorithm = value.at("algorithm"),
                   .blocks = integer_in<int>(value, "blocks"),
                   .threads = integer_in<int>(value, "threads"),
                   .chunk_bytes = integer_in<std::size_t>(value, "chunk_bytes")},
          .time_us = value.at("time_us"),
          .samples = integer_in<int>(value, "samples"),
          .runner_up = value.at("runner_up"),
          .runner_up_us = value.at("runner_up_us")};
}

Result<TunedAllGatherMatmul> tuned_all_gather_matmul_from(const json& value) {
  TunedAllGatherMatmul tuned{.size = integer_in<std::size_t>(value, "size")};
  AllGatherMatmulEntry& best = tuned.best;
  const auto name = [&](const char* field) { return value.at(field).get<std::string>(); };
  TUTTI_ASSIGN(best.way.algorithm, parse_all_gather_matmul_algorithm(name("algorithm")));
  TUTTI_ASSIGN(best.way.protocol, pipelines::parse_protocol(name("protocol")));
  best.way.streams = integer_in<int>(value, "streams");
  best.way.tiles = integer_in<int>(value, "tiles");
  TUTTI_ASSIGN(best.way.mover, pipelines::parse_mover(name("mover")));
  best.way.inter_stream_order = value.at("inter_stream_order").get<bool>();
  TUTTI_ASSIGN(best.way.transport, parse_transport(name("transport")));
  best.time_us = value.at("time_us");
  best.unfused_us = value.at("unfused_us");
  TUTTI_ASSIGN(best.runner_up, parse_all_gather_matmul_algorithm(name("runner_up")));
  best.runner_up_us = value.at("runner_up_us");
  best.samples = integer_in<int>(value, "samples");
  return tuned;
}

Operations operations_from(const json& value) {
  Operations report;
  for (const json& each : value.at("operations")) {
    RecordedOperation& o = report.operations.emplace_back();
    each.at("sequence").get_to(o.sequence);
    each.at("row").get_to(o.row);
    each.at("count").get_to(o.count);
    each.at("bytes").get_to(o.bytes);
    o.dtype = static_cast<DataType>(each.at("dtype").get<int>());
    const json& op = each.at("op");
    o.op = op.is_null() ? std::nullopt : std::optional(static_cast<OpKind>(op.get<int>()));
    o.state = static_cast<OperationState>(each.at("state").get<unsigned>());
    each.at("started_ns").get_to(o.started_ns);
    each.at("ended_ns").get_to(o.ended_ns);
  }
  return report;
}

Result<Report> report_from(const json& value) {
  const auto kind = value.at("kind").get<std::string>();
  if (kind == "measurement") return Report(measurement_from(value));
  if (kind == "overlap") return Report(overlap_from(value));
  if (kind == "gather_matmul") return Report(gather_matmul_from(value));
  if (kind == "skipped") return Report(Skipped{value.at("algorithm"), value.at("why")});
  if (kind == "trying") return Report(trying_from(value));
  if (kind == "dropped") return Report(dropped_from(value));
  if (kind == "tuned") return Report(tuned_from(value));
  if (kind == "tuned_all_gather_matmul") {
    const auto tuned = tuned_all_gather_matmul_from(value);
    if (!tuned.is_ok()) return Status(StatusCode::kMismatch, tuned.status().message());
    return Report(*tuned);
  }
  if (kind == "failure") {
    const StatusCode code =
        enumerator_in(value, "code", StatusCode::kInvalidArgument, StatusCode::kInternal);
    return Report(Failure{code, value.at("text")});
  }
  if (kind == "operations") return Report(operations_from(value));
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
    return Status(StatusCode::kMismatch, fmt::format("not a report: {}", text_of(error)));
  }
}

}  // namespace tutti::cli
