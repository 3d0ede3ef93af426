#include "planning/table.hpp"

#include <fmt/core.h>

#include "base/hash.hpp"
#include "base/text_file.hpp"
#include "base/try.hpp"
#include "planning/shipped_tables.hpp"

namespace tutti {
namespace {

// Whether so many ranks share cores in both, as far as is known.
bool is_as_crowded(int ranks, int cores, int other_cores) {
  return cores == 0 || other_cores == 0 || (ranks > cores) == (ranks > other_cores);
}

Status check_overlaps(const TuningSource& source) {
  const auto& entries = source.entries;
  for (std::size_t j = 0; j < entries.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      const TuningEntry &a = entries[i], &b = entries[j];
      if (!of_one_machine(a, b) || a.max_bytes < b.min_bytes || b.max_bytes < a.min_bytes) continue;
      return {
          StatusCode::kInvalidArgument,
          fmt::format("{}: entries {} ({}, {}-{} bytes) and {} ({}, {}-{} bytes) overlap; ranges "
                      "are inclusive at both ends",
                      source.name, i, a.algorithm, a.min_bytes, a.max_bytes, j, b.algorithm,
                      b.min_bytes, b.max_bytes)};
    }
  }
  return Status::ok();
}

Status check_sizes(const TuningSource& source) {
  const auto& entries = source.all_gather_matmul;
  for (std::size_t j = 0; j < entries.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      if (!is_of_same_call(entries[i], entries[j])) continue;
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: two entries of {} with the same ranks and elements are for {}",
                          source.name, kAllGatherMatmul, to_text(entries[i].size))};
    }
  }
  return Status::ok();
}

// What a file holds, as a source.
Result<TuningSource> read_source(PlanSource source, const std::string& name,
                                 std::string_view text) {
  TUTTI_ASSIGN(TuningEntries entries, parse_tuning_json(text, name));
  return TuningSource{source, name, std::move(entries.collectives),
                      std::move(entries.all_gather_matmul)};
}

Status check_algorithms(const TuningSource& source) {
  for (std::size_t i = 0; i < source.entries.size(); ++i) {
    const TuningEntry& entry = source.entries[i];
    if (entry.provenance == Provenance::kPublished) continue;  // a family, known as such
    const auto row = find_algorithm(entry.collective, entry.algorithm);
    if (!row.is_ok()) {
      return row.status().with_context(fmt::format("{}: entry {}: algorithm", source.name, i));
    }
  }
  return Status::ok();
}

std::uint64_t hash_of(const TuningSource& source) {
  Hash hash;
  hash.add(source.entries.size());
  for (const TuningEntry& entry : source.entries) {
    hash.add(to_string(entry.collective)).add(to_string(entry.backend)).add(entry.gpu);
    hash.add(static_cast<std::uint64_t>(entry.ranks)).add(entry.min_bytes).add(entry.max_bytes);
    hash.add(static_cast<std::uint64_t>(entry.cores));
    hash.add(entry.algorithm).add(static_cast<std::uint64_t>(entry.blocks));
    hash.add(static_cast<std::uint64_t>(entry.threads)).add(entry.chunk_bytes);
    if (entry.plain) hash.add("plain");
    hash.add(entry.runner_up);  // of a ring, it says whether both directions are worth it
    if (entry.provenance == Provenance::kPublished) hash.add("published");
  }
  for (const AllGatherMatmulEntry& entry : source.all_gather_matmul) {
    hash.add(to_string(entry.backend)).add(entry.gpu).add(static_cast<std::uint64_t>(entry.ranks));
    hash.add(entry.element_bytes).add(entry.size.m).add(entry.size.n).add(entry.size.k);
    hash.add(to_text(entry.way));
  }
  return hash.value();
}

}  // namespace

bool holds_for(const TuningEntry& entry, const Topology& topology) {
  return entry.backend == topology.backend && entry.gpu == topology.gpu &&
         entry.ranks == topology.ranks && topology.nodes() == 1 &&
         is_as_crowded(entry.ranks, entry.cores, topology.cores);
}

bool of_one_machine(const TuningEntry& a, const TuningEntry& b) {
  return a.collective == b.collective && a.backend == b.backend && a.gpu == b.gpu &&
         a.ranks == b.ranks && a.plain == b.plain && is_as_crowded(a.ranks, a.cores, b.cores);
}

