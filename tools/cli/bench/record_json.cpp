// Records as JSON text and back. Every field is required but those that came later.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "base/json_errors.hpp"
#include "base/json_integer.hpp"
#include "bench/record.hpp"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSchema = "tutti.bench/1";

// Three decimals: nanoseconds. More would only be noise in a diff. What has no such decimals is
// left as it is.
double rounded(double value) {
  return std::abs(value) < 1e12 ? std::round(value * 1e3) / 1e3 : value;
}

ordered_json to_value(const Statistics& s) {
  return {{"p50", rounded(s.p50)}, {"p90", rounded(s.p90)}, {"p99", rounded(s.p99)},
          {"min", rounded(s.min)}, {"max", rounded(s.max)}, {"n", s.n}};
}

ordered_json to_value(const Calibration& c) {
  ordered_json value = {{"kernel_gap_us", rounded(c.kernel_gap_us)}, {"hop_us", rounded(c.hop_us)}};
  if (c.copy_gbps > 0) {
    value["copy_gbps"] = rounded(c.copy_gbps);
    value["copy_bytes"] = c.copy_bytes;
  }
  return value;
}

ordered_json to_value(const Environment& e) {
  ordered_json value = {{"host", e.host},           {"gpu", e.gpu},
                        {"gpus", e.gpus},           {"driver", e.driver},
                        {"cuda", e.cuda},           {"nccl", e.nccl},
                        {"multicast", e.multicast}, {"date", e.date},
                        {"command", e.command},     {"calibration", to_value(e.calibration)}};
  if (!e.torch.empty()) value["torch"] = e.torch;
  if (!e.vllm.empty()) value["vllm"] = e.vllm;
  if (!e.why_no_multicast.empty()) value["why_no_multicast"] = e.why_no_multicast;
  if (!e.link.empty()) value["link"] = ordered_json::parse(e.link);
  return value;
}

ordered_json to_value(const std::optional<double>& value) {
  return value ? ordered_json(rounded(*value)) : ordered_json(nullptr);
}

// What is not known is left out.
void add_known(ordered_json& value, const char* name, double number) {
  if (number > 0) value[name] = number;
}

ordered_json to_value(const OverlapRow& o) {
  ordered_json per_rank = ordered_json::array();
  for (const RankTimes& times : o.per_rank) {
    per_rank.push_back({{"mean", rounded(times.mean)},
                        {"p50", rounded(times.p50)},
                        {"p90", rounded(times.p90)},
                        {"max", rounded(times.max)}});
  }
  ordered_json value = {{"phase", o.phase},
                        {"m", o.m},
                        {"n", o.n},
                        {"k", o.k},
                        {"dependent", o.dependent},
                        {"tf32", o.tf32},
                        {"library", o.library},
                        {"mean_us", rounded(o.mean_us)},
                        {"per_rank_us", std::move(per_rank)},
                        {"matmul_us", rounded(o.matmul_us)},
                        {"gather_us", rounded(o.gather_us)},
                        {"tflops", rounded(o.tflops)},
                        {"exposed_us", to_value(o.exposed_us)},
                        {"efficiency", to_value(o.efficiency)},
                        {"matmul_slowdown", to_value(o.matmul_slowdown)}};
  if (o.compute != OverlapRow{}.compute) value["compute"] = o.compute;
  if (o.pause_ms > 0) value["pause_ms"] = o.pause_ms;
  add_known(value, "megahertz", rounded(o.megahertz));
  return value;
}

// Six decimals, for ratios and parts of a whole.
double finely_rounded(double value) {
  return std::abs(value) < 1e9 ? std::round(value * 1e6) / 1e6 : value;
}

ordered_json to_value(const ArrivalRow& a) {
  ordered_json value = {{"ranks", a.ranks},
                        {"chunks", a.chunks},
                        {"arrival", a.arrival},
                        {"over_own", finely_rounded(a.over_own)}};
  if (a.k_groups != 1) value["k_groups"] = a.k_groups;
  if (a.pullers != 0) value["pullers"] = a.pullers;
  if (!a.trace.empty()) value["trace"] = a.trace;
  if (a.order.empty()) return value;
  value["order"] = a.order;
  value["last_us"] = rounded(a.last_us);
  value["bound_us"] = rounded(a.bound_us);
  value["over_bound"] = finely_rounded(a.over_bound);
  value["predicted_us"] = rounded(a.predicted_us);
  value["predicted_error"] = finely_rounded(a.predicted_error);
  value["parts_us"] = {
      {"forecast", rounded(a.parts.forecast_us)}, {"clock", rounded(a.parts.clock_us)},
      {"deficit", rounded(a.parts.deficit_us)},   {"order", rounded(a.parts.order_us)},
      {"gating", rounded(a.parts.gating_us)},     {"contention", rounded(a.parts.contention_us)}};
  return value;
}

