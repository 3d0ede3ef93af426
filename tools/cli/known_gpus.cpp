#include "known_gpus.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr std::array<KnownGpu, 5> kGpus = {{{"NVIDIA A100-SXM4-40GB", 80, 108, 12},
                                            {"NVIDIA A100-SXM4-80GB", 80, 108, 12},
                                            {"NVIDIA H100 80GB HBM3", 90, 132, 18},
                                            {"NVIDIA H200", 90, 132, 18},
                                            {"NVIDIA B200", 100, 148, 18}}};

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

std::string names_of(const std::vector<KnownGpu>& gpus) {
  std::string text;
  for (const KnownGpu& gpu : gpus) text += fmt::format("{}{}", text.empty() ? "" : ", ", gpu.name);
  return text;
}

std::string tables_of(const KnownGpu& gpu, const TuningTable& table) {
  std::string text;
  for (const TuningSource& source : table.sources()) {
    const bool holds = std::any_of(source.entries.begin(), source.entries.end(),
                                   [&](const TuningEntry& entry) { return entry.gpu == gpu.name; });
    if (holds) text += fmt::format("{}{}", text.empty() ? "" : ", ", source.name);
  }
  return text.empty() ? "cost model only" : text;
}

}  // namespace

std::span<const KnownGpu> known_gpus() { return kGpus; }

Result<KnownGpu> find_gpu(std::string_view text) {
  std::vector<KnownGpu> found;
  for (const KnownGpu& gpu : kGpus) {
    if (lower(gpu.name) == lower(text)) return gpu;
    if (lower(gpu.name).find(lower(text)) != std::string::npos) found.push_back(gpu);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return wrong(fmt::format("unknown --gpu '{}'; known are {}", text,
                             names_of({kGpus.begin(), kGpus.end()})));
  }
  return wrong(fmt::format("--gpu '{}' fits {}; give more of the name", text, names_of(found)));
}

std::string list_gpus(const TuningTable& table) {
  std::size_t width = 0;
  for (const KnownGpu& gpu : kGpus) width = std::max(width, gpu.name.size());
  std::string text;
  for (const KnownGpu& gpu : kGpus) {
    text += fmt::format("{:<{}}  sm_{:<3}  {:>3} SMs  {:>2} NVLinks  {}\n", gpu.name, width,
                        gpu.compute, gpu.multiprocessors, gpu.nvlinks, tables_of(gpu, table));
  }
  return text;
}

}  // namespace tutti::cli
