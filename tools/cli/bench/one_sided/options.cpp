#include "bench/one_sided/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/names.hpp"
#include "base/try.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr std::array<Name<Mover>, 2> kMovers = {
    {{Mover::kKernel, "kernel"}, {Mover::kCopyEngine, "copy_engine"}}};

Status check_movers(OneSidedOptions& options, const std::string& text) {
  const bool cuda = options.bench.backend == Backend::kCuda;
  if (text.empty() || text == "all") {
    options.movers = {Mover::kKernel};
    if (cuda) options.movers.push_back(Mover::kCopyEngine);
  } else {
    for (const std::string_view part : split(text)) {
      TUTTI_ASSIGN(const Mover mover, parse_name<Mover>(kMovers, {}, "--algorithms", part));
      if (mover == Mover::kCopyEngine && !cuda) {
        return {StatusCode::kInvalidArgument,
                "--algorithms copy_engine: there is none on the host, whose threads copy"};
      }
      const auto known = std::find(options.movers.begin(), options.movers.end(), mover);
      if (known == options.movers.end()) options.movers.push_back(mover);
    }
  }
  options.bench.algorithms.clear();
  for (const Mover mover : options.movers) options.bench.algorithms.emplace_back(to_string(mover));
  return Status::ok();
}

void add(std::vector<std::string>& words, std::string option, const auto& value) {
  words.push_back(std::move(option));
  words.push_back(fmt::format("{}", value));
}

}  // namespace

std::string_view to_string(Mover mover) { return name_of<Mover>(kMovers, mover); }

Result<OneSidedOptions> check_one_sided_arguments(const OneSidedArguments& arguments,
                                                  const BenchMachine& machine) {
  OneSidedOptions options;
  options.kind = arguments.kind;
  BenchArguments bench = arguments.bench;
  bench.collective = to_string(Collective::kBroadcast);  // which moves as much
  bench.algorithms = "all";
  TUTTI_ASSIGN(options.bench, check_arguments(bench, machine));
  TUTTI_TRY(check_movers(options, arguments.bench.algorithms));
  return options;
}

std::vector<std::string> to_arguments(const OneSidedOptions& options) {
  const BenchOptions& bench = options.bench;
  std::vector<std::string> words = sweep_words(bench);
  words.insert(words.begin(), {"bench", std::string(to_string(options.kind))});
  add(words, "--mode", to_string(bench.mode));
  add(words, "--graph-operations", bench.graph_operations);
  add(words, "--iterations", bench.iterations);
  add(words, "--warmup", bench.warmup);
  add(words, "--check", bench.check ? "on" : "off");
  return words;
}

}  // namespace tutti::cli
