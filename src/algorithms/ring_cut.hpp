// How what goes around a ring, or along a chain, is cut into chunks.
#pragma once

#include "algorithms/ring_schedule.hpp"
#include "device/team.hpp"

namespace tutti {

// Chunks of one step: as many are under way while the first of them is waited for. No more than
// half the slots: then whatever is waited for is of an earlier step.
inline constexpr int kRingLead = RingSlots::kPerBlock / 2;

// How a block's part of the message is cut, in elements. The same on all ranks.
struct RingCut {
  std::size_t count, share, part, piece;
  int block, partitions;

  TUTTI_BODY RingCut(const KernelArgs& work, std::size_t share_length, int block_index,
                     std::size_t element_bytes)
      : count(work.count), share(share_length), block(block_index) {
    const std::size_t unit = 16 / element_bytes;
    part = divided(share, work.blocks, unit);
    const std::size_t most = work.ring.chunk_bytes / element_bytes * kRingLead;
    partitions = part > most ? static_cast<int>((part + most - 1) / most) : 1;
    piece = divided(part, partitions * kRingLead, unit);
  }

  // How many elements lie before a share.
  TUTTI_BODY std::size_t begin_of(int share_of) const {
    return share * static_cast<std::size_t>(share_of);
  }

  // All that a rank alone has for this block.
  TUTTI_BODY Range whole_part() const {
    const std::size_t first = least(part * static_cast<std::size_t>(block), count);
    return {first, least(first + part, count) - first};
  }

  // Chunk `chunk` of a partition of share `share_of`, which is taken modulo the number of ranks.
  TUTTI_BODY Range chunk(int share_of, int ranks, int partition, int chunk) const {
    const std::size_t begin = begin_of(on_ring(share_of, ranks));
    const std::size_t own = begin + part * static_cast<std::size_t>(block);
    const std::size_t own_end = least(own + part, least(begin + share, count));
    const int index = partition * kRingLead + chunk;
    const std::size_t first = least(own + piece * static_cast<std::size_t>(index), own_end);
    return {first, least(first + piece, own_end) - first};
  }

 private:
  static TUTTI_BODY std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }
};

}  // namespace tutti
