/// \file
/// Collectives and messages of the C API: each struct and function is that of
/// tutti/collectives.hpp, which has the rules for shapes, buffers in place, symmetric memory, order
/// and bits.
///
/// Every rank calls the function, in the same order, with equal arguments except for pointers, the
/// stream, the multiplier of TUTTI_PRE_MUL_SUM and the timeout. On CUDA a call returns once the
/// operation is enqueued; on the host when the output is valid.
///
/// Errors: TUTTI_INVALID_ARGUMENT and TUTTI_UNSUPPORTED: nothing was done on this rank, and the
/// communicator stays usable. After a failure of the communicator every call returns that failure.
/// Failures after a call has returned are in tutti_communicator_status().
#pragma once

#include <stdint.h>

#include "tutti/c/communicator.h"
#include "tutti/c/status.h"
#include "tutti/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Options of a call: tutti::CallOptions. Equal on every rank, except the timeout.
typedef struct tutti_call_options_t {
  size_t size;
  const char* algorithm;  ///< "two_shot" or "all_reduce/two_shot"; null or empty: chosen
  int64_t timeout_ms;     ///< 0: the communicator's
  size_t chunk_bytes;     ///< bytes of one pass of a staged operation; 0: as planned
  int blocks;             ///< of the grid (CUDA), or sequential parts (host); 0: as planned
  int threads;            ///< per block (CUDA); 0: as planned
  /// How many SMs the operation may use; -1: no limit; 0: copy engines only. Default: -1
  int sm_budget;
  int reserved;  ///< 0
} tutti_call_options_t;
TUTTI_STRUCT_INIT(call_options, value.sm_budget = -1;)

/// Arguments of tutti_all_reduce().
typedef struct tutti_all_reduce_t {
  size_t size;
  const void* input;  ///< `count` elements
  void* output;       ///< `count` elements; may be `input`
  size_t count;
  tutti_reduce_op_t op;
  tutti_stream_t stream;
  const tutti_call_options_t* options;  ///< null: defaults, here and below
  tutti_data_type_t dtype;              ///< default: TUTTI_FLOAT32, here and below
  int reserved;                         ///< 0, here and below
} tutti_all_reduce_t;
TUTTI_STRUCT_INIT(all_reduce, value.dtype = TUTTI_FLOAT32;)
/// Every rank receives the reduction of all ranks' inputs.
TUTTI_API tutti_status_t tutti_all_reduce(tutti_communicator_t* communicator,
                                          const tutti_all_reduce_t* call);

/// Arguments of tutti_all_gather().
typedef struct tutti_all_gather_t {
  size_t size;
  const void* input;  ///< `count` elements
  void* output;       ///< ranks * count elements
  size_t count;       ///< elements of one rank
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int reserved;
} tutti_all_gather_t;
TUTTI_STRUCT_INIT(all_gather, value.dtype = TUTTI_FLOAT32;)
/// Every rank receives all ranks' inputs, in rank order.
TUTTI_API tutti_status_t tutti_all_gather(tutti_communicator_t* communicator,
                                          const tutti_all_gather_t* call);

/// Arguments of tutti_reduce_scatter().
typedef struct tutti_reduce_scatter_t {
  size_t size;
  const void* input;  ///< ranks * count elements
  void* output;       ///< `count` elements
  size_t count;       ///< elements of one rank's output
  size_t rows;        ///< above 1: `input` is a matrix that is split by columns. Default: 1
  tutti_reduce_op_t op;
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int reserved;
} tutti_reduce_scatter_t;
TUTTI_STRUCT_INIT(reduce_scatter, value.rows = 1; value.dtype = TUTTI_FLOAT32;)
/// Rank r receives part r of the reduction of all ranks' inputs.
TUTTI_API tutti_status_t tutti_reduce_scatter(tutti_communicator_t* communicator,
                                              const tutti_reduce_scatter_t* call);

/// Arguments of tutti_all_to_all().
typedef struct tutti_all_to_all_t {
  size_t size;
  const void* input;  ///< ranks * count elements
  void* output;       ///< ranks * count elements
  size_t count;       ///< elements from one rank to another
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int reserved;
} tutti_all_to_all_t;
TUTTI_STRUCT_INIT(all_to_all, value.dtype = TUTTI_FLOAT32;)
/// Rank r receives part r of every rank's input, in rank order.
TUTTI_API tutti_status_t tutti_all_to_all(tutti_communicator_t* communicator,
                                          const tutti_all_to_all_t* call);

