// Files of links: schema tutti.links/1. Unknown fields are refused, since a misspelt one would be
// left out silently.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/json_errors.hpp"
#include "base/names.hpp"
#include "base/nearest.hpp"
#include "model/links.hpp"

namespace tutti::model {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kLinksSchema = "tutti.links/1";
constexpr std::size_t kMostRails = 1024;

constexpr std::array<Name<Chunks>, 3> kChunkNames = {
    {{Chunks::kTcp, "tcp"}, {Chunks::kRdma, "rdma"}, {Chunks::kRing, "ring"}}};

// What a number may be. It is never below 0.
struct NumberRange {
  double most = 0;
  bool may_be_zero = true;
  std::string_view unit = {};
};
constexpr NumberRange kRateRange{kMostGbitPerS, false, " Gbit/s"}, kTimeRange{1e9, true, " us"};
constexpr NumberRange kPartRange{1, false, ""}, kBytesRange{1e12, true, " bytes"};
constexpr NumberRange kSpeedRange{1e6, true, " GB/s"}, kRailRange{1000, false, ""};
constexpr int kMostProcessors = 1 << 20;

template <class Struct>
struct NumberField {
  std::string_view name;
  double Struct::*member;
  NumberRange range;
};
constexpr std::array<NumberField<Link>, 5> kLinkFields = {
    {{"gbit_per_s", &Link::gbit_per_s, kRateRange},
     {"delay_us", &Link::delay_us, kTimeRange},
     {"payload_part", &Link::payload_part, kPartRange},
     {"message_bytes", &Link::message_bytes, kBytesRange},
     {"burst_bytes", &Link::burst_bytes, kBytesRange}}};
constexpr std::array<NumberField<Processor>, 6> kProcessorFields = {
    {{"start_us", &Processor::start_us, kTimeRange},
     {"send_us", &Processor::send_us, kTimeRange},
     {"receive_us", &Processor::receive_us, kTimeRange},
     {"local_us", &Processor::local_us, kTimeRange},
     {"copy_gb_per_s", &Processor::copy_gb_per_s, kSpeedRange},
     {"sum_gb_per_s", &Processor::sum_gb_per_s, kSpeedRange}}};

// Reads one document. The first thing that is wrong is kept, what follows is not looked at.
class LinksReader {
 public:
  explicit LinksReader(std::string_view file) : file_(file) {}

  Result<Links> read(const ordered_json& document) {
    Links links;
    if (!is_object(document, "the document")) return failure_;
    refuse_others(
        document, "",
        {"schema", "name", "chunks", "source", "between", "within", "rails", "processor"});
    const std::string schema = text(document, "schema");
    if (schema != kLinksSchema) {
      fail(fmt::format("schema is '{}', and has to be '{}'", schema, kLinksSchema));
    }
    links.cluster.name = text(document, "name");
    links.source = text(document, "source");
    const auto chunks =
        parse_name<Chunks>(kChunkNames, {}, "chunks", text(document, "chunks", "tcp"));
    if (!chunks.is_ok()) fail(chunks.status().message());
    if (failure_.is_ok()) links.chunks = *chunks;
    links.cluster.between = link(document, "between", std::nullopt);
    links.cluster.within = link(document, "within", links.cluster.between);
    links.cluster.rails = rails(document);
    links.cluster.processor = processor(document);
    if (!failure_.is_ok()) return failure_;
    return links;
  }

 private:
  void fail(const std::string& what) {
    if (!failure_.is_ok()) return;
    failure_ = {StatusCode::kInvalidArgument, fmt::format("{}: {}", file_, what)};
  }

  bool is_object(const ordered_json& value, std::string_view where) {
    if (!value.is_object()) fail(fmt::format("{} has to be an object, {{...}}", where));
    return value.is_object();
  }

  void refuse_others(const ordered_json& object, std::string_view prefix,
                     std::vector<std::string_view> known) {
    for (const auto& [name, value] : object.items()) {
      if (std::ranges::count(known, name) > 0) continue;
      fail(fmt::format("unknown field '{}{}'{}", prefix, name, alternatives(name, known)));
    }
  }

  std::string text(const ordered_json& object, const char* name, const char* otherwise = "") {
    if (!object.contains(name)) return otherwise;
    if (object[name].is_string()) return object[name].get<std::string>();
    fail(fmt::format("{} has to be a text in quotes", name));
    return otherwise;
  }

