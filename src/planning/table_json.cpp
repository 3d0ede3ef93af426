// Tuning tables as text. Reading trusts nothing: a file may have been written by hand.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/try.hpp"
#include "planning/table.hpp"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "tutti.tuning/1";
constexpr int kMostRanks = 1 << 20;
constexpr int kMostBlocks = 1 << 16;
constexpr int kMostThreads = 1024;  // CUDA's limit per block
constexpr std::array<std::string_view, 18> kFields = {
    "collective",   "backend", "gpu",     "ranks",       "min_bytes",  "max_bytes",
    "algorithm",    "blocks",  "threads", "chunk_bytes", "time_us",    "runner_up",
    "runner_up_us", "date",    "driver",  "samples",     "provenance", "source"};

Status invalid(std::string text) { return {StatusCode::kInvalidArgument, std::move(text)}; }

// A list within lists within lists is not printed: however deep it is, it is one wrong value.
std::string shown(const Json& value) {
  return value.is_structured() ? fmt::format("an {}", value.type_name()) : value.dump();
}

// Reads the fields of one entry; the first failure stays, later reads do nothing.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    for (const auto& [name, value] : json.items()) {
      if (std::ranges::find(kFields, name) == kFields.end())
        fail(name, "is not a field of an entry");
    }
  }

  const Status& status() const { return status_; }
  void fail(std::string_view field, std::string_view text) {
    if (status_.is_ok()) status_ = invalid(fmt::format("field '{}' {}", field, text));
  }

  // Absent: empty where it is optional, else a failure.
  std::string text(const char* field, bool optional = false) {
    const Json* value = find(field, optional);
    if (value == nullptr) return {};
    if (!value->is_string()) {
      fail(field, "must be a text");
      return {};
    }
    const auto result = value->get<std::string>();
    if (result.empty() && !optional) fail(field, "must not be empty");
    return result;
  }

  template <class T>
  T integer(const char* field, std::uint64_t least, std::uint64_t most, bool optional = false) {
    const Json* value = find(field, optional);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < least ||
        value->get<std::uint64_t>() > most) {
      fail(field,
           fmt::format("must be an integer from {} to {}, and is {}", least, most, shown(*value)));
      return 0;
    }
    return static_cast<T>(value->get<std::uint64_t>());
  }

  double microseconds(const char* field, bool optional = false) {
    const Json* value = find(field, optional);
    if (value == nullptr) return 0;
    if (!value->is_number() || !(value->get<double>() >= 0) ||
        !std::isfinite(value->get<double>())) {
      fail(field, fmt::format("must be a number of microseconds, and is {}", shown(*value)));
      return 0;
    }
    return value->get<double>();
  }

  // A name that `parse` knows.
  template <class T>
  T name(const char* field, Result<T> (*parse)(std::string_view), T otherwise) {
    const std::string value = text(field);
    if (!status_.is_ok()) return otherwise;
    const Result<T> parsed = parse(value);
    if (parsed.is_ok()) return *parsed;
    fail(field, "holds an " + parsed.status().message());
    return otherwise;
  }

 private:
  const Json* find(const char* field, bool optional) {
    const auto found = json_.find(field);
    if (found != json_.end()) return &*found;
    if (!optional) fail(field, "is missing");
    return nullptr;
  }

  const Json& json_;
  Status status_;
};

Provenance read_provenance(Reader& reader) {
  const std::string text = reader.text("provenance", true);
  if (text == "published") return Provenance::kPublished;
  if (!text.empty() && text != "measured")
    reader.fail("provenance", "must be measured or published");
  return Provenance::kMeasured;
}

// It names families, and nothing that holds only where it was measured.
void check_published(Reader& reader, const TuningEntry& entry) {
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
void check_entry(Reader& reader, const TuningEntry& entry) {
  if (entry.backend == Backend::kAuto) reader.fail("backend", "must be host or cuda");
  if (entry.backend == Backend::kCuda && entry.gpu.empty()) {
    reader.fail("gpu", "must name the GPU that was measured");
  }
  if (entry.backend == Backend::kHost && !entry.gpu.empty()) {
    reader.fail("gpu", "must be absent for the host backend");
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
  Reader reader(json);
  TuningEntry entry;
  entry.provenance = read_provenance(reader);
  const bool published = entry.provenance == Provenance::kPublished;
  entry.source = reader.text("source", !published);
  entry.collective = reader.name("collective", parse_collective, entry.collective);
  entry.backend = reader.name("backend", parse_backend, entry.backend);
  entry.gpu = reader.text("gpu", true);
  entry.ranks = reader.integer<int>("ranks", 1, kMostRanks);
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

// nlohmann's text without its own prefix: "line 3, column 7: syntax error ...".
std::string_view syntax_error(std::string_view what) {
  const std::size_t at = what.find("at line ");
  return at == std::string_view::npos ? what : what.substr(at + 3);
}

}  // namespace

Result<std::vector<TuningEntry>> parse_tuning_json(std::string_view text, std::string_view file) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    return invalid(fmt::format("{}: {}", file, syntax_error(error.what())));
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
  std::vector<TuningEntry> entries;
  for (const Json& item : *list) {
    auto entry = parse_entry(item);
    if (!entry.is_ok()) {
      return entry.status().with_context(fmt::format("{}: entry {}", file, entries.size()));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

std::string write_tuning_json(const std::vector<TuningEntry>& entries) {
  // One line per entry: tables are read by people, and compared by them line by line.
  std::string text = fmt::format("{{\n  \"schema\": \"{}\",\n  \"entries\": [", kSchema);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    text += i == 0 ? "\n    " : ",\n    ";
    text += entry_to_json(entries[i]).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  text += entries.empty() ? "]\n}\n" : "\n  ]\n}\n";
  return text;
}

}  // namespace tutti
