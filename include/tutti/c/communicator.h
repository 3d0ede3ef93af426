/// \file
/// Communicators of the C API: tutti::Communicator.
#pragma once

#include <stdint.h>

#include "tutti/c/status.h"
#include "tutti/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One rank's membership in a group.
typedef struct tutti_communicator_t tutti_communicator_t;

/// Identifies a group before it exists: where its ranks meet, and the secret that proves
/// membership. One rank makes it and sends these 128 bytes to the others.
typedef struct tutti_unique_id_t {
  char text[128];  ///< at most 127 printable characters, and zeros
} tutti_unique_id_t;

/// An id for ranks on this host.
TUTTI_API tutti_status_t tutti_unique_id_create(tutti_unique_id_t* id);
/// An id for ranks on several hosts. Rank 0 listens on `host`:`port`.
///
/// Port 0: a free port of this machine, which must be rank 0's (else TUTTI_INVALID_ARGUMENT). This
/// process holds the port with one file descriptor until rank 0 listens there in this process, or
/// this process ends; of more than 64 such ports it lets go of the oldest.
TUTTI_API tutti_status_t tutti_unique_id_create_tcp(const char* host, int port,
                                                    tutti_unique_id_t* id);
/// The id whose `text` this is.
TUTTI_API tutti_status_t tutti_unique_id_from_text(const char* text, tutti_unique_id_t* id);

/// How a communicator is created.
typedef struct tutti_communicator_options_t {
  size_t size;
  tutti_backend_t backend;  ///< automatic: CUDA if every rank has a GPU of its own, otherwise host
  int device;               ///< CUDA ordinal of this rank; -1: by the local rank. Default: -1
  int deterministic;        ///< 1: no algorithm that reduces in another order than that of ranks
  int64_t timeout_ms;       ///< of every wait; 0: TUTTI_TIMEOUT_MS
} tutti_communicator_options_t;
TUTTI_STRUCT_INIT(communicator_options, value.device = -1;)

/// Collective. Creates a group of `ranks` ranks, each a process or a thread. Waits for all ranks,
/// at most for the timeout. `options` may be null.
///
/// Errors: TUTTI_TIMEOUT names the missing ranks, TUTTI_MISMATCH what differs,
/// TUTTI_RESOURCE_EXHAUSTED the rank and the limit; TUTTI_UNSUPPORTED and TUTTI_UNAVAILABLE say why
/// the backend cannot run here.
TUTTI_API tutti_status_t tutti_communicator_create(const tutti_unique_id_t* id, int rank, int ranks,
                                                   const tutti_communicator_options_t* options,
                                                   tutti_communicator_t** communicator);

/// Collective. The same with rank, size and meeting point from the environment that torchrun, Open
/// MPI, SLURM, PMI or `tutti run` sets.
TUTTI_API tutti_status_t tutti_communicator_create_from_environment(
    const tutti_communicator_options_t* options, tutti_communicator_t** communicator);

/// Creates a group of `ranks` ranks that all live in this process. One thread calls it once.
/// `communicators` has room for `ranks` handles; element r is rank r's.
///
/// On CUDA rank r uses device r, modulo the number of visible GPUs, or devices[r] unless `devices`
/// is null or that element is -1. `options->device` is ignored. More than 256 ranks:
/// TUTTI_UNSUPPORTED. TUTTI_INVALID_ARGUMENT: a device below -1, or not -1 with TUTTI_BACKEND_HOST.
/// With TUTTI_BACKEND_CUDA a device that is not visible is TUTTI_UNAVAILABLE, as is one that two
/// ranks share without TUTTI_SHARE_GPUS=1; with TUTTI_BACKEND_AUTO the group then is on the host.
TUTTI_API tutti_status_t tutti_communicator_create_in_process(
    const int* devices, int ranks, const tutti_communicator_options_t* options,
    tutti_communicator_t** communicators);

/// Waits for this rank's operations, at most for the timeout. Then the rank has left the group.
/// Graph replays and your own kernels must have ended. Memory and blocks may be freed later.
///
/// TUTTI_INVALID_ARGUMENT, and nothing happens, while sharded parameters of it are open.
TUTTI_API tutti_status_t tutti_communicator_destroy(tutti_communicator_t* communicator);

