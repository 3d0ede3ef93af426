// tutti_laboratory: the algorithms' bodies under simulated schedules and weak memory.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "laboratory/campaigns.hpp"

namespace tutti::laboratory {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void complain(const Setup& setup, const Finding& finding) {
  fmt::print("FAILED {}\n  {}\n  again: tutti_laboratory replay --setup '{}' --seed {}\n",
             setup.name(), finding.violation.text, setup.name(), finding.seed);
}

// A schedule of a ring has many times the steps of others.
std::uint64_t weight_of(const Setup& setup) { return setup.row->ring_directions > 0 ? 1 : 10; }

// `schedules` in all, spread over the setups.
int random_campaign(std::uint64_t schedules, std::uint64_t seed) {
  const auto start = Clock::now();
  const std::vector<Setup> setups = all_setups();
  std::uint64_t weights = 0;
  for (const Setup& setup : setups) weights += weight_of(setup);
  std::vector<Finding> findings(setups.size());
  in_parallel(setups.size(), [&](std::size_t i) {
    const std::uint64_t share = schedules * weight_of(setups[i]) / weights + 1;
    findings[i] = run_random(setups[i], seed, share);
  });
  std::uint64_t run = 0;
  int failed = 0;
  for (std::size_t i = 0; i < setups.size(); ++i) {
    run += findings[i].schedules;
    if (!findings[i].found()) continue;
    complain(setups[i], findings[i]);
    ++failed;
  }
  fmt::print("{} schedules of {} setups from seed {} in {:.1f} s, {} failed\n", run, setups.size(),
             seed, seconds_since(start), failed);
  return failed > 0 || run == 0 ? 1 : 0;
}

std::vector<Setup> exhaustive_setups() {
  std::vector<Setup> all;
  for (const Algorithm& row : catalogue()) {
    if (row.host == nullptr || row.sends_messages) continue;
    for (const Buffers buffers : kAllBuffers) {
      if (!runs(row, buffers)) continue;
      // An operation around a ring has some 150 ways, others have a few.
      const int operations = row.ring_directions > 0 ? 2 : 3;
      all.push_back({&row, 2, 1, 5, operations, buffers, OpKind::kSum});
      const bool scales = row.takes(DataType::kFloat32, OpKind::kPreMulSum);
      if (scales) all.push_back({&row, 2, 1, 5, 2, buffers, OpKind::kPreMulSum});
      all.push_back({&row, 2, 2, 9, 1, buffers, OpKind::kSum});
      const bool passes = buffers == Buffers::kStaged && row.ring_directions == 0;
      if (passes) all.push_back({&row, 2, 1, 70, 2, buffers, OpKind::kSum});
    }
  }
  return all;
}

int exhaustive_campaign(std::uint64_t limit) {
  const std::vector<Setup> setups = exhaustive_setups();
  std::vector<Exhausted> results(setups.size());
  const auto start = Clock::now();
  in_parallel(setups.size(), [&](std::size_t i) { results[i] = run_exhaustive(setups[i], limit); });
  int failed = 0;
  for (std::size_t i = 0; i < setups.size(); ++i) {
    const Exhausted& result = results[i];
    const bool good = result.complete && !result.finding.found();
    fmt::print("{} {}: {} schedules, {} redundant ones given up{}\n", good ? "passed" : "FAILED",
               setups[i].name(), result.finding.schedules, result.redundant,
               result.complete ? "" : ", not all");
    if (result.finding.found()) fmt::print("  {}\n", result.finding.violation.text);
    failed += good ? 0 : 1;
  }
  fmt::print("{} setups in {:.1f} s, {} failed\n", setups.size(), seconds_since(start), failed);
  return failed > 0 || setups.empty() ? 1 : 0;
}

void print_as_table(const std::vector<MutationResult>& results) {
  for (const std::string& line : table_of(results)) fmt::print("{}\n", line);
}

// How many nobody found. Those are always told.
int count_survivors(const std::vector<MutationResult>& results, bool tells_all) {
  int survived = 0;
  for (const MutationResult& result : results) {
    const bool found = result.finding.found();
    survived += found ? 0 : 1;
    if (found && !tells_all) continue;
    fmt::print("{} {} {}: {}\n", found ? "passed" : "SURVIVED", result.setup.name(),
               describe(result.mutation),
               found
                   ? fmt::format("{}, seed {}", result.finding.violation.text, result.finding.seed)
                   : std::string("nothing found"));
  }
  return survived;
}

int mutation_campaign(std::uint64_t schedules, bool markdown) {
  const auto results = run_mutations(schedules);
  if (markdown) print_as_table(results);
  const int survived = count_survivors(results, !markdown);
  if (!markdown) fmt::print("{} mutations, {} survived\n", results.size(), survived);
  return survived > 0 || results.empty() ? 1 : 0;
}

// Each mutation is found, and the table between the markers of a document is the one they give.
int check_document(const std::string& file, std::uint64_t schedules) {
  std::ifstream stream(file);
  std::vector<std::string> written;
  bool inside = false;
  for (std::string line; std::getline(stream, line);) {
    if (line == "<!-- end of mutations -->") inside = false;
    if (inside) written.push_back(line);
    if (line.starts_with("<!-- mutations:")) inside = true;
  }
  const auto results = run_mutations(schedules);
  if (results.empty() || count_survivors(results, false) > 0) return 1;
  if (written == table_of(results)) return 0;
  fmt::print(stderr,
             "{}: the table of mutations is not what `tutti_laboratory mutations "
             "--markdown` prints; paste that between its markers\n",
             file);
  return 1;
}

// What must come of ranks that stop and of ranks that differ, and that it does not come without
// what the protocol has for it.
int misfortune_campaign(std::uint64_t seeds) {
  std::atomic<int> run = 0, failed = 0;
  const auto check = [&](const Setup& setup, const char* what, const std::string& wrong) {
    ++run;
    if (wrong.empty()) return;
    ++failed;
    fmt::print("FAILED {}, {}: {}\n", setup.name(), what, wrong);
  };
  const simulated::Mutation deaf{simulated::Mutation::Kind::kNoPoison, 0, 0};
  const simulated::Mutation stubborn{simulated::Mutation::Kind::kFlagsNotTakenBack, 0, 0};
  const simulated::Mutation blind{simulated::Mutation::Kind::kNoSignature, 0, 0};
  const simulated::Mutation hasty{simulated::Mutation::Kind::kNoClosing, 0, 0};
  const simulated::Mutation inattentive{simulated::Mutation::Kind::kNoWaitFor, 0, 2};
  const std::vector<Setup> setups = all_setups();
  std::vector<std::atomic<int>> noticed(catalogue().size());
  const auto row_index = [](const Setup& setup) {
    return static_cast<std::size_t>(setup.row - catalogue().data());
  };
  in_parallel(setups.size(), [&](std::size_t i) {
    const Setup& setup = setups[i];
    if (setup.ranks < 2) return;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const int rank = static_cast<int>(seed) % setup.ranks;
      for (const int steps : {0, 1, 2, 5, 9, 14, 30}) {
        check(setup, "a rank stops", run_stop(setup, {rank, steps}, seed));
      }
      check(setup, "flags not taken back, but all are told",
            run_stop(setup, {rank, 0}, seed, &stubborn));
      check(setup, "a rank is never told", run_stop(setup, {rank, 0, false}, seed));
      check(setup, "another operation", run_mismatch(setup, seed));
    }
    check(setup, "poison ignored",
          run_stop(setup, {0, 0}, 1, &deaf).empty() ? "was not noticed" : "");
    const Collective collective = setup.row->collective;
    const bool from_root = root_side(collective) == RootSide::kInput;
    const int writer = from_root ? test::root_of(collective, 0, setup.ranks) : 0;
    if (!run_stop(setup, {writer, 0, false}, 1, &stubborn).empty()) ++noticed[row_index(setup)];
    check(setup, "signatures ignored",
          run_mismatch(setup, 1, &blind).empty() ? "was not noticed" : "");
    if (setup.row->ring_directions > 0 && setup.ranks >= 4) {
      check(setup, "a rank across the ring not waited for",
            run_mismatch(setup, 1, &inattentive).empty() ? "was not noticed" : "");
    }
    if (setup.row->packets == nullptr) return;
    check(setup, "announcements not waited for",
          run_mismatch(setup, 1, &hasty).empty() ? "was not noticed" : "");
  });
  // Not every setup lets the late rank get as far as a peer's memory; of each row that writes there
  // one must. Copy engines only read it.
  for (const Setup& setup : setups) {
    const bool writes = setup.row->peers_write_output && setup.row->program == nullptr;
    if (writes && noticed[row_index(setup)] == 0) {
      check(setup, "flags not taken back", "was not noticed");
    }
  }
  fmt::print("{} misfortunes, {} failed\n", run.load(), failed.load());
  return failed > 0 || run == 0 ? 1 : 0;
}

