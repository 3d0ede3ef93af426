// The same values as JSON. Reading a document that lacks a field throws nlohmann::json's exception:
// who reads foreign documents catches it.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_integer.hpp"
#include "topology/topology.hpp"

namespace tutti {
namespace {

Backend backend_in(const nlohmann::json& json) {
  const nlohmann::json& name = json.at("backend");
  const auto backend = parse_backend(name.get_ref<const std::string&>());
  if (backend.is_ok()) return *backend;
  throw nlohmann::json::other_error::create(501, backend.status().message(), &name);
}

template <class T>
void get_integer(const nlohmann::json& json, const char* name, T& value) {
  value = integer_in<T>(json, name);
}

constexpr std::pair<Reach, const char*> kWays[] = {{Reach::kPeerMemory, "peer_memory"},
                                                   {Reach::kCopyEngine, "copy_engine"},
                                                   {Reach::kNetwork, "network"}};

nlohmann::json ways_to_json(Reach reach) {
  nlohmann::json names = nlohmann::json::array();
  for (const auto& [way, name] : kWays) {
    if (includes(reach, way)) names.push_back(name);
  }
  return names;
}

Reach ways_in(const nlohmann::json& names) {
  Reach reach = Reach::kNone;
  for (const nlohmann::json& each : names) {
    const auto& text = each.get_ref<const std::string&>();
    const auto* const found = std::find_if(std::begin(kWays), std::end(kWays),
                                           [&](const auto& way) { return way.second == text; });
    if (found == std::end(kWays)) {
      throw nlohmann::json::other_error::create(501, "unknown way '" + text + "'", &each);
    }
    reach = reach | found->first;
  }
  return reach;
}

nlohmann::json reach_to_json(const Topology& topology) {
  nlohmann::json limited = nlohmann::json::array();
  for (const PairReach& pair : topology.limited) {
    limited.push_back({{"from", pair.from}, {"to", pair.to}, {"reach", ways_to_json(pair.reach)}});
  }
  return {{"within_nodes", ways_to_json(topology.within_nodes)},
          {"between_nodes", ways_to_json(topology.between_nodes)},
          {"limited", limited}};
}

int below(const nlohmann::json& value, int number, int end) {
  if (number >= 0 && number < end) return number;
  throw nlohmann::json::out_of_range::create(
      401, "a number of a rank or a node is not below " + std::to_string(end), &value);
}

void reach_from_json(const nlohmann::json& json, Topology& topology) {
  topology.within_nodes = ways_in(json.at("within_nodes"));
  topology.between_nodes = ways_in(json.at("between_nodes"));
  topology.limited.clear();
  for (const nlohmann::json& pair : json.at("limited")) {
    topology.limited.push_back({below(pair, integer_in<int>(pair, "from"), topology.ranks),
                                below(pair, integer_in<int>(pair, "to"), topology.ranks),
                                ways_in(pair.at("reach"))});
  }
}

void nodes_from_json(const nlohmann::json& nodes, Topology& topology) {
  topology.node_of.clear();
  if (nodes.empty()) return;
  if (nodes.size() != static_cast<std::size_t>(topology.ranks)) {
    throw nlohmann::json::other_error::create(501, "node_of has no number for each rank", &nodes);
  }
  int known = 0;
  for (const nlohmann::json& node : nodes) {
    topology.node_of.push_back(below(node, node.get<int>(), known + 1));
    known = std::max(known, topology.node_of.back() + 1);
  }
}

// Documents from before nodes were known tell only how many hosts there were, and whether all ranks
// reached each other. Their ranks are taken to be divided evenly.
void read_without_nodes(const nlohmann::json& json, Topology& topology) {
  const bool host = topology.backend == Backend::kHost;
  const bool peers = host || json.at("peer_access").get<bool>();
  topology.within_nodes = peers ? peer_ways(topology.backend) : Reach::kNone;
  const bool fabric = !host && topology.hosts > 1;
  topology.between_nodes = fabric ? topology.within_nodes : Reach::kNone;
  topology.limited.clear();
  topology.node_of.clear();
  if (topology.hosts <= 1) return;
  const int hosts = below(json, topology.hosts, topology.ranks + 1);
  for (std::int64_t rank = 0; rank < topology.ranks; ++rank) {
    topology.node_of.push_back(static_cast<int>(rank * hosts / topology.ranks));
  }
}

}  // namespace

void to_json(nlohmann::json& json, const Gpu& gpu) {
  json = {{"index", gpu.index},
          {"name", gpu.name},
          {"pci_bus_id", gpu.pci_bus_id},
          {"uuid", gpu.uuid},
          {"compute", gpu.compute},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes},
          {"nvlinks", gpu.nvlinks},
          {"numa_node", gpu.numa_node},
          {"posix_fd_handles", gpu.posix_fd_handles},
          {"fabric_handles", gpu.fabric_handles},
          {"multicast", gpu.multicast}};
}

