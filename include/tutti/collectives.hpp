/// \file
/// Collective operations and point-to-point messages. tutti/typed.hpp has the same functions for
/// std::span and other ranges.
///
/// What rank r receives:
///
/// - all_reduce(): the reduction of all inputs.
/// - all_gather(): all inputs, in rank order.
/// - reduce_scatter(): part r of the reduction of all inputs.
/// - all_to_all(): part r of every rank's input, in rank order.
/// - broadcast(): the root's input.
/// - reduce(): the reduction of all inputs, on the root only.
/// - gather(): all inputs, in rank order, on the root only.
/// - scatter(): part r of the root's input.
/// - all_gather_v(), reduce_scatter_v(), all_to_all_v(): the same with a count per part.
/// - send(), recv(): a message between two ranks.
/// - barrier(): no data; work after it starts when all ranks have reached it.
/// - all_reduce_residual_rms_norm(): fused all-reduce, residual addition and RMSNorm.
/// - group_start(), group_end(): several operations in one submission.
/// - explain(): which algorithm a call would use, and why.
///
/// Common rules. Each function states only what differs.
///
/// **Collective.** Every rank calls the function, in the same order, with equal arguments except
/// for pointers, the stream and the multiplier of OpKind::kPreMulSum.
///
/// **Buffers.** Any pointer, aligned to the element size; on CUDA it is memory of the rank's
/// device. A count of 0 needs no buffers. Symmetric memory (Communicator::allocate(),
/// Communicator::register_memory()) is zero-copy. Either all ranks pass symmetric memory or none
/// does, and all pass the same registration at the same offset: a difference is kMismatch, which
/// ends the communicator. Other buffers are staged: copied through memory of the communicator. On
/// the host, threads of one process also access such buffers of each other. Buffers may overlap
/// only in the way that a function describes as "in place", and then on all ranks.
///
/// **Order.** On CUDA a call returns once the operation is enqueued, and the output is valid when
/// `stream` has passed the operation on this rank. On the host backend a call returns when the
/// output is valid.
///
/// **Bits.** Most algorithms reduce in the order of ranks (OpKind): they give the same bits on
/// every rank, on the host and on GPUs. Rings, trees, recursive doubling and `hierarchical` use
/// another order, with the same bits on every rank. NVLink switch algorithms and NCCL promise
/// neither. CommunicatorOptions::deterministic excludes all of these. Operations that do not reduce
/// copy bits.
///
/// **Errors.** kInvalidArgument (null, misaligned or partly overlapping buffer, registered memory
/// that was freed, unknown algorithm, value out of range) and kUnsupported (no algorithm can run
/// the call; the text gives the reason for each): nothing was done on this rank, and the
/// communicator stays usable. The other ranks are not told, and wait for this rank until their
/// timeout. After a failure of the communicator every call returns that failure. Failures while the
/// operation runs, on CUDA after the call has returned, are in Communicator::status().
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tutti/communicator.hpp"
#include "tutti/export.hpp"
#include "tutti/types.hpp"

