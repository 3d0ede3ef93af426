// How a block has what ranks hold brought into shared memory: chunk after chunk, of every rank one,
// a few chunks ahead of their use.
#pragma once

#include "device/nvlink_peer/bulk_moves.cuh"

namespace tutti {

// What a bulk load brings.
struct BulkPart {
  const std::byte* from;
  std::uint32_t bytes;
};

// In shared memory. One thread begins chunks; warps use them, and give them back.
class BulkFetches {
 public:
  // Of one rank, a multiple of 16: so that all ranks' parts of kStages chunks fill the slots.
  static __device__ std::size_t chunk_bytes(int ranks) {
    return kStageBytes / static_cast<unsigned>(ranks) / 128 * 128;
  }
  // Rank 0's part of a chunk; the others' follow.
  static __device__ uint4* parts(unsigned chunk) {
    return bulk_slot(0) + chunk % kStages * (kStageBytes / sizeof(uint4));
  }

  // Before a barrier of the block.
  __device__ void open(int ranks, unsigned warps) {
    for (int s = 0; s < kStages; ++s) {
      init_load_barrier(&loaded_[s], static_cast<unsigned>(ranks));
      init_load_barrier(&given_back_[s], warps);
    }
    fence_load_barriers();
  }

  // part_of(rank) says what is to be brought, the next rank's first. If not 0, the chunk's place
  // has been waited for so long.
  template <class PartOf>
  __device__ std::uint64_t begin(const KernelArgs& work, unsigned chunk, PartOf&& part_of) {
    const unsigned stage = chunk % kStages, turn = chunk / kStages;
    const std::uint64_t late_ns = turn == 0 ? 0 : await_load(work, &given_back_[stage], turn - 1);
    if (late_ns != 0) return late_ns;
    TUTTI_NO_UNROLL
    for (int step = 1; step <= work.ranks; ++step) {
      const int next = work.rank + step, rank = next < work.ranks ? next : next - work.ranks;
      const BulkPart part = part_of(rank);
      const std::size_t place = static_cast<unsigned>(rank) * chunk_bytes(work.ranks);
      bulk_load(parts(chunk) + place / sizeof(uint4), part.from, part.bytes, &loaded_[stage]);
    }
    return 0;
  }

  // Until all parts of the chunk are there. If not 0, they have been waited for so long.
  __device__ std::uint64_t await(const KernelArgs& work, unsigned chunk) {
    return await_load(work, &loaded_[chunk % kStages], chunk / kStages);
  }

  // By all lanes of a warp, once each.
  __device__ void give_back(unsigned chunk) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive_at_load_barrier(&given_back_[chunk % kStages]);
  }

 private:
  static constexpr int kStages = 2;  // long loads are what counts
  static constexpr std::size_t kStageBytes = kBulkBytes / kStages;

  std::uint64_t loaded_[kStages], given_back_[kStages];  // mbarriers
};

}  // namespace tutti
