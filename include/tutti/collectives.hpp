// The operations.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include "tutti/communicator.hpp"
#include "tutti/export.hpp"
#include "tutti/types.hpp"

namespace tutti {

struct CallOptions {
  // Forces an algorithm: "two_shot" or "all_reduce/two_shot". Empty: chosen by size and machine.
  // An unknown name is kInvalidArgument and lists the known ones.
  std::string_view algorithm;
  // For this call alone; 0 means the communicator's. Host backend and eager CUDA calls. Capped at
  // 100 years; a negative timeout is kInvalidArgument.
  std::chrono::milliseconds timeout{0};
  // These override the plan; 0 means as planned. They must be equal on every rank. Larger values
  // than the machine or the buffers allow are reduced to what fits. Negative blocks or threads, and
  // chunk_bytes above 2^40, are kInvalidArgument.
  int blocks = 0;
  int threads = 0;
  std::size_t chunk_bytes = 0;
  // How many multiprocessors the operation may take; equal on every rank. Without one: no limit.
  // 0: bytes are moved by copy engines alone, and a kernel of one block lets ranks meet in between.
  // Algorithms that reduce, and NCCL's, are out. k > 0: grids of at most k blocks, `blocks` and
  // tables included; algorithms of which that cannot be said, NCCL's among them, are out.
  // Negative: kInvalidArgument. If nothing is left: kUnsupported. The host backend has none to
  // spare, and does not look at it.
  std::optional<int> sm_budget = {};
};

struct AllReduce {
  const void* input = nullptr;  // `count` elements of this rank
  void* output = nullptr;       // `count` elements; `input` on all ranks, or overlapping it on none
  std::size_t count = 0;        // equal on every rank; may be 0
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  Stream stream = nullptr;  // CUDA: the stream the operation is ordered in
  CallOptions options = {};
};

// Reduces `count` elements over all ranks into every rank's `output`. Collective.
// Buffers: any pointer (device memory on CUDA), aligned to the element size. Symmetric memory is
// zero-copy; every rank then uses the same registration and offset. Anything else is staged.
// Order: CUDA returns once the operation is enqueued; `output` is valid when `stream` reaches this
// point on this rank. The host backend returns when `output` is valid.
// Errors: kInvalidArgument (null, misaligned, partly overlapping, unknown algorithm: nothing was
// done), kUnsupported (no algorithm takes it; says why for each), and the communicator's failure if
// it is poisoned. What goes wrong on the device shows in Communicator::status().
TUTTI_API Status all_reduce(Communicator& communicator, const AllReduce& call);

struct AllGather {
  const void* input = nullptr;  // `count` elements of this rank
  void* output = nullptr;       // ranks * count elements, rank r's from r * count on
  std::size_t count = 0;        // of one rank; equal on every rank; may be 0
  DataType dtype = DataType::kFloat32;
  Stream stream = nullptr;
  CallOptions options = {};
};

// Every rank's `output` becomes all ranks' inputs, one behind the other. Collective.
// Bits are moved as they are. In place: `input` is output + rank * count elements, on all ranks or
// on none; no other overlap is taken.
// Buffers, order and errors: as for all_reduce(). An input in place is found by its output.
TUTTI_API Status all_gather(Communicator& communicator, const AllGather& call);

struct ReduceScatter {
  const void* input = nullptr;  // ranks * count elements of this rank
  void* output = nullptr;       // `count` elements
  std::size_t count = 0;        // of one rank's output; equal on every rank; may be 0
  // More than 1: of a matrix, row-major, which is split along its last dimension: the input is
  // [rows, ranks * count / rows], the output [rows, count / rows]. Equal on every rank.
  std::size_t rows = 1;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  Stream stream = nullptr;
  CallOptions options = {};
};

struct AllToAll {
  const void* input = nullptr;  // ranks * count elements, those for rank j from j * count on
  void* output = nullptr;       // ranks * count elements, those of rank r from r * count on
  std::size_t count = 0;        // of one piece; equal on every rank; may be 0
  DataType dtype = DataType::kFloat32;
  Stream stream = nullptr;
  CallOptions options = {};
};

// Rank r's `output` becomes, of what all_reduce() of all ranks * count elements would give, the
// `count` of them from r * count on, to the bit where rows reduce in rank order. Collective.
// In place: `output` is input + rank * count elements, on all ranks or on none; no other overlap is
// taken. Of the input nothing else is changed.
// Of rows that are split, rank r's output has of each row the columns from r * count / rows on. Not
// in place. kInvalidArgument where `rows` does not divide `count`, or a row has 2^32 elements.
// Buffers, order and errors: as for all_reduce(). An output in place is found by its input.
TUTTI_API Status reduce_scatter(Communicator& communicator, const ReduceScatter& call);

// Every rank's `output` becomes what all ranks have for it, one piece behind the other. Collective.
// Bits are moved as they are. Not in place: `input` and `output` do not overlap.
// Buffers, order and errors: as for all_reduce().
TUTTI_API Status all_to_all(Communicator& communicator, const AllToAll& call);

// Of these one rank, the root, has an input or an output alone. What other ranks give for that
// buffer is not looked at; null will do. Where it is wrong the root alone is told so, and does
// nothing: the others wait for it until their deadline.
struct Broadcast {
  const void* input = nullptr;  // root: `count` elements; may be `output`
  void* output = nullptr;       // `count` elements
  std::size_t count = 0;        // equal on every rank; may be 0
  DataType dtype = DataType::kFloat32;
  int root = 0;  // equal on every rank
  Stream stream = nullptr;
  CallOptions options = {};
};

struct Reduce {
  const void* input = nullptr;  // `count` elements of this rank
  void* output = nullptr;       // root: `count` elements; may be `input`
  std::size_t count = 0;        // equal on every rank; may be 0
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  int root = 0;  // equal on every rank
  Stream stream = nullptr;
  CallOptions options = {};
};

struct Gather {
  const void* input = nullptr;  // `count` elements of this rank
  void* output = nullptr;       // root: ranks * count elements, rank r's from r * count on
  std::size_t count = 0;        // of one rank; equal on every rank; may be 0
  DataType dtype = DataType::kFloat32;
  int root = 0;  // equal on every rank
  Stream stream = nullptr;
  CallOptions options = {};
};

struct Scatter {
  const void* input = nullptr;  // root: ranks * count elements, those for rank r from r * count on
  void* output = nullptr;       // `count` elements
  std::size_t count = 0;        // of one rank; equal on every rank; may be 0
  DataType dtype = DataType::kFloat32;
  int root = 0;  // equal on every rank
  Stream stream = nullptr;
  CallOptions options = {};
};

// Every rank's `output` becomes the root's input. Collective. Bits are moved as they are.
// Buffers, order and errors: as for all_reduce(), but that `output` alone has to be symmetric. In
// place on the root, or not.
TUTTI_API Status broadcast(Communicator& communicator, const Broadcast& call);

// The root's `output` becomes what all_reduce() would give, to the bit where rows reduce in rank
// order. Collective. Buffers, order and errors: as for all_reduce(); none has to be symmetric. In
// place on the root, or not.
TUTTI_API Status reduce(Communicator& communicator, const Reduce& call);

// The root's `output` becomes all ranks' inputs, one behind the other. Collective. Bits are moved
// as they are. Not in place: the root's input lies outside its output.
// Buffers, order and errors: as for all_reduce(), but that `input` alone has to be symmetric.
// Algorithm `nccl_copy_engine`: every rank gives an `output` as the root's, at the same place of
// the same allocation; the root's alone is written.
TUTTI_API Status gather(Communicator& communicator, const Gather& call);

// Rank r's `output` becomes, of the root's input, the `count` elements from r * count on.
// Collective. Bits are moved as they are. Not in place: the root's output lies outside its input.
// Buffers, order and errors: as for all_reduce(), but that `output` alone has to be symmetric.
// Algorithm `nccl_copy_engine`: every rank gives an `input` as the root's, at the same place of the
// same allocation; the root's alone is read.
TUTTI_API Status scatter(Communicator& communicator, const Scatter& call);

// Counts that the device reads when the operation runs: a graph is replayed with others. They lie
// in memory of this rank's that its device reaches (on the host backend: any), and are there when
// `stream` reaches the operation. Ranks tell each other what they find, and each one that learns of
// a count beyond max_count fails with kInvalidArgument in status(): nothing is moved.
struct DeviceCounts {
  const std::size_t* given = nullptr;
  std::size_t* found = nullptr;  // `ranks` of them are written there; null: not asked for
  std::size_t max_count = 0;     // no count is larger; above 0; equal on every rank
};

// Of these each rank has as many elements as it likes, below 2^32 - 1 of each piece. Counts come
// from the host or from the device. What the host gave may go once the call has returned.
struct AllGatherV {
  const void* input = nullptr;          // as many elements as this rank's count
  void* output = nullptr;               // those of all ranks, one behind the other
  const std::size_t* counts = nullptr;  // of all `ranks` ranks; equal on every rank
  DeviceCounts device_counts = {};      // `given`: one, this rank's; `found`: all ranks'
  DataType dtype = DataType::kFloat32;
  Stream stream = nullptr;
  CallOptions options = {};
};

struct ReduceScatterV {
  const void* input = nullptr;          // all ranks' pieces, one behind the other
  void* output = nullptr;               // as many elements as this rank's count
  const std::size_t* counts = nullptr;  // of all `ranks` pieces; equal on every rank
  DeviceCounts device_counts = {};      // `given`: likewise; `found` is not used
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  Stream stream = nullptr;
  CallOptions options = {};
};

struct AllToAllV {
  const void* input = nullptr;               // what each rank gets, one behind the other
  void* output = nullptr;                    // what comes from each rank, likewise
  const std::size_t* send_counts = nullptr;  // `ranks` of them: elements for each
  const std::size_t* recv_counts = nullptr;  // `ranks` of them: elements from each
  std::size_t max_count = 0;                 // no count of any rank is larger; equal on every rank
  DeviceCounts device_counts = {};           // `given`: for each rank; `found`: from each
  DataType dtype = DataType::kFloat32;
  Stream stream = nullptr;
  CallOptions options = {};
};

// all_gather(), reduce_scatter() and all_to_all() of pieces of any lengths, zero included.
// Collective. What is chosen depends on the longest piece alone, as if all were so long.
// In place: as for the even ones, at this rank's piece, with counts from the host; with counts from
// the device buffers do not overlap.
// Buffers, order and errors: as for the even ones. Of all_gather_v and all_to_all_v `output` alone
// has to be symmetric, of reduce_scatter_v `input`: on all ranks or on none, also where a rank has
// nothing there. Registration after a capture leaves them staged. What two ranks say of the same
// piece must be the same: where it is not, the one that finds it fails with kMismatch, and tells
// the others. A call that is refused for its counts is refused on this rank alone.
TUTTI_API Status all_gather_v(Communicator& communicator, const AllGatherV& call);
TUTTI_API Status reduce_scatter_v(Communicator& communicator, const ReduceScatterV& call);
TUTTI_API Status all_to_all_v(Communicator& communicator, const AllToAllV& call);

struct Send {
  const void* buffer = nullptr;  // `count` elements of this rank; any pointer
  std::size_t count = 0;         // equal in the peer's recv(); 0: nothing is done
  DataType dtype = DataType::kFloat32;
  int peer = 0;  // who takes it; this rank itself only in a group that holds the recv() as well
  Stream stream = nullptr;
  CallOptions options = {};
};

struct Recv {
  void* buffer = nullptr;  // `count` elements; any pointer
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  int peer = 0;  // who sends it
  Stream stream = nullptr;
  CallOptions options = {};
};

// Between two ranks, which alone call: the peer's `buffer` becomes this rank's. Messages from one
// rank to another are taken in the order in which they were sent.
//
// A send may wait until it is taken: two ranks that send to each other do so in a group. What is
// between one group_start() and its group_end() on one communicator and stream is one operation,
// where no message waits for another one but for those to, or from, the same peer; it goes where
// the first of them stands. From 33 messages on it is several, one behind the other.
// Buffers: any pointers. None has to be symmetric; a long message (above 64 KiB) into symmetric
// memory is zero-copy, whatever the other end has. No buffer of a group's recv() may overlap
// another buffer of the group. Order and errors: as for all_reduce(). What `options` say must be
// equal at both ends. Ends that differ in count, dtype or options are kMismatch, or, one short and
// one long, kTimeout. Operations of one pair run one after the other: replays at once of graphs
// that were captured on two streams are kInvalidArgument in status(). On NCCL (no peer access, or
// TUTTI_DISABLE) prepare_nccl() comes first, since it takes all ranks.
TUTTI_API Status send(Communicator& communicator, const Send& call);
TUTTI_API Status recv(Communicator& communicator, const Recv& call);

struct Barrier {
  Stream stream = nullptr;
  CallOptions options = {};
};

// What is enqueued behind it on any rank's stream begins when what came before it on all of them
// has ended, and sees what that wrote. Collective. On the host it returns when every rank has come.
// Errors: as for all_reduce().
TUTTI_API Status barrier(Communicator& communicator, const Barrier& call = {});

// What a transformer's layer does behind a row-parallel matrix product, in one operation. Matrices
// are [tokens, hidden], row-major and without gaps.
struct AllReduceResidualRmsNorm {
  const void* input = nullptr;           // [tokens, hidden]: this rank's part of the sum
  const void* residual = nullptr;        // [tokens, hidden]: equal on every rank
  const void* weight = nullptr;          // [hidden]: equal on every rank
  void* residual_output = nullptr;       // [tokens, hidden]; may be `residual`
  void* output = nullptr;                // [tokens, hidden]; may be `input` unless it has 8 bits
  std::size_t tokens = 0;                // equal on every rank; may be 0
  std::size_t hidden = 0;                // a multiple of 8, from 1024 to 16384
  DataType dtype = DataType::kBfloat16;  // of all but 8-bit output: fp16, bf16 or fp32
  float epsilon = 1e-6F;                 // finite, not negative; equal on every rank
  // Another type of `output`: fp8_e4m3 or fp8_e5m2, which holds the result divided by `scale`.
  std::optional<DataType> output_dtype = {};
  float scale = 1;  // finite, above 0; 1 where output_dtype is not given; equal on every rank
  Stream stream = nullptr;
  CallOptions options = {};
};

// residual_output = all_reduce(input) + residual
// output = residual_output / sqrt(mean(residual_output^2) + epsilon) * weight, token by token
//
// Collective. The all-reduce is a sum, with the bits of all_reduce(). Each line computes in fp32,
// the first from the rounded sum, the second from the rounded residual_output, and rounds once;
// before that rounding `output` is off by 2^-20 of its value at most. 8-bit output saturates. The
// bits are the same on every rank, in every row and for every grid.
// Buffers: any pointers, as for all_reduce(). One that is written may overlap no other, but for
// output == input and residual_output == residual.
// Order and errors: as for all_reduce(). A graph, a group and an algorithm's name in `options`
// ("one_shot_push") are used alike.
TUTTI_API Status all_reduce_residual_rms_norm(Communicator& communicator,
                                              const AllReduceResidualRmsNorm& call);

// Between the two, operations of this thread are only noted; group_end runs them together. Needed
// where one thread drives several ranks. Calls nest; only the outermost group_end runs anything.
TUTTI_API void group_start();
TUTTI_API Status group_end();  // the first failure; all operations were tried

// One line per algorithm of "all_reduce", "broadcast" and so on: taken, or why not, with the
// predicted or measured time.
TUTTI_API std::string explain(const Communicator& communicator, std::string_view collective,
                              const Communicator::Query& query);

}  // namespace tutti
