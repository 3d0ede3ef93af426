#include "group/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "memory/wire.hpp"

namespace tutti {
namespace {

// Of a table that no file of the user's holds, its name says where it is from.
AgreedValue of_table(const TuningSource& source, std::uint64_t hash) {
  AgreedValue table{"tuning table " + source.name, fmt::format("{:016x}", hash), {}};
  if (source.source == PlanSource::kUserFile) table.name = "TUTTI_TUNING_FILE";
  if (source.source == PlanSource::kUserCache) table.name = "TUTTI_TUNING_CACHE";
  if (!table.name.starts_with("tuning")) table.where = source.name;
  return table;
}

const AgreedValue* find_value(const std::vector<AgreedValue>& values, const std::string& name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const AgreedValue& each) { return each.name == name; });
  return found == values.end() ? nullptr : &*found;
}

bool same_value(const AgreedValue* a, const AgreedValue* b) {
  return (a == nullptr || b == nullptr) ? a == b : a->value == b->value;
}

std::string shown(const AgreedValue* value) {
  if (value == nullptr) return "none";
  if (value->value.empty()) return "nothing";
  if (value->where.empty()) return value->value;
  return fmt::format("{} (hash {})", value->where, value->value);
}

// How all ranks differ from rank 0 in `name`: those with one value together.
void tell_difference(std::span<const std::vector<AgreedValue>> per_rank, const std::string& name,
                     const RankNames& names, std::string& text) {
  const AgreedValue* const first = find_value(per_rank[0], name);
  std::vector<bool> told(per_rank.size());
  for (std::size_t r = 1; r < per_rank.size(); ++r) {
    const AgreedValue* const other = find_value(per_rank[r], name);
    if (told[r] || same_value(first, other)) continue;
    std::vector<int> alike;
    for (std::size_t s = r; s < per_rank.size(); ++s) {
      if (!same_value(other, find_value(per_rank[s], name))) continue;
      told[s] = true;
      alike.push_back(static_cast<int>(s));
    }
    text += fmt::format("{}{} {} {}={}, {} has {}", text.empty() ? "" : "; ", names.of(alike),
                        alike.size() == 1 ? "has" : "have", name, shown(other), names.of(0),
                        shown(first));
  }
}

}  // namespace

std::vector<AgreedValue> agreed_values(const Knobs& knobs, const TuningTable& table,
                                       const CommunicatorOptions& options) {
  std::vector<AgreedValue> values;
  for (auto& [name, value] : knobs.group_values()) values.push_back({name, std::move(value), {}});
  for (std::size_t i = 0; i < table.sources().size(); ++i) {
    const TuningSource& source = table.sources()[i];
    if (!source.empty()) values.push_back(of_table(source, table.hash_of(i)));
  }
  values.push_back({"option backend", std::string(to_string(options.backend)), {}});
  values.push_back({"option deterministic", options.deterministic ? "true" : "false", {}});
  values.push_back({"option timeout", fmt::format("{} ms", options.timeout.count()), {}});
  return values;
}

Bytes encode(const std::vector<AgreedValue>& values) {
  WireWriter out;
  out.put(static_cast<std::uint32_t>(values.size()));
  for (const AgreedValue& each : values) {
    for (const std::string* text : {&each.name, &each.value, &each.where}) out.put_text(*text);
  }
  return out.take();
}

Result<std::vector<AgreedValue>> decode_agreed_values(ByteView bytes) {
  WireReader in(bytes);
  constexpr std::size_t kSmallest = 3 * sizeof(std::uint32_t);
  std::vector<AgreedValue> values(in.get_count(kSmallest));
  for (AgreedValue& each : values) {
    for (std::string* text : {&each.name, &each.value, &each.where}) *text = in.get_text();
  }
  if (in.complete()) return values;
  return Status(StatusCode::kMismatch, "what it sent is no list of settings");
}

std::string differences(std::span<const std::vector<AgreedValue>> per_rank,
                        const RankNames& names) {
  std::vector<std::string> known;
  for (const auto& values : per_rank) {
    for (const AgreedValue& each : values) {
      if (std::find(known.begin(), known.end(), each.name) == known.end()) {
        known.push_back(each.name);
      }
    }
  }
  std::string text;
  for (const std::string& name : known) tell_difference(per_rank, name, names, text);
  return text;
}

std::string version_text(std::uint64_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace tutti
