#include "planning/all_gather_matmul.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numbers>

#include "base/names.hpp"
#include "base/try.hpp"
#include "planning/table.hpp"

namespace tutti {
namespace {

constexpr Name<AllGatherMatmulAlgorithm> kNamesOfAlgorithms[] = {
    {AllGatherMatmulAlgorithm::kUnfused, "unfused"},
    {AllGatherMatmulAlgorithm::kPipelinedShift, "pipelined_shift"},
    {AllGatherMatmulAlgorithm::kPipelinedRing, "pipelined_ring"},
    {AllGatherMatmulAlgorithm::kPipelinedTiles, "pipelined_tiles"},
    {AllGatherMatmulAlgorithm::kFused, "fused"}};

std::string name_of_machine(Backend backend, const std::string& gpu, int ranks) {
  return fmt::format("{}, {} rank{}", backend == Backend::kHost ? "the host" : gpu, ranks,
                     ranks == 1 ? "" : "s");
}

// Of two sizes; at least 1.
double ratio(std::size_t a, std::size_t b) {
  if (a == b) return 1;
  if (a == 0 || b == 0) return 0;
  return static_cast<double>(std::max(a, b)) / static_cast<double>(std::min(a, b));
}

Result<std::optional<AllGatherMatmulAlgorithm>> overridden_for(
    const AllGatherMatmulRequest& request) {
  std::optional<AllGatherMatmulAlgorithm> named;
  if (request.tune.empty()) return named;
  const auto overrides = parse_all_gather_matmul_overrides(request.tune);
  TUTTI_TRY(overrides.status().with_context("TUTTI_TUNE"));
  const std::size_t bytes = request.size.m * request.size.k * size_of(request.dtype);
  for (const AllGatherMatmulOverride& item : *overrides) {
    if (named || bytes < item.min_bytes || bytes > item.max_bytes) continue;
    named = item.algorithm;
  }
  return named;
}

}  // namespace

std::string_view to_string(AllGatherMatmulAlgorithm algorithm) {
  return name_of<AllGatherMatmulAlgorithm>(kNamesOfAlgorithms, algorithm);
}

Result<AllGatherMatmulAlgorithm> parse_all_gather_matmul_algorithm(std::string_view text) {
  std::string_view name = text;
  if (name.starts_with(kAllGatherMatmul) && name.substr(kAllGatherMatmul.size()).starts_with('/')) {
    name.remove_prefix(kAllGatherMatmul.size() + 1);
  }
  return parse_name<AllGatherMatmulAlgorithm>(
      kNamesOfAlgorithms, {}, fmt::format("algorithm of {}", kAllGatherMatmul), name);
}

bool is_pipelined(AllGatherMatmulAlgorithm algorithm) {
  return algorithm == AllGatherMatmulAlgorithm::kPipelinedShift ||
         algorithm == AllGatherMatmulAlgorithm::kPipelinedRing ||
         algorithm == AllGatherMatmulAlgorithm::kPipelinedTiles;
}

std::string to_text(const AllGatherMatmulSize& size) {
  return fmt::format("{}x{}x{}", size.m, size.n, size.k);
}

std::string to_text(const AllGatherMatmulWay& way) {
  std::string text(to_string(way.algorithm));
  if (way.transport) text += fmt::format(", {}", to_string(*way.transport));
  if (!is_pipelined(way.algorithm)) return text;
  text += fmt::format(", {}{}, {} stream{}{}", to_string(way.protocol),
                      way.mover == pipelines::Mover::kKernel ? " by kernel" : "", way.streams,
                      way.streams == 1 ? "" : "s", way.inter_stream_order ? " in order" : "");
  if (way.algorithm != AllGatherMatmulAlgorithm::kPipelinedTiles) return text;
  return text + fmt::format(", {} tile{}", way.tiles, way.tiles == 1 ? "" : "s");
}

std::string to_text(const AllGatherMatmulEntry& entry) {
  std::string text = fmt::format("measured on {}, {}: {} {:.4g} us",
                                 name_of_machine(entry.backend, entry.gpu, entry.ranks),
                                 to_text(entry.size), to_text(entry.way), entry.time_us);
  const bool unfused = entry.way.algorithm == AllGatherMatmulAlgorithm::kUnfused;
  if (!unfused) text += fmt::format(", unfused {:.4g} us", entry.unfused_us);
  if (!unfused || entry.runner_up_us == 0) return text;
  return text + fmt::format(", {} {:.4g} us", to_string(entry.runner_up), entry.runner_up_us);
}

bool is_of_same_call(const AllGatherMatmulEntry& a, const AllGatherMatmulEntry& b) {
  return a.backend == b.backend && a.gpu == b.gpu && a.ranks == b.ranks &&
         a.element_bytes == b.element_bytes && a.size == b.size;
}

double distance(const AllGatherMatmulEntry& entry, const Topology& topology,
                std::size_t element_bytes, const AllGatherMatmulSize& size) {
  const bool here = entry.backend == topology.backend && entry.gpu == topology.gpu &&
                    entry.ranks == topology.ranks && topology.nodes() == 1;
  if (!here || entry.element_bytes != element_bytes) return 0;
  double product = 1;
  for (const double each :
       {ratio(entry.size.m, size.m), ratio(entry.size.n, size.n), ratio(entry.size.k, size.k)}) {
    if (each > std::numbers::sqrt2) return 0;
    product *= each;
  }
  return product;
}

Result<SelectedAllGatherMatmul> select(const AllGatherMatmulRequest& request,
                                       const Topology& topology, const TuningTable& table) {
  SelectedAllGatherMatmul selected;
  const auto match = table.find(request.size, size_of(request.dtype), topology);
  if (match) selected.entry = match->entry;
  if (!request.algorithm.empty()) {
    selected.source = PlanSource::kCall;
    selected.why = "the call names it";
    TUTTI_ASSIGN(selected.way.algorithm, parse_all_gather_matmul_algorithm(request.algorithm));
    return selected;
  }
  TUTTI_ASSIGN(const auto named, overridden_for(request));
  if (named || request.only_nccl) {
    selected.source = PlanSource::kOverride;
    selected.way.algorithm = named.value_or(AllGatherMatmulAlgorithm::kUnfused);
    selected.why = named ? "TUTTI_TUNE names it" : "TUTTI_DISABLE leaves NCCL alone";
    return selected;
  }
  if (match) {
    selected.source = match->source->source;
    selected.way = match->entry->way;
    selected.why = to_text(*match->entry);
    const bool uneven = request.size.m % static_cast<std::size_t>(topology.ranks) != 0;
    const bool fuses_on_gpus = selected.algorithm() == AllGatherMatmulAlgorithm::kFused &&
                               topology.backend == Backend::kCuda;
    if (!uneven || !fuses_on_gpus) return selected;
    // There it needs the place of A on ranks without rows, which then may have none.
    return unfused_instead(selected,
                           fmt::format("M is not a multiple of {} ranks", topology.ranks));
  }
  selected.why = fmt::format(
      "no measurement for {} on {}, elements of {} bytes", to_text(request.size),
      name_of_machine(topology.backend, topology.gpu, topology.ranks), size_of(request.dtype));
  return selected;
}

SelectedAllGatherMatmul unfused_instead(const SelectedAllGatherMatmul& selected,
                                        std::string_view why_not) {
  SelectedAllGatherMatmul instead{.entry = selected.entry};
  instead.why = fmt::format("{}; {} cannot run this call: {}", selected.why,
                            to_string(selected.algorithm()), why_not);
  return instead;
}

}  // namespace tutti
