#include "model/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/nearest.hpp"
#include "base/try.hpp"
#include "bench/sizes.hpp"
#include "output_file.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

using model::Chunks;
using model::ModelledAlgorithm;

constexpr int kMostModelledRanks = 1 << 20;

// Results of one machine: each rank is a node, unless --gpus-per-node says more.
bool reads_results(const ModelArguments& arguments) {
  return !arguments.compare.empty() || !arguments.fit.empty();
}

Status check_rate(const std::string& text, double& gbit_per_s) {
  if (text.empty()) return Status::ok();
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, gbit_per_s);
  if (error == std::errc() && stopped == end && gbit_per_s > 0 &&
      gbit_per_s <= model::kMostGbitPerS) {
    return Status::ok();
  }
  return wrong(fmt::format("--gbit-per-s: '{}' is not a number above 0 and at most {:g}", text,
                           model::kMostGbitPerS));
}

Status check_cluster(const ModelArguments& arguments, ModelOptions& options) {
  const bool alone = reads_results(arguments) || options.links.chunks == Chunks::kRing;
  const std::string each = !arguments.gpus_per_node.empty() ? arguments.gpus_per_node
                           : alone                          ? "1"
                                                            : "8";
  TUTTI_ASSIGN(options.ranks_per_node, parse_int("--gpus-per-node", each, {1, kMostModelledRanks}));
  const std::string nodes = arguments.nodes.empty() ? "2,4,8" : arguments.nodes;
  for (const std::string_view part : split(nodes)) {
    TUTTI_ASSIGN(options.nodes.emplace_back(),
                 parse_int("--nodes", part, {1, kMostModelledRanks / options.ranks_per_node}));
  }
  if (options.ranks_per_node == 1 && std::ranges::count(options.nodes, 1) > 0) {
    return wrong("--nodes 1: one node of one GPU has nobody to talk to; give 2 or more of either");
  }
  return Status::ok();
}

Status check_message(const ModelArguments& arguments, ModelOptions& options) {
  BenchArguments sizes = arguments.sizes;
  BenchOptions checked;
  checked.collective = options.collective;
  TUTTI_ASSIGN(options.dtype, parse_data_type(sizes.dtype.empty() ? "fp32" : sizes.dtype));
  checked.dtype = options.dtype;
  if (sizes.bytes.empty() && options.collective != Collective::kBarrier) {
    if (sizes.max_bytes.empty() && sizes.min_bytes.empty()) sizes.max_bytes = "64M";
    if (sizes.factor.empty() && sizes.step.empty()) sizes.factor = "4";
  }
  TUTTI_TRY(check_sizes(checked, sizes));
  options.bytes = std::move(checked.bytes);
  if (sizes.root.empty()) return Status::ok();
  if (!has_root(options.collective)) {
    return wrong(fmt::format("--root: {} has none", to_string(options.collective)));
  }
  const int least = *std::ranges::min_element(options.nodes) * options.ranks_per_node;
  TUTTI_ASSIGN(options.root, parse_int("--root", sizes.root, {0, least - 1}));
  return Status::ok();
}

Status check_algorithms(const std::string& asked, ModelOptions& options) {
  const std::vector<ModelledAlgorithm> known =
      model::modelled_algorithms(options.collective, options.links.chunks);
  if (known.empty()) {
    return wrong(fmt::format("{} is not modelled over link '{}': it has no program of messages",
                             to_string(options.collective), options.links.cluster.name));
  }
  const auto takes = [&](const ModelledAlgorithm& each) {
    return each.takes == nullptr || each.takes(options.dtype, OpKind::kSum);
  };
  if (asked.empty() || asked == "all") {
    std::ranges::copy_if(known, std::back_inserter(options.algorithms), takes);
    if (!options.algorithms.empty()) return Status::ok();
    return wrong(fmt::format("no algorithm of {} adds {}", to_string(options.collective),
                             to_string(options.dtype)));
  }
  std::vector<std::string_view> names;
  names.reserve(known.size());
  for (const ModelledAlgorithm& each : known) names.push_back(each.name);
  for (const std::string_view name : split(asked)) {
    const auto found = std::ranges::find(known, name, &ModelledAlgorithm::name);
    if (found == known.end()) {
      return wrong(fmt::format("--algorithms: '{}' is not one that link '{}' is a model of{}", name,
                               options.links.cluster.name, alternatives(name, names)));
    }
    if (!takes(*found)) {
      return wrong(fmt::format("--algorithms: {} does not add {}", name, to_string(options.dtype)));
    }
    options.algorithms.push_back(*found);
  }
  return Status::ok();
}

Status check_files(const ModelArguments& arguments, ModelOptions& options) {
  for (const auto& [text, files] :
       {std::pair(&arguments.compare, &options.compare), std::pair(&arguments.fit, &options.fit)}) {
    if (text->empty()) continue;
    for (const std::string_view file : split(*text)) files->emplace_back(file);
  }
  if (!options.compare.empty() && !options.fit.empty()) {
    return wrong("--fit compares with what it held out; give --compare or --fit");
  }
  options.output = arguments.output;
  if (options.output.empty()) return Status::ok();
  if (!options.compare.empty()) return wrong("--compare prints, and has no --output");
  return check_writable(options.output);
}

}  // namespace

Result<ModelOptions> check_model_arguments(const ModelArguments& arguments) {
  ModelOptions options;
  const std::string& collective = arguments.sizes.collective;
  if (!collective.empty()) {
    TUTTI_ASSIGN(options.collective, parse_collective(collective));
  }
  TUTTI_ASSIGN(options.links, model::find_links(arguments.link.empty() ? "ib400" : arguments.link));
  TUTTI_TRY(check_rate(arguments.gbit_per_s, options.links.cluster.between.gbit_per_s));
  TUTTI_TRY(check_cluster(arguments, options));
  TUTTI_TRY(check_message(arguments, options));
  TUTTI_TRY(check_algorithms(arguments.algorithms, options));
  TUTTI_TRY(check_files(arguments, options));
  if (arguments.unfolded) options.folding = model::Folding::kNever;
  options.print_link = arguments.print_link;
  return options;
}

}  // namespace tutti::cli
