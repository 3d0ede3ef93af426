#include "planning/model.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "planning/network_chunks.hpp"

namespace tutti {
namespace {

// H200 in CUDA graphs. Base and hop: fitted to operations of 4 and 5 hops up to 64 KiB on 2 to 8
// GPUs (a flag and its answer, measured alone, take 0.7 to 1.35 us one way, and 0.54 us lie between
// empty kernels). Bandwidth: stores of 16 bytes from 56 blocks, each bound to one of 7 peers.
constexpr double kCudaBaseUs = 0.9;
constexpr double kNvlinkHopUs = 1.0;
constexpr double kMeasuredGbps = 330;

// A copy within the GPU's memory: its load's and its fence's latency, and its bytes once read and
// once written at 2 TB/s. Assumed; docs/internals/performance_notes.md compares staged operations
// with it.
constexpr double kCudaCopyUs = 1.0;
constexpr double kCudaCopyGbps = 1000;
constexpr int kMeasuredLinks = 18;

// Published, per link and direction: 25 GB/s for NVLink 3 and 4 (A100, H100, H200), 50 GB/s for
// NVLink 5 (sm_100). What a link delivers is taken to be the same part of that as measured above.
constexpr int kFirstComputeWithNvlink5 = 100;

// Peers over PCIe, links unknown: published 32 GB/s per direction for 16 lanes of generation 4, of
// which about three quarters are payload. The hop is assumed to be twice NVLink's; not measured.
constexpr double kPcieGbps = 24;
constexpr double kPcieHopUs = 2.0;

// One core's memcpy of 64 MiB, measured on a virtual machine of 2 EPYC cores, and a cache line from
// one core to another as published for machines of one socket.
constexpr double kHostGbps = 12;
constexpr double kHostHopUs = 0.2;
constexpr double kHostBaseUs = 0.5;  // two looks at the clock and a call through a pointer; assumed

// Messages between hosts: assumed to be TCP over 10 Gbit/s. Half a round trip of 8 bytes over UCX's
// TCP takes 7.4 us on one host, to which comes a switch; 93 % of such a link is payload.
constexpr double kNetworkBaseUs = 5;
constexpr double kNetworkHopUs = 15;
constexpr double kNetworkGbps = 1.16;

// GPUs' buffers pass through host memory: two copies over PCIe, and a kernel that waits for the
// host. Assumed.
constexpr double kThroughHostUs = 20;
constexpr double kThroughHostGbps = kPcieGbps / 2;

double crossing_us(const Algorithm& algorithm, const Load& load, const Topology& topology) {
  const Crossing crossing = algorithm.cost.between(load.ranks, topology.nodes());
  const NetworkCut cut = network_cut({.bytes = load.bytes, .ranks = load.ranks});
  const auto chunk = static_cast<double>(std::min(cut.chunk_bytes, load.bytes));
  const double sent = static_cast<double>(load.bytes) * crossing.wire + chunk * crossing.chunks;
  return crossing.hops * kNetworkHopUs + sent / (kNetworkGbps * 1e3);
}

double network_us(const Algorithm& algorithm, const Load& load, const Topology& topology) {
  const double us = kNetworkBaseUs + crossing_us(algorithm, load, topology);
  if (topology.backend != Backend::kCuda) return us;
  return us + kThroughHostUs + static_cast<double>(load.bytes) / (kThroughHostGbps * 1e3);
}

}  // namespace

MachineModel machine_model(const Topology& topology) {
  if (topology.backend != Backend::kCuda) {
    return {kHostBaseUs, kHostHopUs, kHostGbps, 0, kHostGbps};
  }
  if (topology.nvlinks <= 0) {
    return {kCudaBaseUs, kPcieHopUs, kPcieGbps, kCudaCopyUs, kCudaCopyGbps};
  }
  const double generation = topology.compute >= kFirstComputeWithNvlink5 ? 2 : 1;
  const double links = static_cast<double>(topology.nvlinks) / kMeasuredLinks;
  return {kCudaBaseUs, kNvlinkHopUs, kMeasuredGbps * links * generation, kCudaCopyUs,
          kCudaCopyGbps};
}

namespace {

// On the host own memory is as far as a peer's: what is read or written in either counts, half of a
// byte that memcpy reads and writes. On GPUs the links alone do.
double traffic(const Cost& cost, int ranks, Backend backend) {
  const double wire = cost.wire != nullptr ? cost.wire(ranks) : 0;
  const double local = cost.local != nullptr ? cost.local(ranks) : 0;
  return backend == Backend::kHost ? (wire + local) / 2 : wire;
}

// Fitted to 3 H200s and pieces of 3 to 85 MB whose lengths were multiples of 2 or of 4 bytes
// (docs/internals/performance_notes.md). The factor for 8 bytes is assumed. By the width of
// accesses for kernels of which nothing was measured since they load whole tiles from any address.
constexpr double kBytewise = 10, kWordwise = 3, kPairwise = 1.6, kNcclNarrow = 2, kSumsNarrow = 2.2;

}  // namespace

double slowdown(const Algorithm& algorithm, int width) {
  const bool repacks = algorithm.packets != nullptr || algorithm.network != nullptr;
  if (width >= kVectorBytes || repacks) return 1;
  if ((algorithm.needs & kNeedsNccl) != 0) return kNcclNarrow;
  if (algorithm.cost.narrow > 0) return algorithm.cost.narrow;
  if (algorithm.program != nullptr) return reduces(algorithm.collective) ? kSumsNarrow : 1;
  return width >= 8 ? kPairwise : width >= 4 ? kWordwise : kBytewise;
}

std::size_t passes_of(const Load& load) {
  if (load.staging_bytes == 0) return 0;
  return std::max<std::size_t>(ceil_div(load.staged_bytes, load.staging_bytes), 1);
}

bool is_fitted(const Topology& topology) {
  return topology.backend == Backend::kCuda && topology.nvlinks > 0 && topology.compute / 10 == 9;
}

double predicted_us(const Algorithm& algorithm, const Load& load, const Topology& topology) {
  const MachineModel machine = machine_model(topology);
  if (load.ranks <= 1) return machine.base_us;  // no hop, and a local copy at most
  if (algorithm.network != nullptr) return network_us(algorithm, load, topology);
  const bool crosses = topology.nodes() > 1 && !topology.all_reach(Reach::kPeerMemory);
  if (algorithm.cost.between != nullptr && crosses) {
    const double steps =
        algorithm.cost.steps + algorithm.cost.steps_per_rank * topology.most_ranks_on_a_node();
    return machine.base_us + steps * machine.hop_us + crossing_us(algorithm, load, topology);
  }
  const std::size_t passes = passes_of(load);
  const int copies =
      passes == 0 ? 0 : int{algorithm.peers_read_input} + int{algorithm.peers_write_output};
  const bool host = topology.backend == Backend::kHost && algorithm.cost.host_steps > 0;
  const double steps = host ? algorithm.cost.host_steps
                            : algorithm.cost.steps + algorithm.cost.steps_per_rank * load.ranks;
  const double pass_us = steps * machine.hop_us + copies * machine.copy_us;
  const double wire = load.sent * traffic(algorithm.cost, load.ranks, topology.backend);
  const double sent_us = static_cast<double>(load.bytes) * wire / (machine.bandwidth_gbps * 1e3) *
                         slowdown(algorithm, load.width);
  const double copied_us =
      static_cast<double>(load.staged_bytes) * copies / (machine.copy_gbps * 1e3);
  return machine.base_us + static_cast<double>(std::max<std::size_t>(passes, 1)) * pass_us +
         sent_us + copied_us;
}

}  // namespace tutti
