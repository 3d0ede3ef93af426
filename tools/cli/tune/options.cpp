#include "tune/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/try.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr int kMostSeconds = 24 * 60 * 60;

// All of them; empty where there is no choice.
std::string ranks_of(const BenchArguments& arguments, const BenchMachine& machine) {
  if (arguments.backend == to_string(Backend::kHost) || machine.gpus < 2) return {};
  std::vector<int> ranks(static_cast<std::size_t>(machine.gpus) - 1);
  std::iota(ranks.begin(), ranks.end(), 2);
  return fmt::format("{}", fmt::join(ranks, ","));
}

// The default table's folder need not be there yet.
Status use_table(BenchArguments& arguments, const std::string& table) {
  if (table.empty()) return wrong("TUTTI_TUNING_CACHE names no file; give --output FILE");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(table).parent_path(), error);
  arguments.output = table;  // what is in the way is found when it is checked
  return Status::ok();
}

}  // namespace

Status use_tune_defaults(BenchArguments& bench, const BenchMachine& machine,
                         const std::string& table) {
  if (bench.launch.empty() && machine.launch.is_ok() && machine.launch->size > 1) {
    return wrong(
        fmt::format("`tutti tune` starts its ranks; run it without {}, or with --launch "
                    "processes",
                    machine.launch->launcher));
  }
  if (bench.ranks.empty()) bench.ranks = ranks_of(bench, machine);
  if (bench.output.empty() && bench.worker_fd.empty()) return use_table(bench, table);
  return Status::ok();
}

Result<TuneOptions> check_tune_arguments(const TuneArguments& arguments,
                                         const BenchMachine& machine, const std::string& table) {
  BenchArguments bench = arguments.bench;
  TUTTI_TRY(use_tune_defaults(bench, machine, table));
  if (bench.algorithms.empty()) bench.algorithms = "all";
  TuneOptions options;
  TUTTI_ASSIGN(options.bench, check_arguments(bench, machine));
  if (std::ranges::count(options.bench.algorithms, kAutoName) > 0) {
    return wrong("--algorithms: auto is what a table decides; give all, or names");
  }
  if (options.bench.wanted_buffers() == BufferKind::kRegistered) {
    return wrong(
        "--buffers: registered ones take as long as symmetric ones; give symmetric or plain");
  }
  if (options.bench.collective == Collective::kBarrier) {
    return wrong("barrier has no sizes, and one algorithm: there is nothing to choose");
  }
  if (!arguments.seconds.empty()) {
    TUTTI_ASSIGN(const int seconds, parse_int("--seconds", arguments.seconds, {1, kMostSeconds}));
    options.seconds = std::chrono::seconds(seconds);
  }
  options.resume = arguments.resume;
  if (!arguments.without.empty()) {
    for (const std::string_view each : split(arguments.without)) options.without.emplace_back(each);
  }
  return options;
}

std::vector<std::string> rank_words(const TuneOptions& options) {
  std::vector<std::string> words = sweep_words(options.bench);
  words.insert(words.begin(), {"tune", std::string(to_string(options.bench.collective))});
  words.insert(words.end(), {"--seconds", fmt::format("{}", options.seconds.count())});
  if (!options.without.empty()) {
    words.insert(words.end(), {"--without", fmt::format("{}", fmt::join(options.without, ","))});
  }
  return words;
}

}  // namespace tutti::cli
