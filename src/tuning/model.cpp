#include "tuning/model.hpp"

namespace tutti {
namespace {

// Measured on 8x H200 in CUDA graphs: an operation's kernel that waits for nobody; a release store
// until an acquire load sees it, half of a round trip; stores of 16 bytes from 56 blocks, each
// bound to one of 7 peers, 332 GB/s.
constexpr double kCudaBaseUs = 2.0;
constexpr double kNvlinkHopUs = 1.33;
constexpr double kMeasuredGbps = 330;
constexpr int kMeasuredLinks = 18;

// Published, per link and direction: 25 GB/s for NVLink 3 and 4 (A100, H100, H200), 50 GB/s for
// NVLink 5 (sm_100). What a link delivers is taken to be the same part of that as measured above.
constexpr int kFirstComputeWithNvlink5 = 100;

// Peers over PCIe, links unknown: published 32 GB/s per direction for 16 lanes of generation 4, of
// which about three quarters are payload. The hop is assumed to be twice NVLink's; not measured.
constexpr double kPcieGbps = 24;
constexpr double kPcieHopUs = 2.66;

// One core's memcpy of 64 MiB, measured on a virtual machine of 2 EPYC cores, and a cache line from
// one core to another as published for machines of one socket.
constexpr double kHostGbps = 12;
constexpr double kHostHopUs = 0.2;
constexpr double kHostBaseUs = 0.5;  // two looks at the clock and a call through a pointer; assumed

}  // namespace

MachineModel machine_model(const Topology& topology) {
  if (topology.backend != Backend::kCuda) return {kHostBaseUs, kHostHopUs, kHostGbps};
  if (topology.nvlinks <= 0) return {kCudaBaseUs, kPcieHopUs, kPcieGbps};
  const double generation = topology.compute >= kFirstComputeWithNvlink5 ? 2 : 1;
  const double links = static_cast<double>(topology.nvlinks) / kMeasuredLinks;
  return {kCudaBaseUs, kNvlinkHopUs, kMeasuredGbps * links * generation};
}

double predicted_us(const Algorithm& algorithm, int ranks, std::size_t bytes,
                    const Topology& topology) {
  const MachineModel machine = machine_model(topology);
  if (ranks <= 1) return machine.base_us;  // no hop, and a local copy at most
  const double wire = algorithm.cost.wire != nullptr ? algorithm.cost.wire(ranks) : 0;
  const double bytes_per_us = machine.bandwidth_gbps * 1e3;
  return machine.base_us + algorithm.cost.steps * machine.hop_us +
         static_cast<double>(bytes) * wire / bytes_per_us;
}

}  // namespace tutti