/// Arguments of tutti_broadcast().
typedef struct tutti_broadcast_t {
  size_t size;
  const void* input;  ///< root: `count` elements; ignored on other ranks
  void* output;       ///< `count` elements
  size_t count;
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int root;
} tutti_broadcast_t;
TUTTI_STRUCT_INIT(broadcast, value.dtype = TUTTI_FLOAT32;)
/// Every rank receives the root's input.
TUTTI_API tutti_status_t tutti_broadcast(tutti_communicator_t* communicator,
                                         const tutti_broadcast_t* call);

/// Arguments of tutti_reduce().
typedef struct tutti_reduce_t {
  size_t size;
  const void* input;  ///< `count` elements
  void* output;       ///< root: `count` elements; ignored on other ranks
  size_t count;
  tutti_reduce_op_t op;
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int root;
} tutti_reduce_t;
TUTTI_STRUCT_INIT(reduce, value.dtype = TUTTI_FLOAT32;)
/// The root receives the reduction of all ranks' inputs.
TUTTI_API tutti_status_t tutti_reduce(tutti_communicator_t* communicator,
                                      const tutti_reduce_t* call);

/// Arguments of tutti_gather().
typedef struct tutti_gather_t {
  size_t size;
  const void* input;  ///< `count` elements
  void* output;       ///< root: ranks * count elements; ignored on other ranks
  size_t count;       ///< elements of one rank
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int root;
} tutti_gather_t;
TUTTI_STRUCT_INIT(gather, value.dtype = TUTTI_FLOAT32;)
/// The root receives all ranks' inputs, in rank order.
TUTTI_API tutti_status_t tutti_gather(tutti_communicator_t* communicator,
                                      const tutti_gather_t* call);

/// Arguments of tutti_scatter().
typedef struct tutti_scatter_t {
  size_t size;
  const void* input;  ///< root: ranks * count elements; ignored on other ranks
  void* output;       ///< `count` elements
  size_t count;       ///< elements of one rank
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int root;
} tutti_scatter_t;
TUTTI_STRUCT_INIT(scatter, value.dtype = TUTTI_FLOAT32;)
/// Rank r receives part r of the root's input.
TUTTI_API tutti_status_t tutti_scatter(tutti_communicator_t* communicator,
                                       const tutti_scatter_t* call);

/// Counts that the device reads when the operation runs: tutti::DeviceCounts. All zero: not used.
typedef struct tutti_device_counts_t {
  const size_t* given;
  size_t* found;     ///< receives a count per rank; null: not wanted
  size_t max_count;  ///< upper bound of all counts; above 0; equal on every rank
} tutti_device_counts_t;

/// Arguments of tutti_all_gather_v().
typedef struct tutti_all_gather_v_t {
  size_t size;
  const void* input;     ///< as many elements as this rank's count
  void* output;          ///< as many elements as all counts together
  const size_t* counts;  ///< a count per rank; equal on every rank
  tutti_device_counts_t device_counts;
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int reserved;
} tutti_all_gather_v_t;
TUTTI_STRUCT_INIT(all_gather_v, value.dtype = TUTTI_FLOAT32;)
/// Every rank receives all ranks' inputs, in rank order and without gaps.
TUTTI_API tutti_status_t tutti_all_gather_v(tutti_communicator_t* communicator,
                                            const tutti_all_gather_v_t* call);

/// Arguments of tutti_reduce_scatter_v().
typedef struct tutti_reduce_scatter_v_t {
  size_t size;
  const void* input;     ///< as many elements as all counts together
  void* output;          ///< as many elements as this rank's count
  const size_t* counts;  ///< a count per rank; equal on every rank
  tutti_device_counts_t device_counts;
  tutti_reduce_op_t op;
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int reserved;
} tutti_reduce_scatter_v_t;
TUTTI_STRUCT_INIT(reduce_scatter_v, value.dtype = TUTTI_FLOAT32;)
/// Rank r receives part r, of counts[r] elements, of the reduction of all ranks' inputs.
TUTTI_API tutti_status_t tutti_reduce_scatter_v(tutti_communicator_t* communicator,
                                                const tutti_reduce_scatter_v_t* call);

