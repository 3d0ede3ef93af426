// Arrival traces as text. Reading trusts nothing: a file may have been written by hand.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_errors.hpp"
#include "base/json_integer.hpp"
#include "base/try.hpp"
#include "matmul/arrival_trace.hpp"

namespace tutti {
namespace {

using TraceJson = nlohmann::ordered_json;

constexpr std::string_view kArrivalSchema = "tutti.arrival/1";

TraceJson model_json(const ArrivalModel& model) {
  TraceJson json = {{"start_us", model.start_us},
                    {"operation_us", model.operation_us},
                    {"gigabytes_per_second", model.gigabytes_per_second},
                    {"jitter", model.jitter},
                    {"seed", model.seed}};
  if (model.straggler >= 0) {
    json["straggler"] = model.straggler;
    json["straggler_us"] = model.straggler_us;
  }
  return json;
}

double time_in(const TraceJson& json, const char* name) {
  const TraceJson& value = json.at(name);
  if (value.is_number()) return value.get<double>();
  throw nlohmann::detail::type_error::create(302, std::string(name) + " must be a number", &value);
}

ArrivalModel model_from(const TraceJson& json) {
  ArrivalModel model{.start_us = time_in(json, "start_us"),
                     .operation_us = time_in(json, "operation_us"),
                     .gigabytes_per_second = time_in(json, "gigabytes_per_second"),
                     .jitter = time_in(json, "jitter"),
                     .seed = integer_in<std::uint64_t>(json, "seed")};
  if (json.contains("straggler")) {
    model.straggler = integer_in<int>(json, "straggler");
    if (model.straggler >= 0) model.straggler_us = time_in(json, "straggler_us");
  }
  return model;
}

int integer_or(const TraceJson& json, const char* name, int otherwise) {
  return json.contains(name) ? integer_in<int>(json, name) : otherwise;
}

ArrivalTrace trace_from(const TraceJson& json) {
  ArrivalTrace trace{.machine = json.at("machine").get<std::string>(),
                     .ranks = integer_in<int>(json, "ranks"),
                     .own = integer_in<int>(json, "own"),
                     .chunks_per_shard = integer_in<int>(json, "chunks_per_shard"),
                     .k_groups = integer_or(json, "k_groups", 1),
                     .shard_groups = integer_or(json, "shard_groups", 0),
                     .bytes_per_chunk = integer_in<std::uint64_t>(json, "bytes_per_chunk")};
  if (json.at("kind") == "modelled") trace.model = model_from(json.at("model"));
  for (const TraceJson& each : json.at("arrivals").get_ref<const TraceJson::array_t&>()) {
    trace.arrivals.push_back({.chunk = integer_in<int>(each, "chunk"),
                              .source = integer_in<int>(each, "source"),
                              .bytes = integer_in<std::uint64_t>(each, "bytes"),
                              .ns = integer_in<std::uint64_t>(each, "ns")});
  }
  return trace;
}

// Of the arrival after `before_ns`; `seen`: which chunks have come.
std::string wrong_in(const ArrivalTrace& trace, const ArrivedChunk& each, std::uint64_t before_ns,
                     std::vector<bool>& seen) {
  const int chunks = trace.chunks_per_shard * trace.k_groups;
  if (each.chunk < 0 || each.chunk >= trace.ranks * chunks) return "there is no such chunk";
  if (each.source != each.chunk / chunks) {
    return fmt::format("it is of shard {}, not {}", each.chunk / chunks, each.source);
  }
  if (each.source == trace.own) return "it is of the own shard, which does not arrive";
  if (seen[static_cast<std::size_t>(each.chunk)]) return "it arrives twice";
  if (each.bytes == 0 || each.bytes > trace.bytes_per_chunk) {
    return fmt::format("{} bytes, where a whole chunk has {}", each.bytes, trace.bytes_per_chunk);
  }
  if (each.ns < before_ns) return "it arrives before the chunk that is listed before it";
  if (each.ns > kMostArrivalNs) return "it arrives after more than 10 s";
  seen[static_cast<std::size_t>(each.chunk)] = true;
  return {};
}

std::string wrong_in(const ArrivalTrace& trace) {
  const Status plan = check_arrival_plan(trace.plan(ArrivalOrder::kRotated));
  if (!plan.is_ok()) return plan.message();
  const Status model = trace.model ? check_arrival_model(*trace.model, trace.ranks) : Status::ok();
  if (!model.is_ok()) return model.message();
  std::vector<bool> seen(static_cast<std::size_t>(trace.plan(ArrivalOrder::kRotated).flags()));
  std::uint64_t before_ns = 0;
  for (const ArrivedChunk& each : trace.arrivals) {
    const std::string wrong = wrong_in(trace, each, before_ns, seen);
    if (!wrong.empty()) return fmt::format("chunk {}: {}", each.chunk, wrong);
    before_ns = each.ns;
  }
  return {};
}

}  // namespace

std::string to_json_text(const ArrivalTrace& trace) {
  const auto line = [](const TraceJson& json) {
    return json.dump(-1, ' ', false, TraceJson::error_handler_t::replace);
  };
  std::string text = fmt::format(
      "{{\"schema\": \"{}\", \"kind\": \"{}\", \"machine\": {},\n"
      " \"ranks\": {}, \"own\": {}, \"chunks_per_shard\": {}, \"bytes_per_chunk\": {},\n",
      kArrivalSchema, trace.model ? "modelled" : "measured", line(trace.machine), trace.ranks,
      trace.own, trace.chunks_per_shard, trace.bytes_per_chunk);
  if (trace.k_groups != 1 || trace.shard_groups != 0) {
    text += fmt::format(" \"k_groups\": {}, \"shard_groups\": {},\n", trace.k_groups,
                        trace.shard_groups);
  }
  if (trace.model) text += fmt::format(" \"model\": {},\n", line(model_json(*trace.model)));
  text += " \"arrivals\": [";
  const char* separator = "\n  ";
  for (const ArrivedChunk& each : trace.arrivals) {
    text += separator + line({{"chunk", each.chunk},
                              {"source", each.source},
                              {"bytes", each.bytes},
                              {"ns", each.ns}});
    separator = ",\n  ";
  }
  return text + "\n]}\n";
}

Result<ArrivalTrace> arrival_trace_from_json_text(std::string_view text, std::string_view file) {
  const auto malformed = [&](std::string_view what) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} does not hold an arrival trace: {}", file, what));
  };
  try {
    const TraceJson json = TraceJson::parse(text);
    if (json.at("schema") != kArrivalSchema) return malformed("its schema is not tutti.arrival/1");
    if (json.at("kind") != "measured" && json.at("kind") != "modelled") {
      return malformed("its kind is neither measured nor modelled");
    }
    ArrivalTrace trace = trace_from(json);
    const std::string wrong = wrong_in(trace);
    if (!wrong.empty()) return malformed(wrong);
    return trace;
  } catch (const TraceJson::exception& error) {
    return malformed(text_of(error));
  }
}

}  // namespace tutti
