#include "planning/network_chunks.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/units.hpp"

namespace tutti {
namespace {

// Measured with rings of UCX messages over TCP, 4 and 8 ranks, 200 Mbit/s and 1 Gbit/s: chunks of
// 32 to 64 KiB, sent eagerly, use 97 to 99.7 % of the link.
constexpr std::size_t kLeastTcpChunk = 32 * KiB, kMostTcpChunk = 64 * KiB;

// CTRAN's rings: chunks of 64 KiB to 16 MiB. Below the least one, a transfer costs more than what
// it carries.
constexpr std::size_t kLeastRdmaChunk = 64 * KiB, kMostRdmaChunk = 16 * MiB;

// CTRAN's tuner, of hosts newer than Hopper's: a share of up to 32 MB is cut in two, so that one
// half is on its way while the other is added; smaller than 32 KB, or larger, it is not.
constexpr std::size_t kLeastCutShare = 32 * KiB, kMostCutShare = 32 * MiB;
// What is on its way at most, where nobody says what the link's delay holds.
constexpr std::size_t kUsualDelayBytes = 128 * MiB;

// Of the time that a tree takes, about a fifth passes while its links fill: each half of a vector
// has four times as many chunks as that takes.
constexpr double kChunksPerHop = 8;

std::size_t rdma_chunk(const NetworkCutInput& input, std::size_t share) {
  if (input.chunks_to_fill > 0) {
    const double chunk = static_cast<double>(input.bytes) / (kChunksPerHop * input.chunks_to_fill);
    return std::clamp(static_cast<std::size_t>(chunk), kLeastRdmaChunk, kMostRdmaChunk);
  }
  const std::size_t ranks = static_cast<std::size_t>(std::max(input.ranks, 1));
  const std::size_t most_on_way = input.delay_bytes > 0 ? input.delay_bytes : kUsualDelayBytes;
  const std::size_t parts = share >= kLeastCutShare && share < kMostCutShare ? 2 : 1;
  const std::size_t on_way = std::min(ceil_div(share, parts), ceil_div(most_on_way, parts * ranks));
  return std::clamp(on_way, kLeastRdmaChunk, kMostRdmaChunk);
}

// Half of a share, so that a share is never sent as a whole before it is added, within limits.
std::size_t tcp_chunk(std::size_t share) {
  return std::clamp(ceil_div(share, 2), kLeastTcpChunk, kMostTcpChunk);
}

}  // namespace

NetworkCut network_cut(const NetworkCutInput& input) {
  const std::size_t ranks = static_cast<std::size_t>(std::max(input.ranks, 1));
  const std::size_t unit = std::max<std::size_t>(input.unit_bytes, 1);
  const std::size_t staging = input.staging_bytes;
  NetworkCut cut;
  if (staging > 0)
    cut.partitions = static_cast<int>(std::max(ceil_div(input.bytes, staging), std::size_t{1}));
  const std::size_t part = ceil_div(input.bytes, static_cast<std::size_t>(cut.partitions));
  const std::size_t share = ceil_div(part, ranks);
  const std::size_t chunk =
      input.kind == NetworkKind::kTcp ? tcp_chunk(share) : rdma_chunk(input, share);
  cut.chunk_bytes = round_up(chunk, unit);
  cut.depth = static_cast<int>(std::max(ceil_div(share, cut.chunk_bytes), std::size_t{1}));
  return cut;
}

std::string network_cut_table(const NetworkCutInput& input) {
  std::string text = fmt::format("messages over {}, {} ranks:\n  {:>6}  {:>6}  {:>5}  {:>10}\n",
                                 input.kind == NetworkKind::kTcp ? "TCP" : "RDMA", input.ranks,
                                 "bytes", "chunk", "depth", "partitions");
  for (std::size_t bytes = KiB; bytes <= GiB; bytes *= 4) {
    NetworkCutInput asked = input;
    asked.bytes = bytes;
    const NetworkCut cut = network_cut(asked);
    text += fmt::format("  {:>6}  {:>6}  {:>5}  {:>10}\n", format_bytes(bytes),
                        format_bytes(cut.chunk_bytes), cut.depth, cut.partitions);
  }
  return text;
}

}  // namespace tutti
