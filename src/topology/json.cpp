// The same values as JSON. Reading a document that lacks a field throws nlohmann::json's exception:
// who reads foreign documents catches it.
#include <nlohmann/json.hpp>

#include <string>

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
          {"ranks_per_gpu", topology.ranks_per_gpu},
          {"nvlinks", topology.nvlinks},
          {"peer_access", topology.peer_access},
          {"multicast", topology.multicast},
          {"nccl", topology.nccl},
          {"nccl_version", topology.nccl_version}};
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
  if (json.contains("ranks_per_gpu")) get_integer(json, "ranks_per_gpu", topology.ranks_per_gpu);
  get_integer(json, "nvlinks", topology.nvlinks);
  json.at("peer_access").get_to(topology.peer_access);
  json.at("multicast").get_to(topology.multicast);
  json.at("nccl").get_to(topology.nccl);
  if (json.contains("nccl_version")) get_integer(json, "nccl_version", topology.nccl_version);
}

}  // namespace tutti