namespace tutti {

/// Options of a call. They are equal on every rank, except `timeout`.
struct CallOptions {
  /// Forces an algorithm: "two_shot" or "all_reduce/two_shot". Empty: chosen by size and machine.
  /// An unknown name is kInvalidArgument; the text lists the known ones.
  std::string_view algorithm = {};
  /// Timeout of this call; 0: the communicator's. Applies on the host backend and to eager CUDA
  /// calls, not to replays of a graph. At most 20 years; longer ones are shortened to that.
  /// Negative: kInvalidArgument.
  std::chrono::milliseconds timeout{0};
  /// Blocks of the grid (CUDA) or sequential parts (host); 0: as planned. A larger number than
  /// the machine or the buffers allow is reduced. Negative: kInvalidArgument.
  int blocks = 0;
  /// Threads per block (CUDA); 0: as planned. Limits as for `blocks`.
  int threads = 0;
  /// Bytes of one chunk: what a block of a ring sends at once, one part that a copy engine copies,
  /// or one pass of a staged operation. 0: as planned. Reduced to what fits. Above 2^40:
  /// kInvalidArgument.
  std::size_t chunk_bytes = 0;
  /// How many SMs the operation may use; unset: no limit.
  ///
  /// 0: copy engines move all bytes between ranks, and streams synchronize the ranks without a
  /// kernel (in captures, and where a rank's GPU cannot, kernels of one block do). Out of place the
  /// driver copies the rank's own part with a kernel. Algorithms that reduce, and NCCL's, are
  /// excluded. k > 0: no grid has more than k blocks, whatever
  /// `blocks` or a tuning table says; algorithms that cannot guarantee this, such as NCCL's, are
  /// excluded. Negative: kInvalidArgument. If no algorithm is left: kUnsupported. The host backend
  /// ignores it.
  std::optional<int> sm_budget = {};
};

/// Arguments of all_reduce().
struct AllReduce {
  const void* input = nullptr;  ///< `count` elements
  void* output = nullptr;       ///< `count` elements
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Every rank receives the reduction of all ranks' inputs.
///
/// In place: `output` is `input`.
TUTTI_API Status all_reduce(Communicator& communicator, const AllReduce& call);

/// Arguments of all_gather().
struct AllGather {
  const void* input = nullptr;  ///< `count` elements
  void* output = nullptr;       ///< ranks * count elements
  std::size_t count = 0;        ///< elements of one rank
  DataType dtype = DataType::kFloat32;
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Every rank receives all ranks' inputs: rank r's input is at [r*count, (r+1)*count) of `output`.
///
/// In place: `input` is output + rank * count elements. Then only `output` has to be at the same
/// offset of its registration on every rank.
TUTTI_API Status all_gather(Communicator& communicator, const AllGather& call);

/// Arguments of reduce_scatter().
struct ReduceScatter {
  const void* input = nullptr;  ///< ranks * count elements
  void* output = nullptr;       ///< `count` elements
  std::size_t count = 0;        ///< elements of one rank's output
  /// Above 1: `input` is a row-major matrix [rows, ranks * count / rows] that is split by columns.
  std::size_t rows = 1;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Rank r receives elements [r*count, (r+1)*count) of the reduction of all ranks' inputs.
///
/// With `rows` > 1 rank r receives the columns [r*count/rows, (r+1)*count/rows) of the reduced
/// matrix, as a matrix [rows, count / rows]. kInvalidArgument if `rows` does not divide `count`, or
/// if a row of the input has 2^32 elements or more.
///
/// In place: `output` is input + rank * count elements; the rest of the input does not change. Then
/// only `input` has to be at the same offset of its registration on every rank. Not in place with
/// `rows` > 1.
TUTTI_API Status reduce_scatter(Communicator& communicator, const ReduceScatter& call);

/// Arguments of all_to_all().
struct AllToAll {
  const void* input = nullptr;  ///< ranks * count elements
  void* output = nullptr;       ///< ranks * count elements
  std::size_t count = 0;        ///< elements from one rank to another
  DataType dtype = DataType::kFloat32;
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Rank r sends elements [j*count, (j+1)*count) of its input to rank j, and receives rank j's
/// elements for it at [j*count, (j+1)*count) of its output.
///
/// Not in place.
TUTTI_API Status all_to_all(Communicator& communicator, const AllToAll& call);

/// Arguments of broadcast().
struct Broadcast {
  const void* input = nullptr;  ///< root: `count` elements; ignored on other ranks
  void* output = nullptr;       ///< `count` elements
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  int root = 0;
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Every rank receives the root's input.
///
/// The root-only buffer, `input`, is ignored on other ranks and may be null there. If it is
/// invalid, only the root gets the error, and the other ranks wait until their timeout. For
/// zero-copy only `output` has to be symmetric. In place, on the root: `input` is `output`.
TUTTI_API Status broadcast(Communicator& communicator, const Broadcast& call);

/// Arguments of reduce().
struct Reduce {
  const void* input = nullptr;  ///< `count` elements
  void* output = nullptr;       ///< root: `count` elements; ignored on other ranks
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  int root = 0;
  Stream stream = nullptr;
  CallOptions options = {};
};

/// The root receives the reduction of all ranks' inputs.
///
/// The root-only buffer is `output`: see broadcast(). No buffer has to be symmetric. In place, on
/// the root: `output` is `input`.
TUTTI_API Status reduce(Communicator& communicator, const Reduce& call);

/// Arguments of gather().
struct Gather {
  const void* input = nullptr;  ///< `count` elements
  void* output = nullptr;       ///< root: ranks * count elements; ignored on other ranks
  std::size_t count = 0;        ///< elements of one rank
  DataType dtype = DataType::kFloat32;
  int root = 0;
  Stream stream = nullptr;
  CallOptions options = {};
};

/// The root receives all ranks' inputs: rank r's input is at [r*count, (r+1)*count) of its output.
///
/// The root-only buffer is `output`: see broadcast(). For zero-copy only `input` has to be
/// symmetric. Not in place.
///
/// The algorithm `nccl_copy_engine` needs `output` on every rank, at the same place of the same
/// allocation; only the root's is written.
TUTTI_API Status gather(Communicator& communicator, const Gather& call);

/// Arguments of scatter().
struct Scatter {
  const void* input = nullptr;  ///< root: ranks * count elements; ignored on other ranks
  void* output = nullptr;       ///< `count` elements
  std::size_t count = 0;        ///< elements of one rank
  DataType dtype = DataType::kFloat32;
  int root = 0;
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Rank r receives elements [r*count, (r+1)*count) of the root's input.
///
/// The root-only buffer is `input`: see broadcast(). For zero-copy only `output` has to be
/// symmetric. Not in place.
///
/// The algorithm `nccl_copy_engine` needs `input` on every rank, at the same place of the same
/// allocation; only the root's is read.
TUTTI_API Status scatter(Communicator& communicator, const Scatter& call);

/// Counts that the device reads when the operation runs, so that replays of a graph can have
/// different counts.
///
/// `given` is memory of this rank that its device can address (host backend: any). Its content must
/// be valid when `stream` reaches the operation. Ranks exchange their counts within the operation.
/// If a count is above `max_count`, each rank that reads it fails with kInvalidArgument in
/// Communicator::status(), and nothing is moved.
struct DeviceCounts {
  const std::size_t* given = nullptr;
  std::size_t* found = nullptr;  ///< receives a count per rank; null: not wanted
  std::size_t max_count = 0;     ///< upper bound of all counts; above 0; equal on every rank
};

/// Arguments of all_gather_v().
struct AllGatherV {
  const void* input = nullptr;          ///< as many elements as this rank's count
  void* output = nullptr;               ///< as many elements as all counts together
  const std::size_t* counts = nullptr;  ///< a count per rank; equal on every rank
  DeviceCounts device_counts = {};      ///< `given`: this rank's count; `found`: all counts
  DataType dtype = DataType::kFloat32;
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Every rank receives all ranks' inputs, in rank order and without gaps; ranks may have different
/// counts. In place: `input` is this rank's part of `output`.
///
/// Rules of all_gather_v(), reduce_scatter_v() and all_to_all_v():
///
/// - Counts are 0 to 2^32 - 2. They come from the host (`counts`) or from the device
///   (`device_counts`). Arrays on the host may be freed when the call has returned.
/// - The algorithm is chosen as if every part were as long as the longest one, or as `max_count`.
/// - With counts from the device the operation cannot be in place.
/// - For zero-copy only `output` has to be symmetric (reduce_scatter_v(): only `input`). Every
///   rank passes symmetric memory or none does, ranks whose count is 0 included.
/// - Communicator::finish_capture() registers these buffers, unless counts come from the device.
/// - If two ranks give different counts for the same part, the rank that detects it fails with
///   kMismatch and notifies the others.
TUTTI_API Status all_gather_v(Communicator& communicator, const AllGatherV& call);

/// Arguments of reduce_scatter_v().
struct ReduceScatterV {
  const void* input = nullptr;          ///< as many elements as all counts together
  void* output = nullptr;               ///< as many elements as this rank's count
  const std::size_t* counts = nullptr;  ///< a count per rank; equal on every rank
  DeviceCounts device_counts = {};      ///< `given`: this rank's count; `found` is not used
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  Stream stream = nullptr;
  CallOptions options = {};
};

/// The reduction of all ranks' inputs is split into consecutive parts of counts[0], counts[1], ...
/// elements, and rank r receives part r. In place: `output` is this rank's part of `input`.
///
/// Rules of variable counts: see all_gather_v().
TUTTI_API Status reduce_scatter_v(Communicator& communicator, const ReduceScatterV& call);

/// Arguments of all_to_all_v().
struct AllToAllV {
  const void* input = nullptr;               ///< the part for rank 0, for rank 1, ...; no gaps
  void* output = nullptr;                    ///< the part from rank 0, from rank 1, ...; no gaps
  const std::size_t* send_counts = nullptr;  ///< per rank: elements for that rank
  const std::size_t* recv_counts = nullptr;  ///< per rank: elements from that rank
  std::size_t max_count = 0;        ///< upper bound of all counts of all ranks; equal on every rank
  DeviceCounts device_counts = {};  ///< `given`: per rank, for it; `found`: per rank, from it
  DataType dtype = DataType::kFloat32;
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Rank r sends send_counts[j] elements to rank j and receives recv_counts[j] elements from it.
/// Rank r's send_counts[j] equals rank j's recv_counts[r]. Not in place.
///
/// Rules of variable counts: see all_gather_v().
TUTTI_API Status all_to_all_v(Communicator& communicator, const AllToAllV& call);

/// Arguments of send().
struct Send {
  const void* buffer = nullptr;  ///< `count` elements
  std::size_t count = 0;         ///< equal in the peer's recv(); 0: nothing is sent
  DataType dtype = DataType::kFloat32;
  int peer = 0;  ///< the receiver; this rank itself only in a group that also has the recv()
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Sends a message to one rank, which calls recv(). Only these two ranks call.
///
/// Rules of messages:
///
/// - Messages from one rank to another arrive in the order in which they were sent.
/// - A send may wait until the peer receives. Two ranks that send to each other put the calls
///   between group_start() and group_end().
/// - Messages of a group run after its collectives (group_start()), concurrently; only messages
///   with the same peer are ordered. Up to 32 messages with equal options run as one operation,
///   whose timeout is their longest one; more run as several operations, one after another. The
///   ranks may list their messages to and from different peers in any order.
/// - No buffer has to be symmetric. A message above 64 KiB is zero-copy if the receiver's buffer is
///   symmetric memory. In a group no buffer of a recv() may overlap another buffer.
/// - `options` must be equal at both ends. If count, dtype or options differ, the call fails with
///   kMismatch; if the message is short for one end and long for the other, with kTimeout.
/// - The operations of two ranks run one after another. Concurrent replays of graphs that were
///   captured on two streams fail with kInvalidArgument in Communicator::status().
/// - Messages run on NCCL if TUTTI_DISABLE is set, if the call or TUTTI_TUNE names it, if a table
///   does and NCCL's communicator exists, or if nothing else can run them. Between hosts they can
///   also run over UCX. A message cannot create NCCL's communicator: call
///   Communicator::prepare_nccl() on all ranks before.
TUTTI_API Status send(Communicator& communicator, const Send& call);

/// Arguments of recv().
struct Recv {
  void* buffer = nullptr;  ///< `count` elements
  std::size_t count = 0;   ///< equal in the peer's send(); 0: nothing is received
  DataType dtype = DataType::kFloat32;
  int peer = 0;  ///< the sender
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Receives the next message of one rank, which calls send(). Rules of messages: see send().
TUTTI_API Status recv(Communicator& communicator, const Recv& call);

/// Arguments of barrier().
struct Barrier {
  Stream stream = nullptr;
  CallOptions options = {};
};

/// Work after the barrier, on any rank's stream, starts when the work before it has ended on all
/// ranks, and sees what that work wrote. On the host backend the call returns when all ranks have
/// called it.
TUTTI_API Status barrier(Communicator& communicator, const Barrier& call = {});

/// Arguments of all_reduce_residual_rms_norm(). Matrices are row-major without gaps.
struct AllReduceResidualRmsNorm {
  const void* input = nullptr;      ///< [tokens, hidden]: this rank's summand
  const void* residual = nullptr;   ///< [tokens, hidden]; equal on every rank
  const void* weight = nullptr;     ///< [hidden]; equal on every rank
  void* residual_output = nullptr;  ///< [tokens, hidden]; may be `residual`
  void* output = nullptr;           ///< [tokens, hidden]; may be `input` unless it has 8 bits
  std::size_t tokens = 0;
  std::size_t hidden = 0;                ///< a multiple of 8, from 1024 to 16384
  DataType dtype = DataType::kBfloat16;  ///< fp16, bf16 or fp32: type of all buffers
  float epsilon = 1e-6F;                 ///< finite, not negative
  /// Another type for `output`: fp8_e4m3 or fp8_e5m2. `output` is then the result divided by
  /// `scale`.
  std::optional<DataType> output_dtype = {};
  float scale = 1;  ///< finite, above 0; 1 if `output_dtype` is not set
  Stream stream = nullptr;
  CallOptions options = {};
};

/// What a transformer layer does after a row-parallel matrix product, in one operation:
///
///     residual_output = all_reduce(input) + residual
///     output = residual_output / sqrt(mean(residual_output^2) + epsilon) * weight   (per token)
///
/// The all-reduce is a sum. Both lines compute in fp32, from the rounded sum and from the rounded
/// residual_output, and round once; before that rounding, the relative error of `output` is at most
/// 2^-20. 8-bit outputs saturate. The bits are equal on every rank, for every algorithm and grid.
///
/// In place: `residual_output` is `residual`, and `output` is `input`. Graphs, groups and
/// CallOptions::algorithm ("one_shot_push") work as for all_reduce().
TUTTI_API Status all_reduce_residual_rms_norm(Communicator& communicator,
                                              const AllReduceResidualRmsNorm& call);

/// Starts a group: operations of this thread are recorded until group_end(), which submits them
/// together. Needed if one thread drives several ranks, or if two ranks send to each other. Groups
/// nest; only the outermost group_end() submits.
///
/// **Order.** It is the same on all ranks, whatever order each rank makes its calls in:
///
/// - A communicator's collectives run first, in the order of their calls, which is equal on all
///   ranks. Its messages follow: by the distance from sender to receiver, (receiver - sender) mod
///   ranks, then by call. So a group {send; all_reduce} matches {all_reduce; recv}, and a rank
///   without messages calls all_reduce alone, in a group or not.
/// - Ranks may list communicators in any order. On the host each communicator has a thread. On
///   CUDA, communicators that share a GPU run one after another, in an order that all ranks know.
///
/// **Streams.** If the calls for one GPU name several streams, every stream waits for all: the
/// operations start after the earlier work of all these streams, and later work on any of them
/// starts after all operations. In a capture, all streams of a communicator belong to that capture;
/// otherwise none of that communicator's operations is submitted, and group_end() returns
/// kInvalidArgument. Streams of other captures are not waited for. If one thread drives several
/// ranks of a communicator on one GPU, the streams of each rank wait for that rank's operations
/// only.
TUTTI_API void group_start();

/// Submits the operations since group_start() (there: order, streams). Tries all of them, and
/// returns the first failure. If ranks call collectives in different orders, the group fails with
/// kMismatch. A short collective may return kOk before that, with a wrong result: the next call, or
/// Communicator::status(), returns kMismatch (docs/troubleshooting/errors.md).
TUTTI_API Status group_end();

/// One line per algorithm of `collective` ("all_reduce", "broadcast"): chosen, possible or
/// excluded, with the reason and the predicted or measured time.
TUTTI_API std::string explain(const Communicator& communicator, std::string_view collective,
                              const Communicator::Query& query);

}  // namespace tutti