Result<TuningTable> TuningTable::load(const std::string& user_file, const std::string& user_cache) {
  std::vector<TuningSource> sources;
  if (!user_file.empty()) {
    TUTTI_ASSIGN(const auto text, read_text_file(user_file));
    if (!text) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("TUTTI_TUNING_FILE names '{}', which does not exist", user_file));
    }
    TUTTI_ASSIGN(sources.emplace_back(), read_source(PlanSource::kUserFile, user_file, *text));
    TUTTI_TRY(check_algorithms(sources.back()));
  }
  if (!user_cache.empty()) {
    TUTTI_ASSIGN(const auto text, read_text_file(user_cache));
    if (text) {
      TUTTI_ASSIGN(sources.emplace_back(), read_source(PlanSource::kUserCache, user_cache, *text));
    }
  }
  static const auto shipped = from_shipped();  // the same for every group of the process
  TUTTI_TRY(shipped.status());
  TUTTI_ASSIGN(TuningTable table, from_sources(std::move(sources)));
  table.append(*shipped);
  return table;
}

Result<TuningTable> TuningTable::from_shipped() {
  std::vector<TuningSource> sources;
  for (const ShippedTable& table : shipped_tables()) {
    const PlanSource source = table.published ? PlanSource::kPublished : PlanSource::kShipped;
    TUTTI_ASSIGN(sources.emplace_back(),
                 read_source(source, fmt::format("shipped {}", table.name), table.json));
  }
  return from_sources(std::move(sources));
}

Result<TuningTable> TuningTable::from_sources(std::vector<TuningSource> sources) {
  for (const TuningSource& source : sources) {
    TUTTI_TRY(check_overlaps(source));
    TUTTI_TRY(check_sizes(source));
  }
  TuningTable table;
  table.sources_ = std::move(sources);
  for (const TuningSource& source : table.sources_) {
    table.hashes_.push_back(tutti::hash_of(source));
  }
  return table;
}

void TuningTable::append(const TuningTable& other) {
  sources_.insert(sources_.end(), other.sources_.begin(), other.sources_.end());
  hashes_.insert(hashes_.end(), other.hashes_.begin(), other.hashes_.end());
}

std::vector<TuningTable::Match> TuningTable::matches(const Key& key,
                                                     const Topology& topology) const {
  std::vector<Match> found;
  if (key.plain) add_matches(key, topology, found);
  add_matches({key.collective, key.bytes, false}, topology, found);
  return found;
}

// Of the key's kind of buffers alone.
void TuningTable::add_matches(const Key& key, const Topology& topology,
                              std::vector<Match>& found) const {
  bool measured_elsewhere = false;
  for (const TuningSource& source : sources_) {
    if (measured_elsewhere && source.source == PlanSource::kPublished) return;
    const TuningEntry* holds = nullptr;
    bool of_machine = false;
    for (const TuningEntry& entry : source.entries) {
      if (entry.collective != key.collective || entry.plain != key.plain) continue;
      if (!holds_for(entry, topology)) continue;
      of_machine = true;
      if (entry.min_bytes <= key.bytes && key.bytes <= entry.max_bytes) holds = &entry;
    }
    if (holds != nullptr) found.push_back({holds, &source});
    if (of_machine && holds == nullptr) measured_elsewhere = true;
  }
}

std::optional<TuningTable::AllGatherMatmulMatch> TuningTable::find(const AllGatherMatmulSize& size,
                                                                   std::size_t element_bytes,
                                                                   const Topology& topology) const {
  for (const TuningSource& source : sources_) {
    std::optional<AllGatherMatmulMatch> nearest;
    double least = 0;
    for (const AllGatherMatmulEntry& entry : source.all_gather_matmul) {
      const double here = distance(entry, topology, element_bytes, size);
      if (here == 0 || (nearest && here >= least)) continue;
      nearest = {&entry, &source};
      least = here;
    }
    if (nearest) return nearest;
  }
  return std::nullopt;
}

std::uint64_t TuningTable::hash() const {
  Hash hash;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].empty()) continue;  // the same as no source at all
    hash.add(static_cast<std::uint64_t>(sources_[i].source)).add(hashes_[i]);
  }
  return hash.value();
}

}  // namespace tutti
