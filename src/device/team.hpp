// The verbs an algorithm's body is written in. A Team is one block's view of the group: it knows
// its rank, its block, and how bytes and signals move. Two implementations: HostTeam (a thread,
// over shared memory) and NvlinkTeam (a thread block, over mapped peers).
//
// A body is called by every thread of the block with the same arguments. Work is dealt out in
// tiles: tile k of a range belongs to the same block, and within it to the same thread, on every
// rank and in every phase. So what a block wrote before a barrier is what the same block of a peer
// reads after.
//
//   for_each_tile(range, f)  f(access, tile) for each tile of the range that is this thread's.
//   for_each_stored_tile(range, to, f)
//                            Likewise, where the range is stored from `to` on, or at the same place
//                            of every output. If the operation stages no buffer, tiles are cut so
//                            that whole vectors can be stored, and then a tile's block is not the
//                            same on every rank: bodies that push into staging cannot use it.
//   buffers(piece)           Where everybody's inputs and outputs lie; where pieces of so many
//                            bytes lie one behind the other in them, accesses are as those allow.
//   load, store, store_all   Ordinary accesses, ordered by the arrivals and waits around them.
//   copy_in, copy_out        Own buffer to own staging, and back. Ordinary.
//   block()                  Which one of the grid this is.
//   copy_between(r, from, to) Range r of one address to the same of another. Ordinary.
//   copy_alone(r, from, to)  Likewise, all of it by this block: nothing is dealt out.
//   arrive(publish)          Tells every rank's same block that this one has come so far; `publish`
//                            says what is released with it. Scope: system.
//   wait()                   Until every rank's same block has arrived as often as this one.
//                            Acquires what they released. Bounded by the deadline, uniform over
//                            the block.
//   barrier(publish)         arrive, then wait.
//   load_scalar(from)        This rank's multiplier, where it lies in memory.
//   publish_scalar(bits)     Ordinary store to own memory, released by the next arrival. Bodies
//   call
//                            publish_scalar() of algorithms/reduction.hpp.
//   scalar_of(rank)          Of the whole word, after a wait.
//   publish_counts(f)        f(rank), likewise: what this rank has for each. Not where it is
//                            poisoned: a peer may still read what it had for the operation before.
//   learn_counts(load, is_right)
//                            load(from, to) for every two ranks, once for the block; fails where
//                            one is not right, and tells what would be. published(from, to) is what
//                            `from` has published.
//   counted(from, to)        What was learnt.
//   refuse(rank, count, v)   Fails: that is what `rank` has, and v says what would be right.
//   finish()                 Ends the operation: keeps the epoch for the next one; fails if another
//                            operation was using the channel at the last wait.
//
// A body whose data is its own flag (device/packets.hpp) uses none of these but the ones below.
// On GPUs PacketTeam has them. Tiles travel as Words: their bytes, of a short one padded with
// zeros.
//
//   launch_wait()            Earlier kernels of the stream have ended. Before it a body touches
//                            parameters alone.
//   launch_trigger()         The next kernel of the stream may be made ready.
//   ask_launch()             Which launch it is; the answer comes while inputs are loaded.
//   open_packets()           Takes the answer. Fails where the rank is poisoned: it pushes nothing.
//   announce()               Counts this block, and tells every rank's same block of the launch.
//                            Behind the first pushes, which it does not release: they go first
//                            because peers wait for them longest.
//   for_each_slice(n, f)     f(k) for those of n slices that are this thread's, until one fails.
//   load_tile, load_column   From the input: one tile, or tile k of every other rank's share, in
//                            the order of sending: the next rank's share first.
//   push_all, push_column    Into the slot at every other rank: the same tile, or of each its own
//                            share's. Relaxed at system scope (host: release), in words of 64 bits.
//   push_to(rank, at, ..)    Into the slot at that rank alone.
//   poll(at)                 Until every other rank's tile is there, then takes and empties them.
//                            Relaxed (host: acquire). Bounded by the deadline.
//   push_some, poll_some     push_column and poll of those tiles alone that have any elements.
//   word_of, number_of       A number as a tile, and back.
//   is_last_slice()          Whether this is the thread that comes last to slices.
//   poll_from(source, at)    Likewise, of that rank's alone.
//   place_own(column, tile)  Among what was polled: the own tile, which does not travel.
//   store_tile, store_column Into the output: one tile, or tile k of every other rank's share.
//   close_packets()          Until every rank has announced the launch; fails where one announced
//                            another operation, or another one was on the area meanwhile.
//
// A body that works on whole tokens has a block do one after the other, and each thread some tiles
// of it, the same ones each time. On GPUs TokenTeam has these, whose blocks are clusters of them.
// `load_from` and `store_to` are load_tile and store_tile for any buffer of this rank;
// with_token_access(f) calls f(access) for load_from and store_to.
//
//   for_each_token(n, f)     f(token) for those of n tokens that are this block's, until one fails.
//   for_each_of_token(n, f)  f(k) for those of a token's n tiles that are this thread's.
//   first_, next_of_token    Of this thread: the tile it begins with, and the one behind tile k.
//   holds(k), hold, held     Whether there is room for tile k and another one beside it; putting
//                            one there, and taking it, by the same thread. hold_beside(n, load)
//                            puts load(k) beside all of n tiles that are held.
//   sum_of_token(n, f, sum)  f(k, parts) for the same tiles: it gives what each 16 bytes of the
//                            tile add to the sum. Summed over the block in an order that depends on
//                            n alone (device/token_sum.hpp). Uniform over the threads that have
//                            tiles: fails if f has failed in any. Ordinary accesses stay unordered.
//
// A second kernel behind a row's own works in own memory alone. On GPUs LocalTeam has what it uses:
// launch_wait, launch_trigger, for_each_token, load_from, store_to, and
//
//   sum_of_loaded(n, load, beside, f, sum)
//                            f(k, load(k), parts) for each of a token's n tiles, and the sum of
//                            that as above; loads, and those of what lies beside, are under way
//                            together. Uniform over the block: fails where the rank is poisoned.
//   for_each_loaded(n, load, beside, f)
//                            f(k, load(k), beside(k)) for the same tiles; held ones are not loaded
//                            again.
//
// A body whose chunks go around a ring of slots (RingSlots) passes one barrier, and then uses
// these. On GPUs RingTeam has them, whose warps do not wait for each other.
//
//   open_ring(piece)         Counting of chunks begins. Where pieces of so many bytes lie one
//   behind
//                            the other in the buffers, accesses are as those allow.
//   slot_to(direction, at)   Until the slot of the next chunk that way is free. Acquires. Credits
//                            tell of slots forwards; back there are none: that the slot is free
//                            follows from what came forwards from that neighbour before.
//   slot_from(direction, at) Until the next chunk that goes that way has come. Acquires.
//   output_at(direction)     The output of the neighbour that way, where outputs are not staged.
//   for_each_of_chunk(n, load, use)
//                            use(access, tile, load(access, tile)) for each tile of n elements that
//                            is this thread's; a few loads ahead.
//   pass(moves)              The block's stores into slots are a chunk that is sent; its loads from
//                            them are over, and the slot is free. Releases both.
//
// A body whose data crosses the links by bulk copies has these beside the barriers' verbs. On GPUs
// BulkTeam has them. Nothing is dealt out: what a block passes is all its own. Until bulk_wait() a
// copy may read its source, and write, at any time; no arrival before releases it.
//
//   bulk_copy(to, from, n)   n elements. What came before the last wait() is before it, the block's
//                            own accesses and what it acquired; what the block stored since is not.
//   bulk_store_all(to, range, f)
//                            f(access, tile) for each tile of as many elements as the range has, by
//                            its place there; what it gives goes to the range in each of `to`. The
//                            tile's loads in f are before that.
//   bulk_store(to, range, f) Likewise into `to` alone.
//   bulk_fetch(from, r, use) use(access, tile, part_of) for each tile of as many elements as range
//   r
//                            has, by its place there; part_of(rank) is that tile of the range in
//                            `from` of that rank. All are loads of this block, begun after it comes
//                            here and over when it returns. Uniform over the block; fails where the
//                            deadline passes.
//   bulk_fetch_to(to, from, r, use)
//                            Likewise, where `use` stores each tile at its place from `to` on.
//   bulk_wait()              Until all of them are complete: sources are free, and the next arrival
//                            releases what was written with the block's stores. Uniform over the
//                            block; fails where the deadline passes.
//
// On GPUs whose links go through a switch that can do it MulticastTeam has these as well, for whole
// tiles; algorithms/multicast_buffers.hpp does the same by a loop over the peers where they are
// not.
//
//   is_whole_tile(from, ..)  Whether a tile is vectors of 16 bytes, aligned to them at every rank.
//   load_reduce(tile)        Of every rank's input, reduced by the switch, in its order. Relaxed.
//   store_multicast(tile, x) Into every rank's output. Relaxed.
#pragma once