// Epochs on their way across the ends of 31, 32 and 63 bits.
int epoch_campaign(std::uint64_t seeds) {
  constexpr std::uint64_t kEnds[] = {std::uint64_t{1} << 31, std::uint64_t{1} << 32,
                                     std::uint64_t{1} << 63};
  const std::vector<Setup> setups = all_setups();
  std::vector<Finding> findings(setups.size() * std::size(kEnds));
  in_parallel(findings.size(), [&](std::size_t i) {
    Experiment::Options options;
    options.first_epoch = kEnds[i % std::size(kEnds)] - 3;
    findings[i] = run_random(setups[i / std::size(kEnds)], 1, seeds, options);
  });
  int failed = 0;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (!findings[i].found()) continue;
    complain(setups[i / std::size(kEnds)], findings[i]);
    ++failed;
  }
  fmt::print("{} crossings, {} failed\n", findings.size(), failed);
  return failed > 0 || findings.empty() ? 1 : 0;
}

const Setup* find_setup(const std::vector<Setup>& setups, std::string_view name) {
  const auto found = std::find_if(setups.begin(), setups.end(),
                                  [&](const Setup& setup) { return setup.name() == name; });
  return found == setups.end() ? nullptr : &*found;
}

// Seeds that once found something, "SEED SETUP" a line: none may find anything now.
int seed_campaign(const std::string& file) {
  std::ifstream stream(file);
  const std::vector<Setup> setups = all_setups();
  int run = 0, failed = 0;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = line.find(' ');
    const Setup* const setup = find_setup(setups, std::string_view(line).substr(space + 1));
    if (setup == nullptr) {
      fmt::print("FAILED no such setup: {}\n", line);
      ++failed;
      continue;
    }
    const Finding finding = run_random(*setup, std::strtoull(line.c_str(), nullptr, 10), 1);
    ++run;
    if (!finding.found()) continue;
    complain(*setup, finding);
    ++failed;
  }
  fmt::print("{} seeds, {} failed\n", run, failed);
  return failed > 0 || run == 0 ? 1 : 0;
}

