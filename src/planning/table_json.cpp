// Tuning tables as text. Reading trusts nothing: a file may have been written by hand.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <array>
#include <limits>
#include <utility>

#include "base/json_errors.hpp"
#include "base/try.hpp"
#include "planning/all_gather_matmul_json.hpp"
#include "planning/table.hpp"
#include "planning/table_fields.hpp"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "tutti.tuning/1";
constexpr int kMostRanks = 1 << 20;
constexpr int kMostCores = 1 << 20;
constexpr int kMostBlocks = 1 << 16;
constexpr int kMostThreads = 1024;  // CUDA's limit per block
constexpr std::array<std::string_view, 20> kFields = {
    "collective",   "backend",   "gpu",    "ranks",   "cores",       "buffers", "min_bytes",
    "max_bytes",    "algorithm", "blocks", "threads", "chunk_bytes", "time_us", "runner_up",
    "runner_up_us", "date",      "driver", "samples", "provenance",  "source"};

Status invalid(std::string text) { return {StatusCode::kInvalidArgument, std::move(text)}; }

Provenance read_provenance(TableFields& reader) {
  const std::string text = reader.text("provenance", true);
  if (text == "published") return Provenance::kPublished;
  if (!text.empty() && text != "measured")
    reader.fail("provenance", "must be measured or published");
  return Provenance::kMeasured;
}

// Whether the buffers were plain.
bool read_buffers(TableFields& reader) {
  const std::string text = reader.text("buffers", true);
  if (!text.empty() && text != "symmetric" && text != "plain") {
    reader.fail("buffers", "must be symmetric or plain");
  }
  return text == "plain";
}

// It names families, and nothing that holds only where it was measured.
void check_published(TableFields& reader, const TuningEntry& entry) {
  for (const auto& [field, is_there] :
       {std::pair("blocks", entry.blocks > 0), std::pair("threads", entry.threads > 0),
        std::pair("chunk_bytes", entry.chunk_bytes > 0), std::pair("time_us", entry.time_us > 0),
        std::pair("runner_up_us", entry.runner_up_us > 0), std::pair("samples", entry.samples > 0),
        std::pair("driver", !entry.driver.empty())}) {
    if (is_there) reader.fail(field, "is of a measurement, and the entry is published");
  }
  for (const auto& [field, id] :
       {std::pair("algorithm", entry.algorithm), std::pair("runner_up", entry.runner_up)}) {
    const auto family = parse_family(name_of_id(id));
    if (!id.empty() && !family.is_ok()) reader.fail(field, "names an " + family.status().message());
  }
}

// What no single field can say.
void check_entry(TableFields& reader, const TuningEntry& entry) {
  if (entry.backend == Backend::kAuto) reader.fail("backend", "must be host or cuda");
  if (entry.backend == Backend::kCuda && entry.gpu.empty()) {
    reader.fail("gpu", "must name the GPU that was measured");
  }
  if (entry.backend == Backend::kHost && !entry.gpu.empty()) {
    reader.fail("gpu", "must be absent for the host backend");
  }
  if (entry.backend == Backend::kCuda && entry.cores > 0) {
    reader.fail("cores", "must be absent for GPUs");
  }
  if (entry.min_bytes > entry.max_bytes) {
    reader.fail("min_bytes",
                fmt::format("is {}, more than max_bytes, {}", entry.min_bytes, entry.max_bytes));
  }
  if (entry.runner_up.empty() && entry.runner_up_us != 0) {
    reader.fail("runner_up_us", "is the time of a runner-up that is not named");
  }
  const std::string prefix = std::string(to_string(entry.collective)) + "/";
  for (const auto& [field, id] :
       {std::pair("algorithm", entry.algorithm), std::pair("runner_up", entry.runner_up)}) {
    if (!id.empty() && id.substr(0, prefix.size()) != prefix) {
      reader.fail(field, fmt::format("is '{}', which does not begin with '{}'", id, prefix));
    }
  }
  if (entry.provenance == Provenance::kPublished) return check_published(reader, entry);
  if (!entry.source.empty()) reader.fail("source", "is for what is published");
}

