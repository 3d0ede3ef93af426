// A barrier of ranks that needs no SM: the streams write and await words themselves, by stream
// memory operations. Copy-engine algorithms use it in place of their one-block barrier kernels,
// which wait for room while a matmul occupies every SM. This header is the protocol. StreamBarrier
// enqueues it, and watches it from the host.
//
// Each rank has a page of host memory (BarrierPage) that the streams and the hosts of all ranks can
// access. Barriers are counted on the host: k = 1, 2, ... In barrier k the stream of rank r does
// this:
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
// Values. v(k) = v(k - 1) + 1 + the signature of the operation. Comparisons are cyclic, so v may
// wrap. Ranks that enqueue the same operations have the same values. If two ranks differ in an
// operation, the rank with the larger value stays in the first barrier that differs, k. The other
// rank stays in k + 1 at the latest, because the first rank never writes the slot of k + 1: slots
// alternate. An operation has at least two barriers, so neither rank completes it.
//
// Mismatch. While a stream is in k, its slots hold v(k - 2) or v(k): a peer writes v(k + 2) only
// after it saw this rank arrive at k + 1, which the stream writes after ended = k. The host reads
// any other value as another operation, and computes its signature. The stream may pass k while the
// host reads. So the host reads `ended` again after the slots, and believes them only if the stream
// is still in k. A peer that uses a barrier kernel instead writes no slot: that is found by the
// recorders of the ranks (group/recorder/comparison.hpp).
//
// Deadlines. The host reads the words, so it knows for which rank a stream waits, and for how long.
// It ends a wait by a store (end_barriers). That is why the words are host memory: to write device
// memory the host would need another stream, which can be stuck in the same hardware queue.
//
// Failure. A released stream continues, and its enqueued writes would announce arrivals that never
// happened. Therefore a failed rank first clears its byte in the health of every peer
// (leave_peers), and only then releases its own stream. A peer that sees a false arrival finds the
// byte cleared, and stays until its own host releases it. A peer that had passed both waits before
// finds the byte cleared in the next barrier. So after a rank has failed, no peer completes an
// operation that needs it.
//
// Health has one byte per peer, which only that peer writes: 1 while it is healthy. The rank's own
// byte is the most significant one. Once it is set, the comparison holds whatever the peers write.
// A slot of `arrived` has two writers after a failure, the peer's stream and this host, so the host
// repeats end_barriers() until its streams have drained.
//
// Captures use barrier kernels: a graph would repeat the constants.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/has_reached.hpp"
#include "device/kernel_args.hpp"
#include "drivers/cuda.hpp"

namespace tutti {

struct BarrierPage {
  std::uint64_t arrived[2][kMaxCudaRanks];  // [parity of k][sender], each by its sender's stream
  std::uint64_t health;                     // one byte per rank: health_of()
  std::uint64_t begun, ended;               // by the owner's stream
  std::uint64_t tried[kMaxCudaRanks];       // by each rank's stream, before the first barrier
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

std::vector<CudaMemoryOperation> barrier_operations(const BarrierPages& pages, int rank,
                                                    const BarrierTurn& turn);

// By the host of a rank that has failed, any number of times. Tells the peers; then ends all waits
// of this rank's streams for barriers up to `last`, the latest that was enqueued.
void leave_peers(const BarrierPages& pages, int rank);
void end_barriers(const BarrierPages& pages, int rank, const BarrierTurn& last);

inline std::uint64_t read_word(std::uint64_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}
using WordReader = std::function<std::uint64_t(std::uint64_t& word)>;  // as read_word()

// What the host of a rank saw of a barrier while its stream was in it.
class BarrierView {
 public:
  // Of a barrier that the stream has begun. Nothing if it has passed it since.
  static std::optional<BarrierView> of(const BarrierPages& pages, int rank, const BarrierTurn& turn,
                                       const WordReader& read = read_word);

  // The next rank for which the stream waits: a healthy one, since a rank that has given up did so
  // because of another rank, and tells which; else one that has not arrived; else one that arrived
  // and has given up. -1 where all have come.
  int missing_rank() const;
  // Whether the peer's arrival is there. It may be a false one.
  bool has_arrival(int peer) const { return seen_[peer].arrived == turn_.value; }
  // The signature of the operation that the peer arrived at in place of this one, if it did.
  std::optional<std::uint32_t> other_operation(int peer) const;

 private:
  struct Seen {
    std::uint64_t arrived = 0;
    bool is_healthy = true;
  };
  BarrierView(const BarrierTurn& turn, int ranks, int rank)
      : turn_(turn), ranks_(ranks), rank_(rank) {}

  BarrierTurn turn_;
  int ranks_, rank_;
  std::array<Seen, kMaxCudaRanks> seen_;
};

}  // namespace tutti