#include <cstddef>

#include "device/kernel_args.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti {

// What bodies are declared with: compiled for the device by nvcc, for the host by the host
// compiler.
#if defined(__CUDACC__)
#define TUTTI_BODY __device__ inline
#define TUTTI_UNROLL _Pragma("unroll")
#define TUTTI_NO_UNROLL _Pragma("unroll 1")
#else
#define TUTTI_BODY inline
#define TUTTI_UNROLL
#define TUTTI_NO_UNROLL
#endif

// What an arrival releases.
enum class Publish : std::uint8_t {
  kEarlierKernels,  // what was written before this operation: the end of a kernel saw to that
  kLoads,           // and this block's loads are over: their values have been used
  kStores,          // and this block's stores are visible
};

// What a block did with slots of its ring, as bits.
constexpr unsigned sent(Direction direction) { return 1u << direction; }
constexpr unsigned taken(Direction direction) { return 4u << direction; }

// What a switch reduces by.
enum class SwitchOp : std::uint8_t { kSum, kMin, kMax };

// A run of elements [first, first + count) of a buffer.
struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Where a tile lies, and how many of its elements count (the last one of a range may be short).
struct TileAt {
  std::size_t first = 0;
  int count = 0;
};

// What is said of a count.
struct CountVerdict {
  bool is_right = true;
  FailureReason why = FailureReason::kNone;
  std::uint64_t right = 0;  // what would be
};

