// What one operation on one rank consists of, as the kernel (or the host thread) sees it: a value,
// passed whole to every block. Built by group/, read by bodies and teams.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/device/impl/failure.hpp"
#include "tutti/types.hpp"

namespace tutti {

inline constexpr int kMaxRanks = 16;
inline constexpr int kMaxCudaRanks = 8;
inline constexpr int kMaxBlocks = 128;
inline constexpr int kMaxThreads = 512;      // per block
inline constexpr int kCountBlocks = 32;      // of operations whose ranks tell each other counts
inline constexpr int kMaxClusterBlocks = 8;  // as every GPU has them that knows clusters

// How many of a grid's blocks share a token, where it has so many of each: of the powers of two
// that divide the grid, the largest one that leaves each token a cluster of its own.
constexpr int cluster_of(int blocks, std::size_t tokens) {
  int cluster = kMaxClusterBlocks;
  while (cluster > 1 &&
         (blocks % cluster != 0 || static_cast<std::size_t>(blocks / cluster) < tokens)) {
    cluster /= 2;
  }
  return cluster;
}

// Slots in the shared memory of a block, through which bulk copies go: for copies, and for sums.
inline constexpr int kBulkMoves = 4, kBulkSums = 2;
inline constexpr std::size_t kBulkSlotBytes = 32 * 1024;
inline constexpr std::size_t kBulkBytes = (kBulkMoves + kBulkSums) * kBulkSlotBytes;

// One address per rank.
struct PeerPointers {
  std::byte* at[kMaxRanks];
};

// How a block ends: uniform over its threads.
enum class Outcome : std::uint8_t { kDone, kFailed };

// A flag says "rank r has reached barrier `epoch` of this block". Epochs only grow and never wrap;
// a rank that stops waiting takes its flag back: 0. The two words are stored together but may
// arrive apart, so the second repeats the low half of the epoch it belongs to; its high half is the
// operation's signature, which is not 0: so a check word of 0 was never stored.
struct alignas(16) Flag {
  std::uint64_t epoch;
  std::uint64_t check;
};
// Whether both words are of one store.
constexpr bool is_whole(const Flag& flag) {
  return static_cast<std::uint32_t>(flag.check) == static_cast<std::uint32_t>(flag.epoch) &&
         flag.check != 0;
}

// Ways around a ring: to the next rank, or to the one before.
enum Direction : int { kForward, kReverse };

// What a rank's block is told of the chunks that go around a ring: how many have come into its
// slots, by direction, and how many of those that it sent forwards the receiver is done with. Both
// count from the epoch of the operation's barrier.
struct RingFlags {
  Flag chunks[2];
  Flag credits;
};

// A number of an accumulator's type, in the low bytes of a word.
using ScalarBits = std::uint64_t;

// Where the buffers of a rank lie, for ranks that are threads of its process
// (executors/peer/address_exchange.hpp).
struct AddressMemory {
  struct Buffers {
    const std::byte* input;
    std::byte* output;
  };
  Buffers buffers[2];  // of one exchange and the one before
  // 1: the owner uses addresses of others. Ranks that ask also modify it, by adding 0.
  std::uint64_t users;
};

// What each rank exposes to its peers per channel. One writer per word: flags[b][s] is written by
// rank s alone, scalars[b], counts[b] and addresses by the owner, of rings[b] each word by one
// neighbour.
struct ChannelMemory {
  Flag flags[kMaxBlocks][kMaxRanks];
  // kPreMulSum: the owner's multiplier as ScalarBits, published before block b's first barrier of
  // the operation.
  ScalarBits scalars[kMaxBlocks];
  RingFlags rings[kMaxBlocks];
  // What the owner has for each rank, published likewise (device/counts.hpp).
  std::uint32_t counts[kCountBlocks][kMaxRanks];
  AddressMemory addresses;
};

// What each rank exposes to its peers per packet area; its slots follow, one generation behind the
// other. One writer per word: flags[b][s] is written by rank s alone.
struct PacketMemory {
  Flag flags[kMaxBlocks][kMaxRanks];  // block b of rank s has begun launch `epoch`
};
inline constexpr int kPacketGenerations = 2;

// Where packets travel. Launch k uses generation k % 2; slot (part, source) of a generation is
// where rank `source` puts what it has for this rank in that part of the operation.
struct PacketArea {
  PeerPointers memory;           // PacketMemory, starting with the next rank's, this rank's last
  std::size_t generation_bytes;  // a multiple of 256
  std::size_t slot_bytes;        // of this operation
  std::uint64_t* launches;       // LaunchWord; private to this rank and area
};

// What every row can work with: two halves, in each two slots of 16 bytes for every rank.
inline constexpr std::size_t kLeastStagingBytes = 2 * 2 * kMaxRanks * 16;

// How staging is divided where chunks go around a ring: slots per block, and direction.
struct RingSlots {
  static constexpr int kPerBlock = 4;  // in each direction
  std::size_t chunk_bytes = 0;         // what a slot holds: a multiple of 16
  int directions = 0;                  // 0: no ring
  bool always = false;                 // also where neighbours reach the outputs

