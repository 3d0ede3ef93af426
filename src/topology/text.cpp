// Machines and groups in words, and the name a machine's results are filed under.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/units.hpp"
#include "topology/topology.hpp"

namespace tutti {
namespace {

std::string counted(int number, std::string_view what) {
  const std::string_view plural = number == 1 ? "" : what.ends_with("s") ? "es" : "s";
  return fmt::format("{} {}{}", number, what, plural);
}

std::string gibibytes(std::size_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(GiB));
}

std::string host_text(const Host& host) {
  return fmt::format("host {}: {}, {}, {} memory, {} in /dev/shm\n", host.name,
                     counted(host.cores, "core"), counted(host.numa_nodes, "NUMA node"),
                     gibibytes(host.memory_bytes), gibibytes(host.shared_memory_bytes));
}

std::string gpu_text(const Gpu& gpu) {
  return fmt::format("  GPU {}: {}, {}, sm_{}, {}, {}, {}, NUMA node {}\n", gpu.index, gpu.name,
                     gpu.pci_bus_id, gpu.compute, counted(gpu.multiprocessors, "multiprocessor"),
                     gibibytes(gpu.memory_bytes),
                     gpu.nvlinks > 0 ? counted(gpu.nvlinks, "NVLink") : "no NVLink known",
                     gpu.numa_node >= 0 ? std::to_string(gpu.numa_node) : "unknown");
}

// One line where all pairs are alike, else a line per GPU that lacks something.
std::string peer_text(const Machine& machine) {
  std::string missing;
  for (std::size_t from = 0; from < machine.peer_access.size(); ++from) {
    std::string unreachable;
    for (std::size_t to = 0; to < machine.peer_access[from].size(); ++to) {
      if (!machine.peer_access[from][to]) unreachable += fmt::format(" {}", to);
    }
    if (!unreachable.empty()) {
      missing += fmt::format("  GPU {} cannot reach GPU{}\n", from, unreachable);
    }
  }
  return missing.empty() ? "peer access: every pair\n" : "peer access:\n" + missing;
}

bool is_memory_size(std::string_view word) {
  return word.size() > 2 && word.ends_with("gb") &&
         std::isdigit(static_cast<unsigned char>(word.front())) != 0;
}

// Words that do not tell one kind of machine from another.
bool is_noise(std::string_view word) {
  constexpr std::array<std::string_view, 4> kVendor = {"nvidia", "tesla", "geforce", "quadro"};
  return std::find(kVendor.begin(), kVendor.end(), word) != kVendor.end() ||
         word.starts_with("hbm") || word.starts_with("sxm") || is_memory_size(word);
}

// "NVIDIA A100-SXM4-80GB" -> "a100".
std::string short_name(std::string_view name) {
  std::string all;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && !is_noise(word)) all += word;
    word.clear();
  };
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) == 0) {
      end_word();
    } else {
      word += static_cast<char>(std::tolower(letter));
    }
  }
  end_word();
  return all.empty() ? "gpu" : all;
}

// Empty for one node.
std::string nodes_text(const Topology& topology) {
  const int nodes = topology.nodes();
  if (nodes == 1) return {};
  const int least = topology.least_ranks_on_a_node(), most = topology.most_ranks_on_a_node();
  const std::string ranks =
      least == most ? counted(most, "rank") : fmt::format("{} to {} ranks", least, most);
  return fmt::format(", {} of {}", counted(nodes, "node"), ranks);
}

std::string_view peer_access_text(const Topology& topology) {
  if (topology.all_reach(Reach::kPeerMemory)) return "peer access";
  const bool within_nodes = topology.nodes() > 1 && topology.peer_access_within_nodes();
  return within_nodes ? "peer access within nodes" : "no peer access";
}

}  // namespace

std::string to_text(const Machine& machine) {
  std::string text = host_text(machine.host);
  if (machine.gpus.empty()) return text + fmt::format("no GPU: {}\n", machine.why_no_gpu);
  text += fmt::format("driver {}, CUDA {}, {}\n", machine.driver_version, machine.cuda_version,
                      counted(static_cast<int>(machine.gpus.size()), "GPU"));
  for (const Gpu& gpu : machine.gpus) text += gpu_text(gpu);
  return text + peer_text(machine);
}

std::string to_text(const Topology& topology) {
  const std::string group =
      fmt::format("{}: {} in {} on {}{}", to_string(topology.backend),
                  counted(topology.ranks, "rank"), counted(topology.processes, "process"),
                  counted(topology.hosts, "host"), nodes_text(topology));
  const std::string_view nccl = topology.nccl ? "NCCL" : "no NCCL";
  if (topology.backend == Backend::kHost) return fmt::format("{}, {}", group, nccl);
  return fmt::format("{}, {} (sm_{}, {}, {}), {}, {}multicast, {}", group, topology.gpu,
                     topology.compute, counted(topology.multiprocessors, "multiprocessor"),
                     counted(topology.nvlinks, "NVLink"), peer_access_text(topology),
                     topology.multicast ? "" : "no ", nccl);
}

std::string machine_slug(const Machine& machine) {
  if (machine.gpus.empty()) return fmt::format("host{}", machine.host.cores);
  const std::string name = short_name(machine.gpus.front().name);
  const bool alike = std::all_of(machine.gpus.begin(), machine.gpus.end(),
                                 [&name](const Gpu& gpu) { return short_name(gpu.name) == name; });
  return fmt::format("{}x{}", alike ? name : "mixed", machine.gpus.size());
}

}  // namespace tutti
