// Choices that were measured, here or by others, as data with provenance. JSON on disk, one file
// per machine kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "planning/all_gather_matmul.hpp"
#include "topology/topology.hpp"
#include "tutti/tuning.hpp"

namespace tutti {

// Who measured. What others published names a family of rows, and has no time that would hold here.
enum class Provenance : std::uint8_t { kMeasured, kPublished };

// Measured on one host, out of place; never used for a group that spans several hosts.
struct TuningEntry {
  Collective collective = Collective::kAllReduce;
  Backend backend = Backend::kCuda;
  std::string gpu;  // "NVIDIA H200"; empty for the host backend
  int ranks = 0;
  int cores = 0;  // of the host that was measured, for the host backend; 0: unknown
  bool plain =
      false;  // with buffers that peers do not reach, which are staged; else symmetric ones
  std::size_t min_bytes = 0, max_bytes = 0;  // inclusive
  std::string algorithm;                     // id; published: "all_reduce/" and a family
  int blocks = 0, threads = 0;               // 0: the row's own geometry
  std::size_t chunk_bytes = 0;
  double time_us = 0;     // measured at max_bytes (or the last measured size below it); 0: unknown
  std::string runner_up;  // as `algorithm`; empty if alone
  double runner_up_us = 0;
  std::string date, driver;
  int samples = 0;
  Provenance provenance = Provenance::kMeasured;
  std::string source;  // published: where
  friend bool operator==(const TuningEntry&, const TuningEntry&) = default;
};

// Whatever the size. On the host backend, ranks that share cores wait for each other otherwise than
// ranks with a core each: an entry holds where as many ranks share cores, or not, as where it was
// measured. Where either number of cores is unknown, it holds.
bool holds_for(const TuningEntry& entry, const Topology& topology);
// Whether there are groups, and buffers, that both hold for, whatever the size.
bool of_one_machine(const TuningEntry& a, const TuningEntry& b);

// What a file holds.
struct TuningEntries {
  std::vector<TuningEntry> collectives = {};
  std::vector<AllGatherMatmulEntry> all_gather_matmul = {};

  bool empty() const { return collectives.empty() && all_gather_matmul.empty(); }
  friend bool operator==(const TuningEntries&, const TuningEntries&) = default;
};

struct TuningSource {
  PlanSource source = PlanSource::kShipped;
  std::string name;  // file, or "shipped h200.json"
  std::vector<TuningEntry> entries;
  std::vector<AllGatherMatmulEntry> all_gather_matmul = {};

  bool empty() const { return entries.empty() && all_gather_matmul.empty(); }
};

// In the order of precedence. A value.
class TuningTable {
 public:
  // The user's file, the user's cache, and the shipped tables, of which those that are published
  // come last; empty paths are left out. A broken
  // file is an error that names file, line and entry. A user's file must exist and name rows of
  // this build; a cache that does not exist is an empty one, and its rows of another build are
  // passed over by `choose`.
  static Result<TuningTable> load(const std::string& user_file, const std::string& user_cache);
  static TuningTable empty() { return {}; }
  // Ranges of one machine, collective and rank count must not overlap within a source; nor may it
  // have two entries for one size of all_gather_matmul.
  static Result<TuningTable> from_sources(std::vector<TuningSource> sources);

  struct Match {
    const TuningEntry* entry;
    const TuningSource* source;
  };
  struct Key {
    Collective collective;
    std::size_t bytes;
    bool plain = false;
  };
  // The entries for this machine, collective and rank count whose ranges hold the bytes: of each
  // source the one it has, in the sources' order. Entries of plain buffers are for those alone, and
  // come before all of symmetric buffers, which plain ones have as well. Nothing is extrapolated:
  // outside all ranges there is none. What others published is left out where a source before it
  // has measured this machine, at other sizes.
  std::vector<Match> matches(const Key& key, const Topology& topology) const;

  // Of all_gather_matmul: the nearest entry of the first source that has one which holds.
  struct AllGatherMatmulMatch {
    const AllGatherMatmulEntry* entry;
    const TuningSource* source;
  };
  std::optional<AllGatherMatmulMatch> find(const AllGatherMatmulSize& size,
                                           std::size_t element_bytes,
                                           const Topology& topology) const;

  const std::vector<TuningSource>& sources() const { return sources_; }
  // Of everything that can change a choice: of one source, and of all.
  std::uint64_t hash_of(std::size_t source) const { return hashes_[source]; }
  std::uint64_t hash() const;

 private:
  static Result<TuningTable> from_shipped();
  void append(const TuningTable& other);
  void add_matches(const Key& key, const Topology& topology, std::vector<Match>& found) const;

  std::vector<TuningSource> sources_;
  std::vector<std::uint64_t> hashes_;  // of each
};

// {"schema": "tutti.tuning/1", "entries": [{"collective": "all_reduce", ...}, ...]}. An error names
// `file`, and the line, or the entry (counted from 0) and its field. Entries of all_gather_matmul
// are written last.
Result<TuningEntries> parse_tuning_json(std::string_view text, std::string_view file);
std::string write_tuning_json(const TuningEntries& entries);

}  // namespace tutti