// Six decimals, for ratios.
ordered_json finely_rounded(const std::optional<double>& value) {
  return value ? ordered_json(finely_rounded(*value)) : ordered_json(nullptr);
}

ordered_json to_value(const GatheredRow& g) {
  ordered_json value = {{"calls", g.calls},
                        {"host_us", rounded(g.host_us)},
                        {"alone", g.alone},
                        {"speed_up", finely_rounded(g.speed_up)},
                        {"over_alone", finely_rounded(g.over_alone)},
                        {"exposed_us", to_value(g.exposed_us)}};
  if (!g.pipeline.empty()) value["pipeline"] = g.pipeline;
  return value;
}

ordered_json to_value(const MatmulRow& m) {
  ordered_json value = {{"m", m.m},
                        {"n", m.n},
                        {"k", m.k},
                        {"layout", m.layout},
                        {"products", m.products},
                        {"bias", m.bias},
                        {"config", m.config},
                        {"library", m.library},
                        {"tflops", finely_rounded(m.tflops)},
                        {"ratio", finely_rounded(m.ratio)}};
  if (!m.tile.empty()) value["tile"] = m.tile;
  if (m.noise) {
    value["noise"] = {{"p10", finely_rounded(m.noise->p10)},
                      {"p50", finely_rounded(m.noise->p50)},
                      {"p90", finely_rounded(m.noise->p90)}};
  }
  add_known(value, "megahertz", rounded(m.megahertz));
  add_known(value, "watts", rounded(m.watts));
  add_known(value, "utilisation", finely_rounded(m.utilisation));
  add_known(value, "fill", finely_rounded(m.fill));
  if (m.arrival) value["arrival"] = to_value(*m.arrival);
  if (m.gathered) value["gathered"] = to_value(*m.gathered);
  return value;
}

ordered_json to_value(const Row& r) {
  ordered_json per_rank = ordered_json::array();
  for (const double time : r.per_rank_p50_us) per_rank.push_back(rounded(time));
  ordered_json value = {{"collective", r.collective},
                        {"algorithm", r.algorithm},
                        {"backend", r.backend},
                        {"ranks", r.ranks},
                        {"dtype", r.dtype},
                        {"op", r.op},
                        {"bytes", r.bytes},
                        {"count", r.count},
                        {"in_place", r.in_place},
                        {"buffers", r.buffers},
                        {"mode", r.mode},
                        {"graph_operations", r.graph_operations},
                        {"chained", r.chained},
                        {"cache", r.cache},
                        {"launch", r.launch},
                        {"blocks", r.blocks},
                        {"threads", r.threads},
                        {"chunk_bytes", r.chunk_bytes},
                        {"time_us", to_value(r.time_us)},
                        {"per_rank_p50_us", std::move(per_rank)},
                        {"copy_us", rounded(r.copy_us)},
                        {"algbw_gbps", rounded(r.algbw_gbps)},
                        {"busbw_gbps", rounded(r.busbw_gbps)},
                        {"wrong", r.wrong ? ordered_json(*r.wrong) : ordered_json(nullptr)},
                        {"chosen", r.chosen}};
  if (r.hidden > 0) value["hidden"] = r.hidden;
  if (r.root > 0) value["root"] = r.root;
  if (r.emulated) value["emulated"] = true;
  add_known(value, "sent_bytes", rounded(r.sent_bytes));
  add_known(value, "cpu_share", rounded(r.cpu_share));
  if (r.overlap) value["overlap"] = to_value(*r.overlap);
  if (r.matmul) value["matmul"] = to_value(*r.matmul);
  return value;
}

[[noreturn]] void refuse(const char* name, const std::string& what, const ordered_json& value) {
  throw nlohmann::detail::type_error::create(302, fmt::format("{} {}", name, what), &value);
}

// Nothing that is counted is negative.
template <class T>
T count_in(const ordered_json& j, const char* name, T least = 0) {
  const T value = integer_in<T>(j, name);
  if (value < least) refuse(name, fmt::format("is {}, and at least {}", value, least), j.at(name));
  return value;
}

// Times in microseconds, rates, and ratios. Beyond this they are none, and could not be drawn.
constexpr double kMostNumber = 1e15;

double number(const ordered_json& value, const char* name) {
  if (!value.is_number()) refuse(name, "must be a number", value);
  const auto result = value.get<double>();
  if (std::abs(result) <= kMostNumber) return result;
  refuse(name, fmt::format("is beyond {:g}", kMostNumber), value);
}
double number_in(const ordered_json& j, const char* name) { return number(j.at(name), name); }

