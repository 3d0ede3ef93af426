// Machines and groups that need not exist:
//
//   FakeMachine box;
//   box.gpus(8).name("NVIDIA H200").nvlink_all_to_all().multicast(false);
//   choose(request, box.topology(8), table);
//
// Starts as a host of 128 cores without a GPU; gpus(n) gives it n H200s that cannot reach each
// other.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "topology/topology.hpp"

namespace tutti {

class FakeMachine {
 public:
  FakeMachine() {
    machine_.host.name = "fake";
    machine_.host.boot_id = "00000000-0000-4000-8000-000000000000";
    machine_.host.cores = 128;
    machine_.host.numa_nodes = 2;
    machine_.host.memory_bytes = std::size_t{2} << 40;
    machine_.host.shared_memory_bytes = std::size_t{1} << 40;
    machine_.why_no_gpu = "the driver sees no GPU";
  }

  FakeMachine& host(std::string name, int cores) {
    machine_.host.name = std::move(name);
    machine_.host.cores = cores;
    return *this;
  }

  FakeMachine& gpus(int count) {
    machine_.gpus.clear();
    for (int index = 0; index < count; ++index) machine_.gpus.push_back(h200(index, count));
    machine_.why_no_gpu = count == 0 ? "the driver sees no GPU" : "";
    machine_.driver_version = count == 0 ? "" : "580.159.04";
    machine_.cuda_version = count == 0 ? "" : "13.0";
    return peer_access(false);
  }

  FakeMachine& name(const std::string& name) {
    for (Gpu& gpu : machine_.gpus) gpu.name = name;
    return *this;
  }

  FakeMachine& compute(int compute) {
    for (Gpu& gpu : machine_.gpus) gpu.compute = compute;
    return *this;
  }

  FakeMachine& multiprocessors(int count) {
    for (Gpu& gpu : machine_.gpus) gpu.multiprocessors = count;
    return *this;
  }

  // `links` active links per GPU into switches, so that every pair reaches each other.
  FakeMachine& nvlink_all_to_all(int links = 18) {
    for (Gpu& gpu : machine_.gpus) gpu.nvlinks = links;
    return peer_access(true);
  }

  // Over PCIe, unless nvlink_all_to_all() was called, too.
  FakeMachine& peer_access(bool every_pair) {
    const std::size_t count = machine_.gpus.size();
    machine_.peer_access.assign(count, std::vector<bool>(count, every_pair));
    for (std::size_t i = 0; i < count; ++i) machine_.peer_access[i][i] = true;
    return *this;
  }

  // One directed pair, in the driver's words.
  FakeMachine& cannot_reach(int from, int to) {
    machine_.peer_access.at(static_cast<std::size_t>(from)).at(static_cast<std::size_t>(to)) =
        false;
    return *this;
  }

  FakeMachine& multicast(bool supported) {
    for (Gpu& gpu : machine_.gpus) gpu.multicast = supported;
    return *this;
  }

  FakeMachine& fabric(bool supported) {
    for (Gpu& gpu : machine_.gpus) gpu.fabric_handles = supported;
    return *this;
  }

  FakeMachine& nccl(bool installed) {
    nccl_ = installed;
    return *this;
  }

  // All ranks are threads of one process; otherwise each is a process.
  FakeMachine& one_process(bool yes = true) {
    one_process_ = yes;
    return *this;
  }

  // Ranks are spread evenly over so many machines like this one.
  FakeMachine& hosts(int count) {
    hosts_ = count;
    return *this;
  }

  const Machine& machine() const { return machine_; }

  // Ranks on the first `ranks` GPUs, or on the host where there is no GPU.
  Topology topology(int ranks) const {
    Topology group;
    group.ranks = ranks;
    group.hosts = hosts_;
    group.processes = one_process_ ? 1 : ranks;
    group.one_process = one_process_;
    group.nccl = nccl_;
    group.nccl_version = nccl_ ? 22907 : 0;
    for (int rank = 0; hosts_ > 1 && rank < ranks; ++rank) {
      group.node_of.push_back(rank * hosts_ / ranks);
    }
    if (machine_.gpus.empty()) return group;
    const Gpu& first = machine_.gpus.front();
    group.backend = Backend::kCuda;
    group.gpu = first.name;
    group.compute = first.compute;
    group.multiprocessors = first.multiprocessors;
    group.nvlinks = first.nvlinks;
    group.multicast = first.multicast;
    group.within_nodes = peer_ways(Backend::kCuda);
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (group.node(from) != group.node(to) || reaches(from, to, ranks / hosts_)) continue;
        group.limited.push_back({from, to, Reach::kNone});
      }
    }
    return group;
  }

 private:
  static Gpu h200(int index, int count) {
    Gpu gpu;
    gpu.index = index;
    gpu.name = "NVIDIA H200";
    gpu.pci_bus_id = fmt::format("0000:{:02x}:00.0", 0x1b + index);
    gpu.uuid = fmt::format("GPU-00000000-0000-0000-0000-{:012x}", index);
    gpu.compute = 90;
    gpu.multiprocessors = 132;
    gpu.memory_bytes = std::size_t{141} * 1000 * 1000 * 1000;
    gpu.numa_node = 2 * index < count ? 0 : 1;
    gpu.posix_fd_handles = true;
    return gpu;
  }

  // Ranks of one machine, of which each has so many.
  bool reaches(int from, int to, int ranks_here) const {
    const auto gpu = [&](int rank) {
      return static_cast<std::size_t>(rank % ranks_here) % machine_.gpus.size();
    };
    return machine_.peer_access[gpu(from)][gpu(to)];
  }

  Machine machine_;
  int hosts_ = 1;
  bool one_process_ = false;
  bool nccl_ = true;
};

}  // namespace tutti