Result<TuningEntry> parse_entry(const Json& json) {
  if (!json.is_object()) return invalid("is not an object");
  TableFields reader(json, kFields);
  TuningEntry entry;
  entry.provenance = read_provenance(reader);
  const bool published = entry.provenance == Provenance::kPublished;
  entry.source = reader.text("source", !published);
  entry.collective = reader.name("collective", parse_collective, entry.collective);
  entry.backend = reader.name("backend", parse_backend, entry.backend);
  entry.gpu = reader.text("gpu", true);
  entry.ranks = reader.integer<int>("ranks", 1, kMostRanks);
  entry.cores = reader.integer<int>("cores", 1, kMostCores, true);
  entry.plain = read_buffers(reader);
  entry.min_bytes = reader.integer<std::size_t>("min_bytes", 0, SIZE_MAX);
  entry.max_bytes = reader.integer<std::size_t>("max_bytes", 0, SIZE_MAX);
  entry.algorithm = reader.text("algorithm");
  entry.blocks = reader.integer<int>("blocks", 0, kMostBlocks, true);
  entry.threads = reader.integer<int>("threads", 0, kMostThreads, true);
  entry.chunk_bytes = reader.integer<std::size_t>("chunk_bytes", 0, kMostChunkBytes, true);
  entry.time_us = reader.microseconds("time_us", published);
  entry.runner_up = reader.text("runner_up", true);
  entry.runner_up_us = reader.microseconds("runner_up_us", true);
  entry.date = reader.text("date", published);
  entry.driver = reader.text("driver", published || entry.backend == Backend::kHost);
  entry.samples =
      reader.integer<int>("samples", published ? 0 : 1, std::numeric_limits<int>::max(), published);
  check_entry(reader, entry);
  if (!reader.status().is_ok()) return reader.status();
  return entry;
}

Json entry_to_json(const TuningEntry& entry) {
  Json json;
  json["collective"] = to_string(entry.collective);
  json["backend"] = to_string(entry.backend);
  if (!entry.gpu.empty()) json["gpu"] = entry.gpu;
  json["ranks"] = entry.ranks;
  if (entry.cores > 0) json["cores"] = entry.cores;
  if (entry.plain) json["buffers"] = "plain";
  json["min_bytes"] = entry.min_bytes;
  json["max_bytes"] = entry.max_bytes;
  json["algorithm"] = entry.algorithm;
  if (entry.provenance == Provenance::kPublished) {
    if (!entry.runner_up.empty()) json["runner_up"] = entry.runner_up;
    if (!entry.date.empty()) json["date"] = entry.date;
    json["provenance"] = "published";
    json["source"] = entry.source;
    return json;
  }
  json["blocks"] = entry.blocks;
  json["threads"] = entry.threads;
  json["chunk_bytes"] = entry.chunk_bytes;
  json["time_us"] = entry.time_us;
  if (!entry.runner_up.empty()) {
    json["runner_up"] = entry.runner_up;
    json["runner_up_us"] = entry.runner_up_us;
  }
  json["date"] = entry.date;
  if (!entry.driver.empty()) json["driver"] = entry.driver;
  json["samples"] = entry.samples;
  return json;
}

Status add_entry(const Json& json, TuningEntries& entries) {
  if (is_all_gather_matmul_entry(json)) {
    TUTTI_ASSIGN(entries.all_gather_matmul.emplace_back(), parse_all_gather_matmul_entry(json));
    return Status::ok();
  }
  TUTTI_ASSIGN(entries.collectives.emplace_back(), parse_entry(json));
  return Status::ok();
}

}  // namespace

Result<TuningEntries> parse_tuning_json(std::string_view text, std::string_view file) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    return invalid(fmt::format("{}: {}", file, text_of(error)));
  }
  const auto schema = json.find("schema");  // the end for what is no object
  if (schema == json.end() || *schema != kSchema) {
    return invalid(fmt::format(
        "{}: not a tuning table; it must be an object with \"schema\": \"{}\"", file, kSchema));
  }
  const auto list = json.find("entries");
  if (list == json.end() || !list->is_array()) {
    return invalid(fmt::format("{}: field 'entries' must be a list", file));
  }
  TuningEntries entries;
  std::size_t at = 0;
  for (const Json& item : *list) {
    const Status added = add_entry(item, entries);
    if (!added.is_ok()) return added.with_context(fmt::format("{}: entry {}", file, at));
    ++at;
  }
  return entries;
}

std::string write_tuning_json(const TuningEntries& entries) {
  // One line per entry: tables are read by people, and compared by them line by line.
  std::string text = fmt::format("{{\n  \"schema\": \"{}\",\n  \"entries\": [", kSchema);
  bool first = true;
  const auto add = [&](const Json& json) {
    text += std::exchange(first, false) ? "\n    " : ",\n    ";
    text += json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  for (const TuningEntry& entry : entries.collectives) add(entry_to_json(entry));
  for (const AllGatherMatmulEntry& entry : entries.all_gather_matmul) add(to_json_value(entry));
  text += first ? "]\n}\n" : "\n  ]\n}\n";
  return text;
}

}  // namespace tutti
