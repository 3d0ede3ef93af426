#include "model/predict.hpp"

#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/network_ring.hpp"
#include "algorithms/ring.hpp"
#include "executors/network/engine.hpp"
#include "planning/network_chunks.hpp"

namespace tutti::model {
namespace {

// The kernel all_reduce/ring_bidirectional as a program: sums go around one way, whole shares both.
NetworkProgram ring_bidirectional(const NetworkShape& shape) {
  NetworkRing ring = ring_of_all(shape, shape.rank + 1, false);
  for (int part = 0; part < shape.ranks; ++part) {
    const Range share = share_of(shape, part, shape.ranks);
    ring.shares.push_back(share);
    ring.own.push_back(input_at(share.first));
    ring.into.push_back(output_at(share.first));
  }
  NetworkSteps steps(shape);
  NetworkRingSteps turns(steps, ring);
  turns.add();
  ring.member = {shape.ranks, shape.rank + 1, true};
  turns.spread();
  return steps.take();
}

std::vector<ModelledAlgorithm> kernel_rings(Collective collective) {
  if (collective != Collective::kAllReduce) return {};
  const auto ring = find_algorithm(collective, "network_ring");
  return {{.name = "ring", .schedule = ring.is_ok() ? (*ring)->network : nullptr},
          {.name = "ring_bidirectional", .schedule = ring_bidirectional}};
}

// All blocks of a kernel send a chunk each at a time: together they are one of the simulation's.
std::size_t ring_chunk_bytes(const ModelledCall& call, std::size_t count, int ranks) {
  const std::size_t element = size_of(call.dtype);
  const Geometry usual = ring_geometry({.bytes = call.bytes, .ranks = ranks});
  KernelArgs work{};
  work.count = count;
  work.ranks = ranks;
  work.blocks = call.blocks > 0 ? call.blocks : usual.blocks;
  work.ring.chunk_bytes = call.chunk_bytes > 0 ? call.chunk_bytes : usual.chunk_bytes;
  const RingCut cut(work, divided(count, ranks, 16 / element), 0, element);
  return cut.piece * static_cast<std::size_t>(work.blocks) * element;
}

std::size_t network_chunk_bytes(const ModelledCall& call, std::size_t bytes, const Links& links) {
  const bool rdma = links.chunks == Chunks::kRdma;
  const ClusterModel& cluster = links.cluster;
  const Crossing crossing =
      call.between == nullptr ? Crossing{} : call.between(cluster.ranks(), cluster.nodes);
  return network_cut({.bytes = bytes,
                      .ranks = cluster.ranks(),
                      .kind = rdma ? NetworkKind::kRdma : NetworkKind::kTcp,
                      .chunks_to_fill = crossing.chunks,
                      .delay_bytes = delay_bytes(cluster.between),
                      .staging_bytes = NetworkEngine::kMostScratchInUse,
                      .unit_bytes = kNetworkUnitBytes})
      .chunk_bytes;
}

}  // namespace

std::vector<ModelledAlgorithm> modelled_algorithms(Collective collective, Chunks chunks) {
  if (chunks == Chunks::kRing) return kernel_rings(collective);
  std::vector<ModelledAlgorithm> found;
  if (is_pairwise(collective)) return found;
  for (const Algorithm& row : rows_of(collective)) {
    if (row.network == nullptr) continue;
    found.push_back({.name = row.name(),
                     .schedule = row.network,
                     .between = row.cost.between,
                     .needs_nodes = (row.needs & kNeedsEvenNodes) != 0,
                     .takes = row.takes});
  }
  return found;
}

SimulatedOperation operation_of(const ModelledCall& call, const Links& links) {
  const bool ring = links.chunks == Chunks::kRing;
  const DataType moved = moved_as(call.collective, call.dtype);
  const std::size_t element = size_of(moved);
  const int ranks = links.cluster.ranks();
  const auto parts = static_cast<std::size_t>(has_pieces(call.collective) ? ranks : 1);
  const std::size_t elements =
      call.bytes / size_of(call.dtype) / parts * size_of(call.dtype) / element;
  SimulatedOperation operation{
      .schedule = call.schedule,
      .count = elements,
      .stride = parts > 1 ? elements : 0,
      .unit = std::max<std::size_t>((ring ? 16 : kNetworkUnitBytes) / element, 1),
      .root = call.root,
      .element_bytes = element,
      .chunk_bytes = call.chunk_bytes,
      .most_scratch_bytes = NetworkEngine::kMostScratchBytes};
  if (ring) {
    operation.chunk_bytes = ring_chunk_bytes(call, elements, ranks);
  } else if (operation.chunk_bytes == 0) {
    operation.chunk_bytes = network_chunk_bytes(call, elements * parts * element, links);
  }
  return operation;
}

std::size_t messages_of(const SimulatedOperation& operation, const ClusterModel& cluster) {
  std::vector<int> node_of(static_cast<std::size_t>(cluster.ranks()));
  for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
    node_of[rank] = static_cast<int>(rank) / cluster.ranks_per_node;
  }
  const NetworkProgram program = operation.schedule({.ranks = cluster.ranks(),
                                                     .root = operation.root,
                                                     .count = operation.count,
                                                     .stride = operation.stride,
                                                     .unit = operation.unit,
                                                     .node_of = node_of});
  const std::size_t chunk =
      std::max<std::size_t>(operation.chunk_bytes / operation.element_bytes, 1);
  // Each partition has all messages, of a part of their payload.
  const std::size_t scratch_bytes = program.scratch * operation.element_bytes;
  const std::size_t partitions = scratch_bytes / operation.most_scratch_bytes + 1;
  std::size_t messages = 0;
  for (const NetworkStep& step : program.steps) {
    if (step.kind != NetworkStep::Kind::kSend) continue;
    messages += std::max(chunks_of(step, chunk), partitions);
  }
  return messages;
}

}  // namespace tutti::model