// One address per rank, in registers: only ever indexed by constants, or through of().
template <int kRanks>
struct Pointers {
  std::byte* at[kRanks];

  TUTTI_BODY std::byte* of(int rank) const {
#if defined(__CUDA_ARCH__)
    std::byte* address = at[0];
    TUTTI_UNROLL
    for (int r = 1; r < kRanks; ++r) address = rank == r ? at[r] : address;
    return address;
#else
    return at[rank];
#endif
  }
};

// What peers read and write in this operation. `outputs` starts with the next rank and ends with
// this one, so that no receiver is written by everyone at once.
template <int kRanks>
struct Buffers {
  Pointers<kRanks> inputs, outputs;
};

// The elements of a tile, in registers.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Tile {
  T at[kCount];
};

// The elements of a tile where they lie: what load() gives where a copy would only cost time.
template <class T>
struct TileInPlace {
  const T* at;
  int count;
};

// An n-th of so many elements, rounded up to whole units.
TUTTI_BODY std::size_t divided(std::size_t elements, int n, std::size_t unit) {
  const std::size_t units = (elements + unit - 1) / unit;
  return (units + n - 1) / n * unit;
}

// Rank `rank`'s share of `whole`: contiguous, a multiple of `unit` elements but for the last.
TUTTI_BODY Range shard(Range whole, int rank, int ranks, std::size_t unit) {
  const std::size_t share = divided(whole.count, ranks, unit);
  const std::size_t begin = share * rank < whole.count ? share * rank : whole.count;
  const std::size_t end = begin + share < whole.count ? begin + share : whole.count;
  return {whole.first + begin, end - begin};
}

// What the first arrival releases: inputs that peers read in place were written before.
TUTTI_BODY Publish first_publish(const KernelArgs& work) {
  return work.stage_input || work.scaled_by_peers ? Publish::kStores : Publish::kEarlierKernels;
}

// The part of `range` before `end`.
TUTTI_BODY Range cut(Range range, std::size_t end) {
  const std::size_t last = range.first + range.count;
  const std::size_t first = range.first < end ? range.first : end;
  return {first, (last < end ? last : end) - first};
}

// Elements per pass over a message: all of it, or as many as fit into staging, spread evenly.
TUTTI_BODY std::size_t chunk_elements(const KernelArgs& work, std::size_t element_bytes) {
  const bool staged = work.stage_input || work.stage_output;
  const std::size_t fits = work.staging_bytes / element_bytes;
  if (!staged || fits >= work.count) return work.count;
  const std::size_t passes = (work.count + fits - 1) / fits;
  const std::size_t unit = 256 / element_bytes;  // `fits` is a multiple of it
  return ((work.count + passes - 1) / passes + unit - 1) / unit * unit;
}

}  // namespace tutti