  constexpr std::size_t offset(int block, Direction direction, std::uint64_t chunk) const {
    const std::size_t ring = static_cast<std::size_t>(block) * directions + direction;
    return (ring * kPerBlock + chunk % kPerBlock) * chunk_bytes;
  }
};

// Counts the launches on an area. Each block adds its share, together one launch; which block comes
// last, nobody has to know. It never wraps.
struct LaunchWord {
  static constexpr int kShareBits = 16;
  static constexpr std::uint64_t at(std::uint64_t launch) { return launch << kShareBits; }
  static constexpr std::uint64_t launch_of(std::uint64_t word) { return word >> kShareBits; }
  static constexpr std::uint64_t share_of(int block, int blocks) {
    return block == 0 ? at(1) - static_cast<std::uint64_t>(blocks - 1) : 1;
  }
};

// One address each for the buffers of all ranks, where they are bound to a multicast object; else
// null.
struct MulticastPointers {
  std::byte *input, *output;
};

// Buffers of a captured operation, filled in by finish_capture(). In device memory.
struct DeferredBuffers {
  PeerPointers inputs, outputs;  // as in KernelArgs
  MulticastPointers multicast;
  std::uint32_t ready;
};

// What a normalisation works with besides, where one follows the reduction: `count` elements are
// tokens of `hidden` each. Peers touch none of it.
struct TokenNorm {
  const std::byte* residual;  // `count` elements, added to the sum
  const std::byte* weight;    // `hidden` elements
  std::byte* output;          // `count` elements, normalised
  std::uint32_t tokens, hidden;
  float epsilon;
  DataType output_dtype;  // the message's, or a float of 8 bits
  float scale;            // of that
};

struct Messages;     // device/messages.hpp
struct PieceCounts;  // device/counts.hpp

struct KernelArgs {
  std::size_t count;  // elements
  int rank, ranks;
  int root;    // of collectives that have one
  int blocks;  // of the grid; block b of every rank works on the same elements
  std::uint32_t signature;
  std::uint64_t sequence;
  std::uint64_t timeout_ns;  // 0: control->timeout_ns

  const std::byte* input;  // this rank's own
  std::byte* output;
  PeerPointers inputs;   // by rank; unused where staged
  PeerPointers outputs;  // starting with the next rank, this rank last; staging where staged
  MulticastPointers multicast;
  const DeferredBuffers* late;  // if not null, holds inputs, outputs and multicast
  bool stage_input;             // peers read staging, not inputs
  bool stage_output;            // peers write staging, not outputs
  PeerPointers staging;         // by rank
  std::size_t staging_bytes;    // a multiple of 256
  RingSlots ring;               // in staging

  // Of rows that copy engines move: how much is reduced while more is copied (0: all of it), and
  // whether the kernel between copies ends with a barrier.
  std::size_t chunk_bytes;
  bool meets;

  PacketArea packets;
  // Of rows that send some, and of those whose pieces have lengths of their own. To a kernel they
  // are an argument of its own.
  const Messages* messages;
  const PieceCounts* counts;

  PeerPointers channels;  // ChannelMemory of each rank
  std::uint64_t* epochs;  // [kMaxBlocks], private to this rank and channel
  Control* control;
  FailureRecord* failure;        // host memory
  const std::uint32_t* notices;  // host memory; see Notice

  ScalarBits scalar;               // kPreMulSum: this rank's multiplier
  const std::byte* device_scalar;  // instead, if not null: where it is, as an element
  bool scaled_by_peers;            // kPreMulSum: multipliers are read from the peers
  double divisor;                  // kAvg: ranks; else 1

  TokenNorm norm;  // where the collective has one; then `output` is for the sum and the residual

  // ChannelMemory of all ranks as one, where it is bound to a multicast object; else null.
  std::byte* multicast_channel;
};

// Whether what goes around a ring goes through slots, or from output to output.
constexpr bool goes_through_slots(const KernelArgs& work) {
  return work.stage_output || work.ring.always;
}

}  // namespace tutti
