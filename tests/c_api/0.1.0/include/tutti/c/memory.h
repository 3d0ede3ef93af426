/// \file
/// Symmetric memory of the C API, pools of it, and memory that can become symmetric:
/// tutti::SymmetricMemory, tutti::SymmetricPool, tutti::LocalMemory.
#pragma once

#include "tutti/c/communicator.h"
#include "tutti/c/status.h"
#include "tutti/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Memory that every rank can address: zero-copy for all operations.
typedef struct tutti_memory_t tutti_memory_t;

/// Collective, outside captures. Allocates `bytes` bytes on every rank; above 0, equal on every
/// rank. TUTTI_RESOURCE_EXHAUSTED on every rank names the rank that ran out of memory.
TUTTI_API tutti_status_t tutti_memory_allocate(tutti_communicator_t* communicator, size_t bytes,
                                               tutti_memory_t** memory);
/// Collective, outside captures. Makes your own memory symmetric. It must stay allocated until the
/// result is freed, except local memory, which the result holds. tutti_memory_info() says whether
/// peers can address it; on the host backend, those in other processes only if it is local memory.
TUTTI_API tutti_status_t tutti_memory_register(tutti_communicator_t* communicator, void* address,
                                               size_t bytes, tutti_memory_t** memory);
/// Local. Returns the memory to the communicator, or removes the registration. Also after the
/// communicator has been destroyed.
TUTTI_API tutti_status_t tutti_memory_free(tutti_memory_t* memory);

/// What symmetric memory is.
typedef struct tutti_memory_info_t {
  size_t size;
  void* data;        ///< this rank's part
  size_t bytes;      ///< of one rank's part
  size_t zero_copy;  ///< 0 if peers cannot address the memory, else 1
} tutti_memory_info_t;
TUTTI_STRUCT_INIT(memory_info, )
TUTTI_API tutti_status_t tutti_memory_info(tutti_memory_t* memory, tutti_memory_info_t* info);

/// The part of `rank`, as an address of this rank. TUTTI_INVALID_ARGUMENT: no such rank;
/// TUTTI_UNSUPPORTED: peers cannot address the memory.
TUTTI_API tutti_status_t tutti_memory_peer(tutti_memory_t* memory, int rank, void** address);

/// Memory of one rank, which can be registered as a whole or in parts so that peers address it.
typedef struct tutti_local_memory_t tutti_local_memory_t;

/// Allocates `bytes` bytes, above 0: on CUDA on this rank's GPU, on the host in shared memory,
/// which takes one file descriptor. Local, from any thread, outside captures. The content is not
/// defined. The communicator stays usable after TUTTI_RESOURCE_EXHAUSTED.
TUTTI_API tutti_status_t tutti_local_memory_allocate(tutti_communicator_t* communicator,
                                                     size_t bytes, tutti_local_memory_t** memory);
/// Local. Frees the memory, once your work on it has ended; while any registration of it is left,
/// it stays as it is, and is freed with the last one. Also after the communicator has been
/// destroyed.
TUTTI_API tutti_status_t tutti_local_memory_free(tutti_local_memory_t* memory);

/// What local memory is.
typedef struct tutti_local_memory_info_t {
  size_t size;
  void* data;    ///< 4096-byte aligned
  size_t bytes;  ///< as requested
} tutti_local_memory_info_t;
TUTTI_STRUCT_INIT(local_memory_info, )
TUTTI_API tutti_status_t tutti_local_memory_info(tutti_local_memory_t* memory,
                                                 tutti_local_memory_info_t* info);

/// A pool of symmetric memory, whose blocks are reused without communication. Its calls, and those
/// of its blocks, must not run at the same time.
typedef struct tutti_pool_t tutti_pool_t;
/// A block of a pool.
typedef struct tutti_block_t tutti_block_t;

TUTTI_API tutti_status_t tutti_pool_create(tutti_communicator_t* communicator, tutti_pool_t** pool);
/// Takes a block of `bytes` bytes per rank: a free one of that size, or one that all ranks allocate
/// together. Every rank takes and returns blocks in the same order.
TUTTI_API tutti_status_t tutti_pool_take(tutti_pool_t* pool, size_t bytes, tutti_stream_t stream,
                                         tutti_block_t** block);
/// Returns free blocks to the communicator. Local.
TUTTI_API tutti_status_t tutti_pool_trim(tutti_pool_t* pool);
/// Frees its blocks. Those that are taken stay valid until they are freed.
TUTTI_API tutti_status_t tutti_pool_destroy(tutti_pool_t* pool);

/// What a pool holds.
typedef struct tutti_pool_use_t {
  size_t size;
  size_t blocks;       ///< number of blocks, taken and free
  size_t taken_bytes;  ///< bytes of taken blocks
  size_t free_bytes;   ///< bytes of free blocks
} tutti_pool_use_t;
TUTTI_STRUCT_INIT(pool_use, )
TUTTI_API tutti_status_t tutti_pool_use(tutti_pool_t* pool, tutti_pool_use_t* use);

/// What a block is.
typedef struct tutti_block_info_t {
  size_t size;
  void* data;    ///< this rank's part, 256-byte aligned
  size_t bytes;  ///< of one rank's part, as requested
} tutti_block_info_t;
TUTTI_STRUCT_INIT(block_info, )
TUTTI_API tutti_status_t tutti_block_info(tutti_block_t* block, tutti_block_info_t* info);

/// Returns the block to its pool, and closes the handle. The next holder's stream waits for all
/// work that is on `stream` now. After an error (a capture, CUDA) the handle is still open.
TUTTI_API tutti_status_t tutti_block_give_back(tutti_block_t* block, tutti_stream_t stream);
/// Returns the block to its pool without ordering streams, and closes the handle.
TUTTI_API tutti_status_t tutti_block_free(tutti_block_t* block);

#ifdef __cplusplus
}
#endif
