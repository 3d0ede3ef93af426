/// \file
/// One-sided operations of the C API: copies into and out of a peer's symmetric memory, and
/// signals. Only the calling rank takes part. tutti/one_sided.hpp has the rules for order and
/// errors.
#pragma once

#include <stdint.h>

#include "tutti/c/communicator.h"
#include "tutti/c/memory.h"
#include "tutti/c/status.h"
#include "tutti/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What copies the bytes on CUDA: tutti::Mover.
enum { TUTTI_MOVER_AUTO = 0, TUTTI_MOVER_KERNEL = 1, TUTTI_MOVER_COPY_ENGINE = 2 };

/// Channels of signals, from each rank to each rank.
#define TUTTI_SIGNAL_CHANNELS 64
/// Most ranks that share memory.
#define TUTTI_MAX_PEERS 16

/// Arguments of tutti_put() and tutti_put_signal().
typedef struct tutti_put_t {
  size_t size;
  const void* from;  ///< `count` elements of this rank
  void* to;          ///< in symmetric memory, as this rank's address
  size_t count;
  tutti_stream_t stream;
  tutti_data_type_t dtype;  ///< bits are copied. Default: TUTTI_FLOAT32, here and below
  int peer;                 ///< whose part is written; may be this rank
  int mover;                ///< TUTTI_MOVER_...
  int channel;              ///< tutti_put_signal(): 0 to TUTTI_SIGNAL_CHANNELS - 1
} tutti_put_t;
TUTTI_STRUCT_INIT(put, value.dtype = TUTTI_FLOAT32;)
/// Copies `count` elements into the symmetric memory of `peer`.
TUTTI_API tutti_status_t tutti_put(tutti_communicator_t* communicator, const tutti_put_t* call);
/// tutti_put(), and then a signal to `peer` on `channel`, also if `count` is 0.
TUTTI_API tutti_status_t tutti_put_signal(tutti_communicator_t* communicator,
                                          const tutti_put_t* call);

/// Arguments of tutti_get().
typedef struct tutti_get_t {
  size_t size;
  const void* from;  ///< in symmetric memory, as this rank's address
  void* to;          ///< `count` elements of this rank
  size_t count;
  tutti_stream_t stream;
  tutti_data_type_t dtype;
  int peer;      ///< whose part is read; may be this rank
  int mover;     ///< TUTTI_MOVER_...
  int reserved;  ///< 0
} tutti_get_t;
TUTTI_STRUCT_INIT(get, value.dtype = TUTTI_FLOAT32;)
/// Copies `count` elements from the symmetric memory of `peer`.
TUTTI_API tutti_status_t tutti_get(tutti_communicator_t* communicator, const tutti_get_t* call);

/// Arguments of tutti_signal().
typedef struct tutti_signal_t {
  size_t size;
  tutti_stream_t stream;
  int peer;     ///< the receiver
  int channel;  ///< 0 to TUTTI_SIGNAL_CHANNELS - 1
} tutti_signal_t;
TUTTI_STRUCT_INIT(signal, )
/// Sends one signal to `peer`, after all earlier work of the stream.
TUTTI_API tutti_status_t tutti_signal(tutti_communicator_t* communicator,
                                      const tutti_signal_t* call);

/// Arguments of tutti_wait_signal().
typedef struct tutti_wait_signal_t {
  size_t size;
  tutti_stream_t stream;
  uint64_t times;      ///< number of signals, at most 2^62. Default: 1
  int64_t timeout_ms;  ///< 0: the communicator's
  int peer;            ///< the sender
  int channel;         ///< 0 to TUTTI_SIGNAL_CHANNELS - 1
} tutti_wait_signal_t;
TUTTI_STRUCT_INIT(wait_signal, value.times = 1;)
/// Blocks until `times` further signals from `peer` arrive on `channel`, then consumes them. On
/// CUDA it is the stream that blocks.
TUTTI_API tutti_status_t tutti_wait_signal(tutti_communicator_t* communicator,
                                           const tutti_wait_signal_t* call);

/// tutti::device::Peers, byte for byte: what a kernel that uses tutti/device/peers.hpp takes as its
/// parameter. Kernels and library have the same version.
typedef struct tutti_device_peers_t {
  int rank;                               ///< this rank
  int ranks;                              ///< number of ranks
  size_t bytes;                           ///< of the memory of one rank
  void* at[TUTTI_MAX_PEERS];              ///< the memory of each rank, as an address of this rank
  uint64_t signals[TUTTI_MAX_PEERS + 5];  ///< for the library
} tutti_device_peers_t;
/// What your own kernels need to access `memory`, which must belong to this communicator, and
/// signals. Local. Valid as long as both are.
TUTTI_API tutti_status_t tutti_device_peers(tutti_communicator_t* communicator,
                                            tutti_memory_t* memory, tutti_device_peers_t* peers);

#ifdef __cplusplus
}
#endif
