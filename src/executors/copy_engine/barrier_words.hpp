// A barrier of ranks that needs no SM: streams write and await words themselves (stream memory
// operations). Copy-engine algorithms use it in place of their barrier kernels, each a block that
// waits for room while a matmul has every SM. This header is the protocol; StreamBarrier enqueues
// it, and watches it from the host.
//
// Each rank has a page of host memory (BarrierPage), which the streams and the hosts of all ranks
// reach. Barriers are counted on the host: k = 1, 2, ... In barrier k the stream of rank r does
//
//   write  own begun                = k
//   write  arrived[k % 2][r] of s   = v(k)        in the page of each other rank s
//   wait   own arrived[k % 2][s]   >= v(k)        for each other rank s
//   wait   own health              >= all healthy
//   write  own ended                = k
//
// Order. A write follows a system-scope fence for all earlier work of its stream. So what a rank
// copied, or what its kernels wrote, before barrier k is complete before a peer passes barrier k.
//
// Values. v(k) = v(k - 1) + 1 + the signature of k's operation; comparisons are cyclic, so nothing
// ends when v wraps. Ranks that enqueue the same operations have the same values. Where two ranks
// differ in operation k, the one with the larger value stays in barrier k, and the other one in
// k + 1 at the latest: slots alternate, and the first never writes the slot of k + 1. An operation
// has two barriers or more, so neither completes it.
//
// Slots alternate for the host, too: until a rank arrives at k, its slot holds v(k - 2), since it
// cannot have come further than k + 1. Anything else is another operation (kMismatch).
//
// A rank that uses a kernel where its peers use this barrier arrives at no slot. So that it is
// found, each host notes the signatures of its latest operations in its page (note_operation).
//
// No wait is endless. Each has its deadline on the host, whose words these are: the CPU reads for
// whom a stream waits, and ends the wait by a store (end_barriers), which no stream, no peer and no
// full queue can hold up. This is why the words lie in host memory.
//
// A released stream goes on, and would tell its peers of barriers that it never passed. Therefore
// the rank first clears its byte in the health of every peer, and only then releases its own waits:
// whoever sees a false arrival finds the byte cleared, and waits until its own host ends that, too.
// A peer that had passed both waits before finds the byte at the end of the operation. So once a
// rank has given up no peer completes an operation that needs it.
//
// Health has one byte per peer, which that peer alone writes: 1 while it is healthy. The rank's own
// byte is the most significant one, and outweighs the others: once it is set, no late store of a
// peer holds this rank up. The words of `arrived` have two writers after a failure, the peer's
// stream and this host, so the host releases them again until its streams have drained.
//
// Slots are never reset, and captures would repeat the constants: captures use barrier kernels.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/kernel_args.hpp"
#include "drivers/cuda.hpp"

namespace tutti {

// An eager operation of all ranks, as its rank's host has enqueued it.
struct NotedOperation {
  std::uint64_t number;  // from 1 on, since the pages were opened
  std::uint64_t signature;
};

struct BarrierPage {
  std::uint64_t arrived[2][kMaxCudaRanks];  // [parity of k][sender], each by its sender's stream
  std::uint64_t health;                     // one byte per rank: health_of()
  std::uint64_t begun, ended;               // by the owner's stream
  NotedOperation noted[64];                 // by the owner's host; [number % 64]
};

// The pages of all ranks, as this rank's streams, or its host, address them.
using BarrierPages = std::vector<BarrierPage*>;

// Of one rank's barrier.
struct BarrierTurn {
  std::uint64_t number = 0;  // k
  std::uint64_t value = 0;   // v(k)
  std::uint64_t before = 0;  // v(k - 1)
  std::uint64_t slot = 0;    // v(k - 2), what its slots hold until peers arrive

  BarrierTurn next(std::uint32_t signature) const {
    return {number + 1, value + 1 + signature, value, before};
  }
};

// Whether a count has reached another one; as streams compare.
constexpr bool has_reached(std::uint64_t seen, std::uint64_t value) {
  return static_cast<std::int64_t>(seen - value) >= 0;
}

inline constexpr int kOwnPlace = 7;  // the most significant byte
static_assert(kMaxCudaRanks <= kOwnPlace + 1);

// Where the health of rank `owner` has the byte of `rank`.
constexpr int place_in_health(int owner, int rank) {
  if (owner == rank) return kOwnPlace;
  return rank < owner ? rank : rank - 1;
}

inline std::uint8_t& health_of(BarrierPage& page, int owner, int rank) {
  static_assert(std::endian::native == std::endian::little,
                "the last byte is the most significant");
  return reinterpret_cast<std::uint8_t*>(&page.health)[place_in_health(owner, rank)];
}

// All peers are healthy.
constexpr std::uint64_t healthy_word(int ranks) {
  std::uint64_t word = 0;
  for (int peer = 0; peer < ranks - 1; ++peer) word |= std::uint64_t{1} << 8 * peer;
  return word;
}

// A page is zero before. By its owner, before a peer uses it.
inline void open_page(BarrierPage& page, int ranks) { page.health = healthy_word(ranks); }

void note_operation(BarrierPage& own, std::uint64_t number, std::uint32_t signature);
// What `peer` has noted under that number; nothing where it has not come so far, or further by
// many.
std::optional<std::uint32_t> noted_operation(BarrierPage& peer, std::uint64_t number);

std::vector<CudaMemoryOperation> barrier_operations(const BarrierPages& pages, int rank,
                                                    const BarrierTurn& turn);

// By the host of a rank that has failed, any number of times. Tells the peers; then ends all waits
// of this rank's streams for barriers up to `last`, the latest that was enqueued.
void leave_peers(const BarrierPages& pages, int rank);
void end_barriers(const BarrierPages& pages, int rank, const BarrierTurn& last);

inline std::uint64_t read_word(std::uint64_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

}  // namespace tutti
