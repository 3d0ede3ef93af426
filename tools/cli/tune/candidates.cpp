#include "tune/candidates.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/units.hpp"
#include "device/kernel_args.hpp"

namespace tutti::cli {
namespace {

// Of rings, beside the row's own.
constexpr std::array<std::size_t, 3> kChunkBytes = {16 * KiB, 32 * KiB, 128 * KiB};

// Of staging, for what passes through it in any case: a pass takes half of it. Beside all of it.
constexpr std::array<std::size_t, 1> kStagingBytes = {4 * MiB};

// Of what copy engines move, while kernels reduce what has come.
constexpr std::array<std::size_t, 3> kCopiedBytes = {8 * MiB, 16 * MiB, 32 * MiB};

constexpr int kLeastThreads = 64;

bool runs(const Algorithm& row, int ranks, Backend backend) {
  return ranks <= (backend == Backend::kCuda ? row.max_ranks_cuda : row.max_ranks_host);
}

// Half and double of either, and the same number of threads spread otherwise. None where a library
// decides.
std::vector<Geometry> geometries_around(const Geometry& own) {
  if (own.threads == 0) return {};
  const int blocks = own.blocks, threads = own.threads;
  std::vector<Geometry> result;
  for (const auto& [b, t] :
       {std::pair(blocks, threads / 2), std::pair(blocks, threads * 2),
        std::pair(blocks / 2, threads), std::pair(blocks * 2, threads),
        std::pair(blocks * 2, threads / 2), std::pair(blocks / 2, threads * 2)}) {
    if (b < 1 || b > kMaxBlocks || t < kLeastThreads || t > kMaxThreads) continue;
    result.push_back({b, t});
  }
  return result;
}

// A chunk as large as the message is no chunk.
std::vector<std::size_t> chunks_for(const Algorithm& row, std::size_t bytes) {
  std::span<const std::size_t> all;
  if (has_ring_slots(row)) all = kChunkBytes;
  if (row.pushes_through_staging) all = kStagingBytes;
  if (row.program != nullptr) all = kCopiedBytes;
  std::vector<std::size_t> result;
  std::ranges::copy_if(all, std::back_inserter(result),
                       [bytes](std::size_t chunk) { return chunk < bytes; });
  return result;
}

}  // namespace

std::vector<Configuration> candidates_for(const Algorithm& row, const Extent& extent,
                                          Backend backend) {
  if (!runs(row, extent.ranks, backend)) return {};
  const Configuration own{.algorithm = std::string(row.name())};
  std::vector<Configuration> result = {own};
  if (backend == Backend::kCuda && row.geometry != nullptr && !row.sends_messages) {
    for (const Geometry& geometry : geometries_around(row.geometry(extent))) {
      Configuration varied = own;
      varied.blocks = geometry.blocks;
      varied.threads = geometry.threads;
      result.push_back(varied);
    }
  }
  for (const std::size_t chunk : chunks_for(row, extent.bytes)) {
    Configuration varied = own;
    varied.chunk_bytes = chunk;
    result.push_back(varied);
  }
  return result;
}

}  // namespace tutti::cli
