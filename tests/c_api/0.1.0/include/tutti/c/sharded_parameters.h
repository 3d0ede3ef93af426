/// \file
/// Fully sharded data parallelism in the C API: tutti/sharded_parameters.hpp has the pattern of
/// calls, and the rules for order and memory.
#pragma once

#include "tutti/c/collectives.h"
#include "tutti/c/communicator.h"
#include "tutti/c/status.h"
#include "tutti/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Layers whose parameters are divided among the ranks.
typedef struct tutti_sharded_parameters_t tutti_sharded_parameters_t;

/// One layer: ranks * count elements, of which each rank has `count`.
typedef struct tutti_sharded_layer_t {
  const void* shard;  ///< `count` elements of this rank
  size_t count;       ///< above 0, equal on every rank
  tutti_data_type_t dtype;
} tutti_sharded_layer_t;

/// How layers are gathered and gradients reduced.
typedef struct tutti_sharded_options_t {
  size_t size;
  const tutti_call_options_t* gather;  ///< of all_gather; null: defaults
  const tutti_call_options_t* reduce;  ///< of reduce_scatter; null: defaults
  size_t depth;                        ///< layers, and gradients, in memory at once. Default: 2
} tutti_sharded_options_t;
TUTTI_STRUCT_INIT(sharded_options, value.depth = 2;)

/// Collective. `count` layers. The communicator and the shards must outlive the result. `options`
/// may be null.
TUTTI_API tutti_status_t tutti_sharded_parameters_create(tutti_communicator_t* communicator,
                                                         const tutti_sharded_layer_t* layers,
                                                         size_t count,
                                                         const tutti_sharded_options_t* options,
                                                         tutti_sharded_parameters_t** parameters);
/// When this rank's work with it has ended: after tutti_sharded_parameters_finish() and a
/// synchronization of the stream.
TUTTI_API tutti_status_t tutti_sharded_parameters_destroy(tutti_sharded_parameters_t* parameters);
/// The number of layers.
TUTTI_API tutti_status_t tutti_sharded_parameters_layers(tutti_sharded_parameters_t* parameters,
                                                         size_t* layers);
/// Starts to gather `layer`, unless it is gathered or being gathered.
TUTTI_API tutti_status_t tutti_sharded_parameters_prefetch(tutti_sharded_parameters_t* parameters,
                                                           int layer);
/// The whole layer. `compute` may read it until it is released.
TUTTI_API tutti_status_t tutti_sharded_parameters_gathered(tutti_sharded_parameters_t* parameters,
                                                           int layer, tutti_stream_t compute,
                                                           const void** elements);
/// Ends the use of a layer: all work that reads it has been enqueued on `compute`.
TUTTI_API tutti_status_t tutti_sharded_parameters_release(tutti_sharded_parameters_t* parameters,
                                                          int layer, tutti_stream_t compute);
/// Where `compute` writes the gradient of the layer.
TUTTI_API tutti_status_t tutti_sharded_parameters_gradient(tutti_sharded_parameters_t* parameters,
                                                           int layer, tutti_stream_t compute,
                                                           void** elements);
/// Starts to reduce the gradient of the layer. `shard_gradient` receives this rank's part; it is
/// valid after tutti_sharded_parameters_finish(). `op` null: a sum.
TUTTI_API tutti_status_t tutti_sharded_parameters_reduce_gradient(
    tutti_sharded_parameters_t* parameters, int layer, void* shard_gradient, tutti_stream_t compute,
    const tutti_reduce_op_t* op);
/// Later work of `compute` sees all gradients that were reduced before this call.
TUTTI_API tutti_status_t tutti_sharded_parameters_finish(tutti_sharded_parameters_t* parameters,
                                                         tutti_stream_t compute);
/// Later gathers read what `compute` has written to shards before this call.
TUTTI_API tutti_status_t tutti_sharded_parameters_updated(tutti_sharded_parameters_t* parameters,
                                                          tutti_stream_t compute);

#ifdef __cplusplus
}
#endif