  void number(const ordered_json& value, const std::string& where, const NumberRange& range,
              double& into) {
    const std::string expected =
        fmt::format("a number {} 0 and at most {:g}{}", range.may_be_zero ? "of at least" : "above",
                    range.most, range.unit);
    if (!value.is_number()) return fail(fmt::format("{} has to be {}", where, expected));
    const auto given = value.get<double>();
    const bool above = range.may_be_zero ? given >= 0 : given > 0;
    if (above && given <= range.most) {
      into = given;
    } else {
      fail(fmt::format("{} is {:g}, and has to be {}", where, given, expected));
    }
  }

  template <class Struct, std::size_t kCount>
  Struct numbers(const ordered_json& object, const std::string& where,
                 const std::array<NumberField<Struct>, kCount>& fields) {
    Struct made;
    for (const auto& [name, member, range] : fields) {
      const std::string key(name);
      if (object.contains(key))
        number(object[key], fmt::format("{}.{}", where, key), range, made.*member);
    }
    return made;
  }

  template <class Struct, std::size_t kCount>
  static std::vector<std::string_view> names_of(
      const std::array<NumberField<Struct>, kCount>& fields) {
    std::vector<std::string_view> names;
    names.reserve(kCount);
    for (const auto& field : fields) names.push_back(field.name);
    return names;
  }

  Link link(const ordered_json& document, const char* name, const std::optional<Link>& otherwise) {
    if (!document.contains(name)) {
      if (!otherwise) fail(fmt::format("{} is missing: the link between nodes", name));
      return otherwise.value_or(Link{});
    }
    const ordered_json& object = document[name];
    if (!is_object(object, name)) return {};
    refuse_others(object, fmt::format("{}.", name), names_of(kLinkFields));
    if (!object.contains("gbit_per_s")) fail(fmt::format("{}.gbit_per_s is missing", name));
    return numbers(object, name, kLinkFields);
  }

  Processor processor(const ordered_json& document) {
    constexpr const char *kName = "processor", *kShared = "shared";
    if (!document.contains(kName)) return {};
    const ordered_json& object = document[kName];
    if (!is_object(object, kName)) return {};
    std::vector<std::string_view> known = names_of(kProcessorFields);
    known.emplace_back(kShared);
    refuse_others(object, "processor.", std::move(known));
    Processor made = numbers(object, kName, kProcessorFields);
    if (!object.contains(kShared)) return made;
    const ordered_json& shared = object[kShared];
    const bool is_count =
        shared.is_number_unsigned() && shared.get<std::uint64_t>() <= kMostProcessors;
    if (is_count) {
      made.shared = shared.get<int>();
    } else {
      fail(fmt::format("processor.shared has to be a whole number from 0 to {}", kMostProcessors));
    }
    return made;
  }

  std::vector<double> rails(const ordered_json& document) {
    std::vector<double> parts;
    if (!document.contains("rails")) return parts;
    const ordered_json& list = document["rails"];
    if (!list.is_array() || list.size() > kMostRails) {
      fail(fmt::format("rails has to be a list of at most {} numbers", kMostRails));
      return parts;
    }
    parts.resize(list.size());
    for (std::size_t rail = 0; rail < parts.size(); ++rail) {
      number(list[rail], fmt::format("rails[{}]", rail), kRailRange, parts[rail]);
    }
    return parts;
  }

  std::string_view file_;
  Status failure_;
};

template <class Struct, std::size_t kCount>
ordered_json object_of(const Struct& value, const std::array<NumberField<Struct>, kCount>& fields) {
  ordered_json object;
  for (const auto& field : fields) object[std::string(field.name)] = value.*(field.member);
  return object;
}

ordered_json document_of(const Links& links) {
  const ClusterModel& cluster = links.cluster;
  ordered_json processor = object_of(cluster.processor, kProcessorFields);
  processor["shared"] = cluster.processor.shared;
  return {{"schema", kLinksSchema},
          {"name", cluster.name},
          {"chunks", to_string(links.chunks)},
          {"source", links.source},
          {"between", object_of(cluster.between, kLinkFields)},
          {"within", object_of(cluster.within, kLinkFields)},
          {"rails", cluster.rails},
          {"processor", std::move(processor)}};
}

}  // namespace

std::string_view to_string(Chunks chunks) { return name_of<Chunks>(kChunkNames, chunks); }

Result<Links> links_from_json_text(std::string_view text, std::string_view file) {
  try {
    return LinksReader(file).read(ordered_json::parse(text));
  } catch (const ordered_json::exception& error) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: is not JSON: {}", file, text_of(error)));
  }
}

std::string to_json_text(const Links& links) {
  return document_of(links).dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string to_json_line(const Links& links) {
  return document_of(links).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::size_t delay_bytes(const Link& link) {
  constexpr double kBytesPerUs = 125;  // of 1 Gbit/s
  return static_cast<std::size_t>(link.gbit_per_s * kBytesPerUs * link.delay_us);
}

}  // namespace tutti::model