Statistics statistics_from(const ordered_json& j) {
  return {.p50 = number_in(j, "p50"),
          .p90 = number_in(j, "p90"),
          .p99 = number_in(j, "p99"),
          .min = number_in(j, "min"),
          .max = number_in(j, "max"),
          .n = integer_in<std::size_t>(j, "n")};
}

Environment environment_from(const ordered_json& j) {
  Environment e{.host = j.at("host"),
                .gpu = j.at("gpu"),
                .gpus = count_in<int>(j, "gpus"),
                .driver = j.at("driver"),
                .cuda = j.at("cuda"),
                .nccl = j.at("nccl"),
                .torch = j.value("torch", ""),
                .vllm = j.value("vllm", ""),
                .multicast = j.at("multicast"),
                .why_no_multicast = j.value("why_no_multicast", ""),
                .date = j.at("date"),
                .command = j.at("command")};
  if (j.contains("link")) {
    if (!j["link"].is_object()) refuse("link", "must be an object", j["link"]);
    e.link = j["link"].dump();
  }
  if (j.contains("calibration")) {
    const ordered_json& c = j["calibration"];
    e.calibration = {.kernel_gap_us = number_in(c, "kernel_gap_us"),
                     .hop_us = number_in(c, "hop_us")};
    if (c.contains("copy_gbps")) {
      e.calibration.copy_gbps = number_in(c, "copy_gbps");
      e.calibration.copy_bytes = integer_in<std::size_t>(c, "copy_bytes");
    }
  }
  return e;
}

std::optional<double> optional_from(const ordered_json& j, const char* name) {
  return j.at(name).is_null() ? std::nullopt : std::optional(number_in(j, name));
}

double number_or_zero(const ordered_json& j, const char* name) {
  return j.contains(name) ? number_in(j, name) : 0;
}

OverlapRow overlap_from(const ordered_json& j) {
  OverlapRow o{.phase = j.at("phase"),
               .m = integer_in<std::size_t>(j, "m"),
               .n = integer_in<std::size_t>(j, "n"),
               .k = integer_in<std::size_t>(j, "k"),
               .dependent = j.at("dependent"),
               .tf32 = j.at("tf32"),
               .compute = j.value("compute", OverlapRow{}.compute),
               .pause_ms = j.contains("pause_ms") ? count_in<int>(j, "pause_ms") : 0,
               .library = j.at("library"),
               .mean_us = number_in(j, "mean_us"),
               .matmul_us = number_in(j, "matmul_us"),
               .gather_us = number_in(j, "gather_us"),
               .tflops = number_in(j, "tflops"),
               .megahertz = number_or_zero(j, "megahertz"),
               .exposed_us = optional_from(j, "exposed_us"),
               .efficiency = optional_from(j, "efficiency"),
               .matmul_slowdown = optional_from(j, "matmul_slowdown")};
  for (const ordered_json& times : j.at("per_rank_us")) {
    o.per_rank.push_back({number_in(times, "mean"), number_in(times, "p50"),
                          number_in(times, "p90"), number_in(times, "max")});
  }
  return o;
}

ArrivalRow arrival_from(const ordered_json& j) {
  ArrivalRow a{.ranks = count_in<int>(j, "ranks", 1),
               .chunks = count_in<int>(j, "chunks", 1),
               .k_groups = j.contains("k_groups") ? count_in<int>(j, "k_groups", 1) : 1,
               .pullers = j.contains("pullers") ? count_in<int>(j, "pullers", 0) : 0,
               .arrival = j.at("arrival"),
               .trace = j.value("trace", ""),
               .order = j.value("order", ""),
               .over_own = number_in(j, "over_own")};
  if (a.order.empty()) return a;
  a.last_us = number_in(j, "last_us");
  a.bound_us = number_in(j, "bound_us");
  a.over_bound = number_in(j, "over_bound");
  a.predicted_us = number_in(j, "predicted_us");
  a.predicted_error = number_in(j, "predicted_error");
  const ordered_json& parts = j.at("parts_us");
  a.parts = {.forecast_us = number_in(parts, "forecast"),
             .clock_us = number_in(parts, "clock"),
             .deficit_us = number_in(parts, "deficit"),
             .order_us = number_in(parts, "order"),
             .gating_us = number_in(parts, "gating"),
             .contention_us = number_in(parts, "contention")};
  return a;
}

GatheredRow gathered_from(const ordered_json& j) {
  return {.pipeline = j.value("pipeline", ""),
          .calls = count_in<int>(j, "calls", 1),
          .host_us = number_in(j, "host_us"),
          .alone = j.at("alone"),
          .speed_up = optional_from(j, "speed_up"),
          .over_alone = optional_from(j, "over_alone"),
          .exposed_us = optional_from(j, "exposed_us")};
}

