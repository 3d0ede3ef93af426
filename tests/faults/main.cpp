// tutti_faults: ranks that die, stop, disagree or run out of memory, and strangers. The others get
// an error of the right kind, in time, with a text that says enough; nothing is left behind.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "conformance/nodes.hpp"
#include "drivers/nccl.hpp"
#include "faults/ending.hpp"
#include "faults/misfortunes.hpp"
#include "faults/network.hpp"
#include "faults/random_scene.hpp"
#include "faults/scene.hpp"
#include "support/check.hpp"
#include "support/device.hpp"
#include "support/run_ranks.hpp"

namespace tutti::test {
namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

struct Options {
  std::string backend = "host";
  int ranks = 3;
  std::string filter;
  unsigned seed = 1;
  unsigned campaign = 0;
  std::string topology;
  bool selection = false, list = false, control = false;
};

struct Fault {
  std::string name;
  std::function<std::string()> run;
};

// Every rank is the victim of every signal at each of these moments; of a short selection, each
// moment and signal once, with another victim each time.
void add_scenes(const Options& options, std::span<const Moment> moments, const Scene& like,
                std::vector<Scene>& scenes) {
  int turn = static_cast<int>(options.seed);
  for (const Moment moment : moments) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      ++turn;
      for (int victim = 0; victim < options.ranks; ++victim) {
        if (options.selection && victim != turn % options.ranks) continue;
        Scene scene = like;
        scene.victim = victim;
        scene.signal = signal;
        scene.moment = moment;
        scenes.push_back(scene);
      }
    }
  }
}

bool has_nccl() {
  return run_isolated([] { require(real_nccl() != nullptr, ""); }, kPatience).empty();
}

std::vector<Scene> all_scenes(const Options& options, Backend backend) {
  std::vector<Scene> scenes;
  Scene like;
  like.backend = backend;
  like.ranks = options.ranks;
  like.seed = options.seed;
  add_scenes(options, kAllMoments, like, scenes);
  if (backend != Backend::kCuda || !has_nccl()) return scenes;
  constexpr Moment kInOperations[] = {Moment::kInside, Moment::kBetween, Moment::kBusy};
  like.algorithm = "nccl";
  add_scenes(options, kInOperations, like, scenes);
  return scenes;
}

std::vector<Fault> all_faults(const Options& options) {
  const Backend backend = take(parse_backend(options.backend));
  std::vector<Fault> faults;
  for (const Scene& scene : all_scenes(options, backend)) {
    faults.push_back({scene.name(), [scene] { return play(scene); }});
  }
  for (const Misfortune& misfortune : misfortunes()) {
    if (misfortune.host_only && backend != Backend::kHost) continue;
    faults.push_back({std::string(misfortune.name), [run = misfortune.run, backend, &options] {
                        return run(backend, options.ranks);
                      }});
  }
  return faults;
}

std::vector<Fault> faults_of_network() {
  std::vector<Fault> faults;
  for (const NetworkFault& fault : network_faults()) {
    faults.push_back({std::string(fault.name), fault.run});
  }
  return faults;
}

std::vector<Fault> random_faults(const Options& options) {
  const Backend backend = take(parse_backend(options.backend));
  std::vector<Fault> faults;
  for (unsigned i = 0; i < options.campaign; ++i) {
    const RandomScene scene = draw_scene(backend, options.ranks, options.seed + i);
    faults.push_back({scene.name(), [scene] { return play(scene); }});
  }
  return faults;
}

// A pause until others have given up, said to be harmless: the campaign must complain of it.
std::string control() {
  RandomScene scene = draw_scene(Backend::kHost, 3, 2);
  scene.fate = Fate::kPaused;
  scene.too_long = true;
  const bool noticed = play(scene).find("unexpected: timeout") != std::string::npos;
  return noticed ? "" : "   a group that ran out of time was taken for a healthy one\n";
}

std::vector<Fault> faults_to_run(const Options& options) {
  if (options.control) return {{"control", control}};
  std::vector<Fault> faults = !options.topology.empty() ? faults_of_network()
                              : options.campaign > 0    ? random_faults(options)
                                                        : all_faults(options);
  std::erase_if(faults, [&](const Fault& fault) {
    return fault.name.find(options.filter) == std::string::npos;
  });
  return faults;
}

bool run_one(const Fault& fault) {
  const auto start = std::chrono::steady_clock::now();
  std::string text;
  try {
    text = fault.run();
  } catch (const std::exception& failure) {
    text = failure.what();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{} {} ({:.1f} s)\n{}", text.empty() ? "passed" : "FAILED", fault.name, took.count(),
             text);
  std::fflush(stdout);
  return text.empty();
}

int run(const Options& options) {
  if (options.backend == "cuda") {
    const std::string why = run_isolated(
        [&] { require(why_no_gpus(options.ranks).empty(), why_no_gpus(options.ranks)); },
        kPatience);
    if (!why.empty()) {
      fmt::print("skipped: {}\n0 passed, 0 failed\n", why);
      return kSkipped;
    }
  }
  if (!options.topology.empty()) {
    if (const std::string why = become_nodes(options.topology); !why.empty()) {
      fmt::print("skipped: {}\n0 passed, 0 failed\n", why);
      return kSkipped;
    }
  }
  int passed = 0, failed = 0;
  for (const Fault& fault : faults_to_run(options)) {
    if (options.list) {
      fmt::print("{}\n", fault.name);
      continue;
    }
    ++(run_one(fault) ? passed : failed);
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed > 0 || (passed == 0 && !options.list) ? 1 : 0;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  tutti::test::Options options;
  CLI::App app("Ranks that die, stop, disagree or run out of memory, and strangers");
  app.add_option("--backend", options.backend, "host or cuda");
  app.add_option("--ranks", options.ranks, "processes of a group")->check(CLI::Range(2, 16));
  app.add_option("--filter", options.filter, "only faults whose name holds this text");
  app.add_option("--seed", options.seed, "of the random moments and the selection");
  app.add_flag("--short", options.selection, "one victim for each moment and signal");
  app.add_option("--campaign", options.campaign,
                 "random fates at random moments instead, so many of them");
  app.add_flag("--control", options.control, "that the campaign finds what it looks for");
  app.add_flag("--times", tutti::test::times_count,
               "errors must come in time as well: on a machine that has nothing else to do");
  app.add_option("--topology", options.topology,
                 "nolocal: instead, faults of ranks that are nodes, over the loopback interface "
                 "unless TUTTI_SOCKET_IFNAME names another");
  app.add_flag("--list", options.list, "print the names and run nothing");
  CLI11_PARSE(app, argc, argv);
  try {
    return tutti::test::run(options);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 2;
  }
}
