// What the header of an algorithm says of it, in a struct that is named after its id:
//
//   struct AllReduceOneShot {                       // all_reduce/one_shot
//     using Kernel = PeerKernel;                    // its kernels, by what a block of them has
//     using Types = EveryReduction;                 // what its body is instantiated for
//     static HostBody host(DataType dtype, OpKind op);
//     static CudaKernel cuda(DataType dtype, OpKind op, int ranks);  // null in builds without CUDA
//     static constexpr Algorithm kAlgorithm{...};   // what the catalogue says
//     static constexpr KernelPromises kPromises{...};
//     static constexpr Traffic kTraffic{...};
//     template <class Reduction, class Team>
//     static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
//   };
//
// CMake (algorithms.cmake) reads Kernel and Types, and generates host() and cuda(), which find the
// instantiation of the body.
//
// An algorithm of copy engines has program() instead of run(), and neither Kernel nor kPromises. An
// algorithm that runs another one's body has kAlgorithm and kTraffic alone; its kAlgorithm names
// host() and cuda() of that other one. An algorithm of a library has kAlgorithm and kTraffic alone,
// too. With `using Beside = PieceCounts;` run() takes a PieceCounts as well: the second parameter
// of the kernel. A Follower runs after an algorithm's own kernel; its cuda() takes the number of
// one of its kernels.
#pragma once

#include <string_view>

#include "algorithms/bodies.hpp"
#include "algorithms/catalogue.hpp"
#include "algorithms/instantiate.hpp"
#include "device/kernel_args.hpp"
#include "device/team.hpp"

namespace tutti {

// The kinds of kernels (kernels.cuh, multicast_kernel.cuh): which team a block is, of so many ranks
// as come or of exactly 2, 4 or 8, and what the block shares.
struct PeerKernel;
struct PacketKernel;
struct ExactPacketKernel;
struct TokenKernel;
struct RingKernel;
struct BulkKernel;
struct BulkFetchKernel;
struct MessageKernel;
struct MulticastKernel;
struct LocalKernel;

// What the machine code of an algorithm's kernels keeps, for eight ranks: tests/gates compares.
struct KernelPromises {
  int loads = 0, stores = 0;  // of 16 bytes, in one trip through its wide loop
  int barriers = 0;
  int narrow = 0;        // narrower accesses in that loop
  int loops = 1;         // so many such loops
  int stack_bytes = 32;  // over the whole kernel; none where it is for exactly so many ranks
  bool block_fences = false;
  int local = 0;  // accesses to local memory that are let pass in the loop
  bool bulk_loads = false, bulk_stores = false;
};

// A loop that polls for packets has those of every other rank under way at once, the announcement
// of one, and the word that counts launches. For any number of ranks a value or two are put aside
// there, too: what polls has the time.
inline constexpr KernelPromises kPollsTogether{
    .loads = kMaxCudaRanks - 1 + 1, .narrow = 1, .local = 2};
// Likewise, of one rank's.
inline constexpr KernelPromises kPollsOne{.loads = 1 + 1, .narrow = 1, .local = 2};

// For docs/reference/algorithms.md, where n is the number of ranks and B the message in bytes.
struct Traffic {
  std::string_view hops;  // a store or load across a link, and its arrival
  std::string_view wire;  // what each rank sends, or reads, over its links
};
// Of libraries: nobody else knows.
inline constexpr std::string_view kNcclsOwn = "NCCL's";

}  // namespace tutti