MatmulRow matmul_from(const ordered_json& j) {
  MatmulRow m{.m = integer_in<std::size_t>(j, "m"),
              .n = integer_in<std::size_t>(j, "n"),
              .k = integer_in<std::size_t>(j, "k"),
              .layout = j.at("layout"),
              .products = count_in<int>(j, "products", 1),
              .bias = j.at("bias"),
              .tile = j.value("tile", ""),
              .config = j.at("config"),
              .library = j.at("library"),
              .tflops = number_in(j, "tflops"),
              .ratio = number_in(j, "ratio"),
              .megahertz = number_or_zero(j, "megahertz"),
              .watts = number_or_zero(j, "watts"),
              .utilisation = number_or_zero(j, "utilisation"),
              .fill = number_or_zero(j, "fill")};
  if (j.contains("noise")) {
    const ordered_json& noise = j["noise"];
    m.noise = {number_in(noise, "p10"), number_in(noise, "p50"), number_in(noise, "p90")};
  }
  if (j.contains("arrival")) m.arrival = arrival_from(j["arrival"]);
  if (j.contains("gathered")) m.gathered = gathered_from(j["gathered"]);
  return m;
}

Row row_from(const ordered_json& j) {
  Row row{.collective = j.at("collective"),
          .algorithm = j.at("algorithm"),
          .backend = j.at("backend"),
          .ranks = count_in<int>(j, "ranks", 1),
          .dtype = j.at("dtype"),
          .op = j.at("op"),
          .bytes = integer_in<std::size_t>(j, "bytes"),
          .count = integer_in<std::size_t>(j, "count"),
          .hidden = j.contains("hidden") ? count_in<int>(j, "hidden") : 0,
          .root = j.contains("root") ? count_in<int>(j, "root") : 0,
          .in_place = j.at("in_place"),
          .buffers = j.at("buffers"),
          .mode = j.at("mode"),
          .graph_operations = count_in<int>(j, "graph_operations"),
          .chained = j.at("chained"),
          .cache = j.at("cache"),
          .launch = j.value("launch", "processes"),
          .blocks = count_in<int>(j, "blocks"),
          .threads = count_in<int>(j, "threads"),
          .chunk_bytes = integer_in<std::size_t>(j, "chunk_bytes"),
          .time_us = statistics_from(j.at("time_us")),
          .copy_us = number_in(j, "copy_us"),
          .sent_bytes = number_or_zero(j, "sent_bytes"),
          .cpu_share = number_or_zero(j, "cpu_share"),
          .algbw_gbps = number_in(j, "algbw_gbps"),
          .busbw_gbps = number_in(j, "busbw_gbps"),
          .chosen = j.at("chosen"),
          .emulated = j.value("emulated", false)};
  for (const auto& time : j.at("per_rank_p50_us").get_ref<const ordered_json::array_t&>()) {
    row.per_rank_p50_us.push_back(number(time, "per_rank_p50_us"));
  }
  if (!j.at("wrong").is_null()) row.wrong = integer_in<std::uint64_t>(j, "wrong");
  if (j.contains("overlap")) row.overlap = overlap_from(j["overlap"]);
  if (j.contains("matmul")) row.matmul = matmul_from(j["matmul"]);
  return row;
}

Record record_from(const ordered_json& j) {
  Record record{.tutti = j.at("tutti"),
                .commit = j.value("commit", ""),
                .environment = environment_from(j.at("environment"))};
  for (const ordered_json& row : j.at("rows")) record.rows.push_back(row_from(row));
  return record;
}

}  // namespace

std::string to_json_text(const Record& record) {
  // One line per row, so that a diff of two runs reads as a table.
  const auto line = [](const ordered_json& value) {
    return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  std::string text = fmt::format(
      "{{\"schema\": \"{}\", \"tutti\": {}{},\n \"environment\": {},\n "
      "\"rows\": [",
      kSchema, line(record.tutti),
      record.commit.empty() ? "" : ", \"commit\": " + line(record.commit),
      line(to_value(record.environment)));
  const char* separator = "\n  ";
  for (const Row& row : record.rows) {
    text += separator + line(to_value(row));
    separator = ",\n  ";
  }
  return text + "\n]}\n";
}

Result<Record> record_from_json_text(std::string_view text, std::string_view file) {
  const auto malformed = [&](std::string_view what) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} does not hold results of `tutti bench`: {}", file, what));
  };
  try {
    const ordered_json value = ordered_json::parse(text);
    if (value.at("schema") != kSchema) return malformed("its schema is not tutti.bench/1");
    return record_from(value);
  } catch (const ordered_json::exception& error) {
    return malformed(text_of(error));
  }
}

}  // namespace tutti::cli
