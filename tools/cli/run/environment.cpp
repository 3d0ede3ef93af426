#include "run/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "bench/child_process.hpp"

namespace tutti::cli {
namespace {

// What is read before torchrun's variables, or would make torch look for another launcher.
constexpr std::array<std::string_view, 8> kOtherLaunchers = {"TUTTI_RANK=",
                                                             "TUTTI_SIZE=",
                                                             "TUTTI_LOCAL_RANK=",
                                                             "TUTTI_LOCAL_SIZE=",
                                                             "TUTTI_GROUP_FD=",
                                                             "TORCHELASTIC_RUN_ID=",
                                                             "TORCHELASTIC_RESTART_COUNT=",
                                                             "TORCHELASTIC_USE_AGENT_STORE="};
// What the launcher decides itself.
constexpr std::array<std::string_view, 4> kOfTheLauncher = {
    "TUTTI_ROOT=", "TUTTI_SECRET=", "TUTTI_SECRET_FILE=", "TUTTI_SSH="};

bool is_any_of(std::string_view setting, const auto& names) {
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return setting.starts_with(name); });
}

void set(std::vector<std::string>& settings, const std::string& setting) {
  const std::string name = setting.substr(0, setting.find('=') + 1);
  std::erase_if(settings, [&](const std::string& old) { return old.starts_with(name); });
  settings.push_back(setting);
}

}  // namespace

std::vector<std::string> environment_of_rank(const RankPlace& place,
                                             const std::vector<std::string>& settings) {
  std::vector<std::string> changes = settings;
  set(changes, fmt::format("RANK={}", place.rank));
  set(changes, fmt::format("WORLD_SIZE={}", place.ranks));
  set(changes, fmt::format("LOCAL_RANK={}", place.local_rank));
  set(changes, fmt::format("LOCAL_WORLD_SIZE={}", place.local_ranks));
  set(changes, fmt::format("MASTER_ADDR={}", place.master));
  set(changes, fmt::format("MASTER_PORT={}", place.port));
  std::vector<std::string> environment = environment_with(changes);
  std::erase_if(environment,
                [](const std::string& setting) { return is_any_of(setting, kOtherLaunchers); });
  return environment;
}

std::vector<std::string> settings_to_pass(const std::vector<std::string>& environment,
                                          const std::vector<std::string>& names) {
  std::vector<std::string> passed;
  for (const std::string& setting : environment) {
    const bool made = is_any_of(setting, kOtherLaunchers) || is_any_of(setting, kOfTheLauncher);
    if (setting.starts_with("TUTTI_") && !made) set(passed, setting);
  }
  for (const std::string& name : names) {
    if (name.find('=') != std::string::npos) {
      set(passed, name);
      continue;
    }
    for (const std::string& setting : environment) {
      if (setting.starts_with(name + "=")) set(passed, setting);
    }
  }
  return passed;
}

}  // namespace tutti::cli