void from_json(const nlohmann::json& json, Gpu& gpu) {
  get_integer(json, "index", gpu.index);
  json.at("name").get_to(gpu.name);
  json.at("pci_bus_id").get_to(gpu.pci_bus_id);
  json.at("uuid").get_to(gpu.uuid);
  get_integer(json, "compute", gpu.compute);
  get_integer(json, "multiprocessors", gpu.multiprocessors);
  get_integer(json, "memory_bytes", gpu.memory_bytes);
  get_integer(json, "nvlinks", gpu.nvlinks);
  get_integer(json, "numa_node", gpu.numa_node);
  json.at("posix_fd_handles").get_to(gpu.posix_fd_handles);
  json.at("fabric_handles").get_to(gpu.fabric_handles);
  json.at("multicast").get_to(gpu.multicast);
}

void to_json(nlohmann::json& json, const Host& host) {
  json = {{"name", host.name},
          {"boot_id", host.boot_id},
          {"cores", host.cores},
          {"numa_nodes", host.numa_nodes},
          {"memory_bytes", host.memory_bytes},
          {"shared_memory_bytes", host.shared_memory_bytes}};
}

void from_json(const nlohmann::json& json, Host& host) {
  json.at("name").get_to(host.name);
  json.at("boot_id").get_to(host.boot_id);
  get_integer(json, "cores", host.cores);
  get_integer(json, "numa_nodes", host.numa_nodes);
  get_integer(json, "memory_bytes", host.memory_bytes);
  get_integer(json, "shared_memory_bytes", host.shared_memory_bytes);
}

void to_json(nlohmann::json& json, const Machine& machine) {
  json = {{"host", machine.host},
          {"gpus", machine.gpus},
          {"peer_access", machine.peer_access},
          {"driver_version", machine.driver_version},
          {"cuda_version", machine.cuda_version},
          {"why_no_gpu", machine.why_no_gpu}};
}

void from_json(const nlohmann::json& json, Machine& machine) {
  json.at("host").get_to(machine.host);
  json.at("gpus").get_to(machine.gpus);
  json.at("peer_access").get_to(machine.peer_access);
  json.at("driver_version").get_to(machine.driver_version);
  json.at("cuda_version").get_to(machine.cuda_version);
  json.at("why_no_gpu").get_to(machine.why_no_gpu);
}

void to_json(nlohmann::json& json, const Topology& topology) {
  json = {{"backend", to_string(topology.backend)},
          {"ranks", topology.ranks},
          {"hosts", topology.hosts},
          {"processes", topology.processes},
          {"one_process", topology.one_process},
          {"gpu", topology.gpu},
          {"compute", topology.compute},
          {"multiprocessors", topology.multiprocessors},
          {"cores", topology.cores},
          {"ranks_per_gpu", topology.ranks_per_gpu},
          {"nvlinks", topology.nvlinks},
          {"node_of", topology.node_of},
          {"reach", reach_to_json(topology)},
          {"peer_access", topology.all_reach(Reach::kPeerMemory)},
          {"multicast", topology.multicast},
          {"nccl", topology.nccl},
          {"nccl_version", topology.nccl_version},
          {"network", topology.network}};
}

void from_json(const nlohmann::json& json, Topology& topology) {
  topology.backend = backend_in(json);
  get_integer(json, "ranks", topology.ranks);
  get_integer(json, "hosts", topology.hosts);
  get_integer(json, "processes", topology.processes);
  json.at("one_process").get_to(topology.one_process);
  json.at("gpu").get_to(topology.gpu);
  get_integer(json, "compute", topology.compute);
  get_integer(json, "multiprocessors", topology.multiprocessors);
  if (json.contains("cores")) get_integer(json, "cores", topology.cores);
  if (json.contains("ranks_per_gpu")) get_integer(json, "ranks_per_gpu", topology.ranks_per_gpu);
  get_integer(json, "nvlinks", topology.nvlinks);
  if (json.contains("reach")) {
    nodes_from_json(json.at("node_of"), topology);
    reach_from_json(json.at("reach"), topology);
  } else {
    read_without_nodes(json, topology);
  }
  json.at("multicast").get_to(topology.multicast);
  json.at("nccl").get_to(topology.nccl);
  if (json.contains("nccl_version")) get_integer(json, "nccl_version", topology.nccl_version);
  if (json.contains("network")) json.at("network").get_to(topology.network);
}

}  // namespace tutti