int replay(const std::string& name, std::uint64_t seed) {
  const std::vector<Setup> setups = all_setups();
  if (const Setup* const setup = find_setup(setups, name)) {
    for (const std::string& line : story_of(*setup, seed)) fmt::print("{}\n", line);
    return 0;
  }
  fmt::print(stderr, "no setup is called \"{}\"; there are:\n", name);
  for (const Setup& setup : setups) fmt::print(stderr, "  {}\n", setup.name());
  return 2;
}

int run(int argc, char** argv) {
  CLI::App app("Algorithms under simulated schedules and weak memory");
  app.require_subcommand(1);
  std::uint64_t schedules = 1'000'000, seed = 1, limit = 2'000'000, tries = 4000, seeds = 25;
  std::string setup, file;
  bool markdown = false;
  CLI::App* const random = app.add_subcommand("random", "random schedules of every row");
  random->add_option("--schedules", schedules, "how many in all");
  random->add_option("--seed", seed, "the first seed");
  CLI::App* const exhaustive = app.add_subcommand("exhaustive", "all schedules of two ranks");
  exhaustive->add_option("--limit", limit, "schedules per setup, at most");
  CLI::App* const mutations =
      app.add_subcommand("mutations", "takes away one thing at a time; each must be found");
  mutations->add_option("--schedules", tries, "per mutation, at most");
  mutations->add_flag("--markdown", markdown, "as a table");
  CLI::App* const misfortunes =
      app.add_subcommand("misfortunes", "ranks that stop, ranks that run something else");
  misfortunes->add_option("--seeds", seeds, "schedules of each kind");
  CLI::App* const epochs = app.add_subcommand("epochs", "epochs that cross 2^31, 2^32 and 2^63");
  epochs->add_option("--seeds", seeds, "schedules of each kind");
  CLI::App* const kept = app.add_subcommand("seeds", "seeds that once found something");
  kept->add_option("file", file)->required()->check(CLI::ExistingFile);
  CLI::App* const documented =
      app.add_subcommand("documented", "compares a document's table of mutations");
  documented->add_option("file", file)->required()->check(CLI::ExistingFile);
  CLI::App* const again = app.add_subcommand("replay", "tells one schedule, step by step");
  again->add_option("--setup", setup, "its name")->required();
  again->add_option("--seed", seed, "its seed")->required();
  CLI11_PARSE(app, argc, argv);

  if (random->parsed()) return random_campaign(schedules, seed);
  if (exhaustive->parsed()) return exhaustive_campaign(limit);
  if (mutations->parsed()) return mutation_campaign(tries, markdown);
  if (misfortunes->parsed()) return misfortune_campaign(seeds);
  if (epochs->parsed()) return epoch_campaign(seeds);
  if (kept->parsed()) return seed_campaign(file);
  if (documented->parsed()) return check_document(file, tries);
  return replay(setup, seed);
}

}  // namespace
}  // namespace tutti::laboratory

int main(int argc, char** argv) { return tutti::laboratory::run(argc, argv); }