/// Arguments of tutti_all_to_all_v().
typedef struct tutti_all_to_all_v_t {
  size_t size;
  const void* input;          ///< the part for rank 0, for rank 1, ...; no gaps
  void* output;               ///< the part from rank 0, from rank 1, ...; no gaps
  const size_t* send_counts;  ///< per rank: elements for that rank
  const size_t* recv_counts;  ///< per rank: elements from that rank
  size_t max_count;           ///< upper bound of all counts of all ranks; equal on every rank
  tutti_device_counts_t device_counts;
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int reserved;
} tutti_all_to_all_v_t;
TUTTI_STRUCT_INIT(all_to_all_v, value.dtype = TUTTI_FLOAT32;)
/// Rank r sends send_counts[j] elements to rank j and receives recv_counts[j] elements from it.
TUTTI_API tutti_status_t tutti_all_to_all_v(tutti_communicator_t* communicator,
                                            const tutti_all_to_all_v_t* call);

/// Arguments of tutti_send().
typedef struct tutti_send_t {
  size_t size;
  const void* buffer;  ///< `count` elements
  size_t count;        ///< equal in the peer's tutti_recv()
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int peer;  ///< the receiver
} tutti_send_t;
TUTTI_STRUCT_INIT(send, value.dtype = TUTTI_FLOAT32;)
/// Sends a message to one rank, which calls tutti_recv(). Rules of messages: see tutti::send().
TUTTI_API tutti_status_t tutti_send(tutti_communicator_t* communicator, const tutti_send_t* call);

/// Arguments of tutti_recv().
typedef struct tutti_recv_t {
  size_t size;
  void* buffer;  ///< `count` elements
  size_t count;  ///< equal in the peer's tutti_send()
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;
  int peer;  ///< the sender
} tutti_recv_t;
TUTTI_STRUCT_INIT(recv, value.dtype = TUTTI_FLOAT32;)
/// Receives the next message of one rank, which calls tutti_send().
TUTTI_API tutti_status_t tutti_recv(tutti_communicator_t* communicator, const tutti_recv_t* call);

/// Arguments of tutti_barrier().
typedef struct tutti_barrier_t {
  size_t size;
  tutti_stream_t stream;
  const tutti_call_options_t* options;
} tutti_barrier_t;
TUTTI_STRUCT_INIT(barrier, )
/// Work after the barrier, on any rank's stream, starts when the work before it has ended on all
/// ranks. `call` may be null.
TUTTI_API tutti_status_t tutti_barrier(tutti_communicator_t* communicator,
                                       const tutti_barrier_t* call);

/// Arguments of tutti_all_reduce_residual_rms_norm(). Matrices are row-major without gaps.
typedef struct tutti_all_reduce_residual_rms_norm_t {
  size_t size;
  const void* input;      ///< [tokens, hidden]: this rank's summand
  const void* residual;   ///< [tokens, hidden]; equal on every rank
  const void* weight;     ///< [hidden]; equal on every rank
  void* residual_output;  ///< [tokens, hidden]; may be `residual`
  void* output;           ///< [tokens, hidden]; may be `input` unless it has 8 bits
  size_t tokens;
  size_t hidden;  ///< a multiple of 8, from 1024 to 16384
  tutti_stream_t stream;
  const tutti_call_options_t* options;
  tutti_data_type_t dtype;         ///< fp16, bf16 or fp32. Default: TUTTI_BFLOAT16
  tutti_data_type_t output_dtype;  ///< fp8_e4m3 or fp8_e5m2; -1: as `dtype`. Default: -1
  float epsilon;                   ///< finite, not negative. Default: 1e-6
  float scale;                     ///< divides an 8-bit output. Default: 1
} tutti_all_reduce_residual_rms_norm_t;
TUTTI_STRUCT_INIT(all_reduce_residual_rms_norm, value.dtype = TUTTI_BFLOAT16;
                  value.output_dtype = -1; value.epsilon = 1e-6F; value.scale = 1;)
/// residual_output = all_reduce(input) + residual; output = its RMSNorm * weight, in one operation.
TUTTI_API tutti_status_t tutti_all_reduce_residual_rms_norm(
    tutti_communicator_t* communicator, const tutti_all_reduce_residual_rms_norm_t* call);

/// Starts a group: operations of this thread are recorded until tutti_group_end(). Groups nest. See
/// tutti::group_start() for the order of a group's operations, and its streams.
TUTTI_API tutti_status_t tutti_group_start(void);
/// Submits the operations since tutti_group_start(). Tries all of them, and returns the first
/// failure; tutti_communicator_failure() of its communicator has the ranks.
TUTTI_API tutti_status_t tutti_group_end(void);

#ifdef __cplusplus
}
#endif