/// What a communicator is.
typedef struct tutti_communicator_info_t {
  size_t size;
  int rank;
  int ranks;                ///< number of ranks
  tutti_backend_t backend;  ///< host or CUDA
  int device;               ///< CUDA ordinal; -1 on the host
} tutti_communicator_info_t;
TUTTI_STRUCT_INIT(communicator_info, )
TUTTI_API tutti_status_t tutti_communicator_info(tutti_communicator_t* communicator,
                                                 tutti_communicator_info_t* info);

/// Collective. Ranks with the same `color` form a new group, ordered by (key, rank). A rank with a
/// negative color takes part in the call and gets null.
TUTTI_API tutti_status_t tutti_communicator_split(tutti_communicator_t* communicator, int color,
                                                  int key, tutti_communicator_t** part);

/// Makes a new group of the ranks that are left, typically after a failure. Every rank that can go
/// on calls it; ranks whose process has ended, and ranks that do not call it within `within_ms` (0:
/// the communicator's timeout), are missing. Outside captures. tutti::Communicator::shrink() says
/// what holds if ranks are lost meanwhile.
///
/// `missing`, unless null, has room for as many numbers as `communicator` has ranks. It gets the
/// ranks that are not in the new group, ascending, and `missing_count` how many these are, which
/// may be null if `missing` is. `communicator` stays open: destroy both.
///
/// Errors: TUTTI_PEER_FAILED: the others have gone on without this rank, which can never take part
/// again. TUTTI_TIMEOUT: a rank can be neither heard nor told, or this process is too slow. Others
/// are those of tutti_communicator_create(). After an error, except TUTTI_PEER_FAILED, the ranks
/// can call it again. TUTTI_INVALID_ARGUMENT if `within_ms` is negative.
TUTTI_API tutti_status_t tutti_communicator_shrink(tutti_communicator_t* communicator,
                                                   int64_t within_ms,
                                                   tutti_communicator_t** survivors, int* missing,
                                                   int* missing_count);

/// Collective, outside captures. From here to tutti_finish_capture(), captured operations remember
/// buffers that are not symmetric instead of staging them.
TUTTI_API tutti_status_t tutti_start_capture(tutti_communicator_t* communicator);
/// Collective, outside captures. Registers these buffers, so that replays are zero-copy.
TUTTI_API tutti_status_t tutti_finish_capture(tutti_communicator_t* communicator);

/// Collective, outside captures. Allocates what the first operation would allocate otherwise. Call
/// it before that operation is captured without tutti_start_capture(), which prepares too, or if
/// one thread issues the operations of several ranks without a group of calls. Calls after the
/// first one do nothing. Errors: see tutti_memory_allocate().
TUTTI_API tutti_status_t tutti_communicator_prepare(tutti_communicator_t* communicator);

/// Collective. Creates what NCCL's algorithms need and cannot create inside a capture, and what
/// tutti_communicator_prepare() creates. TUTTI_UNAVAILABLE if NCCL is not installed.
TUTTI_API tutti_status_t tutti_prepare_nccl(tutti_communicator_t* communicator);

/// Changes the timeout of this rank's waits, also of those in progress, but for setup that is in
/// progress (allocate, split, prepare, the first operation). From any thread. Above 0.
TUTTI_API tutti_status_t tutti_communicator_set_timeout(tutti_communicator_t* communicator,
                                                        int64_t timeout_ms);

/// Ends all operations on every rank with TUTTI_ABORTED and `reason` (null: no reason). From any
/// thread.
TUTTI_API tutti_status_t tutti_communicator_abort(tutti_communicator_t* communicator,
                                                  const char* reason);

/// The code of the communicator's first failure, which becomes this thread's last failure; TUTTI_OK
/// if there is none. Never blocks. From any thread.
TUTTI_API tutti_status_t tutti_communicator_status(tutti_communicator_t* communicator);

