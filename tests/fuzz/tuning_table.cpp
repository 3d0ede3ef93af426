// Tuning tables: written by `tutti tune`, by hand, or by somebody else.
#include "fuzz/fuzz.hpp"
#include "planning/table.hpp"

namespace tutti::fuzz {
namespace {

void check_entry(const TuningEntry& entry) {
  const std::string prefix = std::string(to_string(entry.collective)) + "/";
  must_hold(entry.min_bytes <= entry.max_bytes, "a range does not end before it begins");
  const bool published = entry.provenance == Provenance::kPublished;
  must_hold(entry.ranks > 0 && (entry.samples > 0) != published, "something was measured");
  must_hold(!published || (entry.time_us == 0 && entry.runner_up_us == 0), "no time is made up");
  must_hold(published != entry.source.empty(), "what is published says where");
  must_hold(entry.blocks >= 0 && entry.threads >= 0 && entry.threads <= 1024, "a grid can be run");
  must_hold(entry.time_us >= 0 && entry.runner_up_us >= 0, "no time is negative");
  must_hold(entry.algorithm.starts_with(prefix), "an algorithm is one of its collective");
  must_hold(entry.backend != Backend::kAuto, "a machine is of one kind");
}

void check_entry(const AllGatherMatmulEntry& entry) {
  must_hold(entry.ranks > 0 && entry.samples > 0 && entry.element_bytes > 0,
            "something was measured");
  must_hold(entry.size.m > 0 && entry.size.n > 0 && entry.size.k > 0, "matrices have elements");
  must_hold(entry.time_us >= 0 && entry.time_us <= entry.unfused_us, "none loses to unfused");
  must_hold(is_pipelined(entry.way.algorithm) == (entry.way.streams > 0), "pipelines have streams");
  must_hold(entry.way.streams <= pipelines::kMostPipelineStreams &&
                entry.way.tiles <= pipelines::kMostPipelineTiles,
            "a pipeline can be run");
  must_hold(!entry.way.transport || entry.way.algorithm == AllGatherMatmulAlgorithm::kFused,
            "fused has a transport");
  must_hold(entry.backend != Backend::kAuto, "a machine is of one kind");
}

// The entry that is found holds the size that was looked for.
void check_lookup(const TuningTable& table) {
  Topology topology;
  topology.backend = Backend::kCuda;
  topology.gpu = "NVIDIA H200";
  topology.ranks = 2;
  topology.within_nodes = peer_ways(Backend::kCuda);
  for (const bool plain : {false, true}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{65536}, SIZE_MAX}) {
      for (const auto& match : table.matches({Collective::kAllReduce, bytes, plain}, topology)) {
        must_hold(match.entry->min_bytes <= bytes && bytes <= match.entry->max_bytes,
                  "nothing is extrapolated");
        must_hold(plain || !match.entry->plain, "entries of plain buffers are for those alone");
      }
    }
  }
  const AllGatherMatmulSize size = {8192, 3584, 8192};
  const auto match = table.find(size, 2, topology);
  if (match) {
    const double away = distance(*match->entry, topology, 2, size);
    must_hold(away >= 1 && away < 2.83, "an entry holds for a factor of 2 in each size");
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti;
  using fuzz::must_hold;
  const auto entries = parse_tuning_json(fuzz::text_of(data, size), "table.json");
  if (!entries.is_ok()) {
    must_hold(entries.status().message().starts_with("table.json: "), "an error names its file");
    return 0;
  }
  for (const TuningEntry& entry : entries->collectives) fuzz::check_entry(entry);
  for (const AllGatherMatmulEntry& entry : entries->all_gather_matmul) fuzz::check_entry(entry);
  const auto again = parse_tuning_json(write_tuning_json(*entries), "again.json");
  must_hold(again.is_ok() && *again == *entries, "a table that is written and read is the same");
  const auto table = TuningTable::from_sources(
      {{PlanSource::kUserFile, "table.json", entries->collectives, entries->all_gather_matmul}});
  if (table.is_ok()) fuzz::check_lookup(*table);
  return 0;
}
