// What the machine under a group of ranks is, as a value: printable, serialisable, equal on every
// rank, and inventable in tests (FakeMachine).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/reach.hpp"
#include "tutti/types.hpp"

namespace tutti {

class CudaDriver;
class NvmlDriver;
class Bootstrap;
class Deadline;

struct Gpu {
  int index = -1;    // CUDA ordinal in its process
  std::string name;  // "NVIDIA H200"
  std::string pci_bus_id;
  std::string uuid;
  int compute = 0;  // 90 for sm_90
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  int nvlinks = 0;  // active links, 0 if unknown
  int numa_node = -1;
  bool posix_fd_handles = false, fabric_handles = false, multicast = false;
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct Host {
  std::string name;
  std::string boot_id;
  int cores = 0;
  int numa_nodes = 1;
  std::size_t memory_bytes = 0;
  std::size_t shared_memory_bytes = 0;  // size of /dev/shm; 0 if absent
  friend bool operator==(const Host&, const Host&) = default;
};

// What one process sees: its host and all its visible GPUs. `peer_access[i][j]`: the driver's word.
struct Machine {
  Host host;
  std::vector<Gpu> gpus;
  std::vector<std::vector<bool>> peer_access;
  std::string driver_version, cuda_version;
  std::string why_no_gpu;  // empty where there are GPUs
  friend bool operator==(const Machine&, const Machine&) = default;
};

// Either driver may be null.
Machine discover_machine(CudaDriver* cuda, NvmlDriver* nvml);

// As Topology::nccl_version. Symmetric kernels before the second do not see an abort: one that
// waits for a lost rank ends with its process.
inline constexpr int kFirstNcclWithWindows = 22700;
inline constexpr int kFirstNcclWithCopyEngines = 22800;
inline constexpr int kFirstNcclThatAbortsThem = 22907;
// Of a machine that is only described: new enough for everything, and told to nobody.
inline constexpr int kAnyNccl = 99999;

// The ways between ranks that can share memory.
constexpr Reach peer_ways(Backend backend) {
  return backend == Backend::kCuda ? Reach::kPeerMemory | Reach::kCopyEngine : Reach::kPeerMemory;
}

// What choosing an algorithm may know of a group. The same on every rank.
struct Topology {
  Backend backend = Backend::kHost;
  int ranks = 1;
  int hosts = 1;
  int processes = 1;
  bool one_process = true;
  std::string gpu;  // "NVIDIA H200"; empty on the host backend; "mixed" if they differ
  int compute = 0;
  int multiprocessors = 0;
  int cores = 0;          // of the host that has fewest, for the host backend; 0: unknown
  int ranks_per_gpu = 1;  // where most ranks share one (TUTTI_SHARE_GPUS)
  int nvlinks = 0;
  bool multicast = false;
  bool nccl = false;                // loadable on every rank
  int nccl_version = 0;             // of the oldest: 22809 is 2.28.9; 0: unknown
  bool network = false;             // messages can be sent between all ranks
  std::string why_no_network = {};  // "rank 1: no UCX is there: ..."; empty: nobody has asked

  // A node is where ranks can share memory: a host (a container, where its namespaces differ), or
  // what TUTTI_TOPOLOGY makes of it. Numbered from 0 as ranks are; empty: all ranks are on node 0.
  std::vector<int> node_of;
  // Of ordered pairs of ranks. On CUDA, peer memory has been verified by transfers.
  Reach within_nodes = Reach::kPeerMemory, between_nodes = Reach::kNone;
  std::vector<PairReach> limited;  // the pairs that have less than that

  // Whether ranks are threads that share a GPU. They share its CUDA context, too, so that a call of
  // one rank may wait for streams of another.
  bool threads_share_gpus() const { return one_process && ranks_per_gpu > 1; }
  int node(int rank) const;
  int nodes() const;
  int least_ranks_on_a_node() const;
  int most_ranks_on_a_node() const;
  // Whether there are two nodes or more, with equally many ranks.
  bool has_even_nodes() const;
  Reach reach(int from, int to) const;
  // An ordered pair of ranks that lacks `way`, on one node or on two; nothing where no pair does.
  std::optional<std::pair<int, int>> pair_without(Reach way) const;
  bool all_reach(Reach way) const { return !pair_without(way); }
  // Whether every rank reaches the memory of all others on its node.
  bool peer_access_within_nodes() const;
  friend bool operator==(const Topology&, const Topology&) = default;
};

std::string to_text(const Topology& topology);    // one line
std::string nccl_text(const Topology& topology);  // "NCCL 2.28.9", "NCCL", "no NCCL"
void to_json(nlohmann::json& json, const Gpu&);
void from_json(const nlohmann::json& json, Gpu&);
void to_json(nlohmann::json& json, const Host&);
void from_json(const nlohmann::json& json, Host&);
void to_json(nlohmann::json& json, const Machine&);
void from_json(const nlohmann::json& json, Machine&);
void to_json(nlohmann::json& json, const Topology&);
void from_json(const nlohmann::json& json, Topology&);

// The file name under which this machine's figures are kept: "h200x8", "host2".
std::string machine_slug(const Machine& machine);

}  // namespace tutti