/// Returns TUTTI_OK, and the communicator's first failure in `failure`, whose `code` is TUTTI_OK if
/// there is none. Its strings are valid as those of tutti_last_failure().
TUTTI_API tutti_status_t tutti_communicator_failure(tutti_communicator_t* communicator,
                                                    tutti_failure_t* failure);

/// What this rank has created since the communicator was created. The first operation, or
/// tutti_communicator_prepare(), adds one allocation and its exchanges.
typedef struct tutti_counters_t {
  size_t size;
  uint64_t allocations;    ///< of symmetric memory
  uint64_t registrations;  ///< of the user's memory
  uint64_t exchanges;      ///< messages between all ranks through the bootstrap
} tutti_counters_t;
TUTTI_STRUCT_INIT(counters, )
TUTTI_API tutti_status_t tutti_communicator_counters(tutti_communicator_t* communicator,
                                                     tutti_counters_t* counters);

/// Describes a call for tutti_plan() and tutti_explain().
typedef struct tutti_query_t {
  size_t size;
  /// Elements of the larger buffer: ranks * the call's `count` for all_gather, gather,
  /// reduce_scatter, scatter and all_to_all; ranks * the largest count for the v-variants.
  size_t count;
  size_t hidden;          ///< see tutti::Communicator::Query
  const char* algorithm;  ///< see tutti_call_options_t
  tutti_reduce_op_t op;
  tutti_data_type_t dtype;  ///< default: TUTTI_FLOAT32
  int symmetric;            ///< 1: the buffers are symmetric memory. Default: 1
  int in_place;
  int sm_budget;         ///< see tutti_call_options_t. Default: -1
  int counts_on_device;  ///< v-variants: tutti_device_counts_t
  int captured;          ///< inside a capture whose buffers will not be registered
} tutti_query_t;
TUTTI_STRUCT_INIT(query, value.dtype = TUTTI_FLOAT32; value.symmetric = 1; value.sm_budget = -1;)

/// What decided a plan. Earlier sources take precedence. See tutti::PlanSource.
enum {
  TUTTI_PLAN_CALL = 0,
  TUTTI_PLAN_OVERRIDE = 1,
  TUTTI_PLAN_USER_FILE = 2,
  TUTTI_PLAN_USER_CACHE = 3,
  TUTTI_PLAN_SHIPPED = 4,
  TUTTI_PLAN_PUBLISHED = 5,
  TUTTI_PLAN_MODEL = 6
};
/// "call", "override", "user_file", ...; "?" for another number.
TUTTI_API const char* tutti_plan_source_name(int source);

/// What a call runs. Free both strings with tutti_string_free().
typedef struct tutti_plan_t {
  size_t size;
  char* algorithm;  ///< "all_reduce/two_shot"
  char* text;       ///< all of it, as one line for people
  /// Bytes of one chunk of a ring, of one part that a copy engine copies, or of one pass of a
  /// staged operation; 0: it is not divided, or as the staging memory allows.
  size_t chunk_bytes;
  int blocks;          ///< of the grid (CUDA); sequential parts (host)
  int threads;         ///< per block (CUDA)
  int source;          ///< TUTTI_PLAN_...
  int emulated;        ///< the NVLink switch is emulated
  int alone;           ///< one rank: no kernel runs
  int stream_barrier;  ///< the ranks synchronize by stream memory operations
} tutti_plan_t;
TUTTI_STRUCT_INIT(plan, )

/// What a call with these arguments would run. Runs nothing. `collective` is "all_reduce",
/// "broadcast", ...; an unknown one is TUTTI_INVALID_ARGUMENT.
TUTTI_API tutti_status_t tutti_plan(tutti_communicator_t* communicator, const char* collective,
                                    const tutti_query_t* query, tutti_plan_t* plan);
/// One line per algorithm: chosen, possible or excluded, with the reason and the predicted or
/// measured time. Free `text` with tutti_string_free().
TUTTI_API tutti_status_t tutti_explain(tutti_communicator_t* communicator, const char* collective,
                                       const tutti_query_t* query, char** text);

#ifdef __cplusplus
}
#endif
