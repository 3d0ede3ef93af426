// Groups in words, and the name that results of a machine are filed under.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "topology/topology.hpp"

namespace tutti {
namespace {

std::string counted(int number, std::string_view what) {
  const std::string_view plural = number == 1 ? "" : what.ends_with("s") ? "es" : "s";
  return fmt::format("{} {}{}", number, what, plural);
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

std::string to_text(const Topology& topology) {
  const std::string group =
      fmt::format("{}: {} in {} on {}{}", to_string(topology.backend),
                  counted(topology.ranks, "rank"), counted(topology.processes, "process"),
                  counted(topology.hosts, "host"), nodes_text(topology));
  const std::string nccl = nccl_text(topology) + (topology.network ? ", network" : "");
  if (topology.backend == Backend::kHost) return fmt::format("{}, {}", group, nccl);
  const std::string sms =
      topology.multiprocessors > 0 ? fmt::format(", {} SMs", topology.multiprocessors) : "";
  return fmt::format("{}, {} (sm_{}{}, {}), {}, {}multicast, {}", group, topology.gpu,
                     topology.compute, sms, counted(topology.nvlinks, "NVLink"),
                     peer_access_text(topology), topology.multicast ? "" : "no ", nccl);
}

std::string nccl_text(const Topology& topology) {
  if (!topology.nccl) return "no NCCL";
  const int version = topology.nccl_version;
  if (version <= 0 || version == kAnyNccl) return "NCCL";
  return fmt::format("NCCL {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string machine_slug(const Machine& machine) {
  if (machine.gpus.empty()) return fmt::format("host{}", machine.host.cores);
  const std::string name = short_name(machine.gpus.front().name);
  const bool alike = std::all_of(machine.gpus.begin(), machine.gpus.end(),
                                 [&name](const Gpu& gpu) { return short_name(gpu.name) == name; });
  return fmt::format("{}x{}", alike ? name : "mixed", machine.gpus.size());
}

}  // namespace tutti
