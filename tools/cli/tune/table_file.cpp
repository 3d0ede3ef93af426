#include "tune/table_file.hpp"

#include <algorithm>

#include "base/text_file.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "output_file.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kLatencyBound = 4 * KiB;

}  // namespace

Result<TuningEntries> read_table(const std::string& file) {
  TUTTI_ASSIGN(const auto text, read_text_file(file));
  if (!text) return TuningEntries{};
  TUTTI_ASSIGN(auto entries, parse_tuning_json(*text, file));
  TUTTI_TRY(TuningTable::from_sources(
                {{PlanSource::kUserCache, file, entries.collectives, entries.all_gather_matmul}})
                .status());
  return entries;
}

bool is_measured(std::span<const TuningEntry> entries, const TuningEntry& like) {
  return std::ranges::any_of(entries, [&](const TuningEntry& entry) {
    return of_one_machine(entry, like) && entry.max_bytes == like.max_bytes &&
           entry.driver == like.driver;
  });
}

std::size_t range_begin(std::size_t bytes, std::span<const std::size_t> sizes) {
  std::size_t begin = bytes <= kLatencyBound ? 0 : bytes / 2 + 1;
  bool first = true;
  for (const std::size_t size : sizes) {
    if (size >= bytes) continue;
    begin = first ? size + 1 : std::max(begin, size + 1);
    first = false;
  }
  return begin;
}

void put_entry(std::vector<TuningEntry>& entries, TuningEntry entry) {
  std::erase_if(entries, [&](const TuningEntry& other) {
    return of_one_machine(other, entry) && other.max_bytes == entry.max_bytes;
  });
  auto behind = entries.end();
  for (auto other = entries.begin(); other != entries.end(); ++other) {
    if (!of_one_machine(*other, entry)) continue;
    if (other->max_bytes < entry.max_bytes) {
      entry.min_bytes = std::max(entry.min_bytes, other->max_bytes + 1);
      behind = other + 1;
    } else {
      other->min_bytes = std::max(other->min_bytes, entry.max_bytes + 1);
      if (behind == entries.end()) behind = other;
    }
  }
  entries.insert(behind, std::move(entry));
}

bool is_measured(std::span<const AllGatherMatmulEntry> entries, const AllGatherMatmulEntry& like) {
  return std::ranges::any_of(entries, [&](const AllGatherMatmulEntry& entry) {
    return is_of_same_call(entry, like) && entry.driver == like.driver;
  });
}

void put_entry(std::vector<AllGatherMatmulEntry>& entries, AllGatherMatmulEntry entry) {
  std::erase_if(entries,
                [&](const AllGatherMatmulEntry& other) { return is_of_same_call(other, entry); });
  entries.push_back(std::move(entry));
}

Status add_to_table(const std::string& file, const TuningEntry& entry) {
  TUTTI_ASSIGN(auto entries, read_table(file));
  put_entry(entries.collectives, entry);
  return write_file_atomically(file, write_tuning_json(entries));
}

Status add_to_table(const std::string& file, const AllGatherMatmulEntry& entry) {
  TUTTI_ASSIGN(auto entries, read_table(file));
  put_entry(entries.all_gather_matmul, entry);
  return write_file_atomically(file, write_tuning_json(entries));
}

}  // namespace tutti::cli
