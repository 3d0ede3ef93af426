/// \file
/// Fully sharded data parallelism: every rank keeps a part of each layer's parameters. A layer is
/// gathered before use, while the layer before it computes, and freed afterwards.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tutti/collectives.hpp"
#include "tutti/communicator.hpp"
#include "tutti/export.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

class ShardedParametersImpl;

/// One layer. Its parameters are ranks * count elements; rank r's shard has the elements [r*count,
/// (r+1)*count). Pad a layer whose size is not a multiple of the number of ranks.
struct ShardedLayer {
  const void* shard = nullptr;  ///< `count` elements of this rank, any memory of its device
  std::size_t count = 0;        ///< above 0, equal on every rank
  DataType dtype = DataType::kFloat32;
};

/// How a ShardedParameters gathers and reduces.
struct ShardedOptions {
  /// How many layers, and how many gradients, may be in memory at once. 2: the next layer is
  /// gathered while this one computes. At least 1, equal on every rank.
  int depth = 2;
  /// Options of all_gather(). If they name neither an algorithm nor an SM budget, CUDA uses
  /// `copy_engine`, which leaves the SMs to the computation.
  CallOptions gather = {};
  /// Options of reduce_scatter(). It needs SMs; by default the fastest algorithm is used.
  CallOptions reduce = {};
};

/// Gathers layers and reduces gradients next to the computation.
///
///     forward,  layer k:  w = gathered(k, stream)
///                         prefetch(k + 1)
///                         compute with w
///                         release(k, stream)
///     backward, layer k:  w = gathered(k, stream)
///                         prefetch(k - 1)
///                         g = gradient(k, stream)
///                         compute g
///                         reduce_gradient(k, shard_gradient, stream)
///                         compute with w what layer k - 1 needs
///                         release(k, stream)
///     at the end:         finish(stream)
///
/// **Calls.** Every rank makes the same calls in the same order, each from one thread.
/// group_start() has no effect on them. Not inside captures.
///
/// **Order.** `compute` is the stream of the computation. All other work is ordered by this class:
/// it copies shards, gathers and reduces on three streams of its own. A layer's memory is
/// overwritten only after all work that `compute` had when release() was called. Gathering and
/// reducing are operations of one communicator, and run one after the other in the order of the
/// calls. Therefore call prefetch() before the computation, and reduce_gradient() after it.
///
/// **Memory.** Only gathered layers and gradients are symmetric memory. create() allocates `depth`
/// blocks for each of the two and for each size of layer, fewer if fewer layers have that size.
/// After that nothing is allocated, registered or exchanged (Communicator::counters()), except what
/// an algorithm creates when it first runs, such as NCCL's communicator.
///
/// **Host backend.** Calls return when they are done and ignore streams. prefetch() gathers at
/// once; nothing runs concurrently.
///
/// **Errors of every call.** kInvalidArgument (unknown layer, or calls in another order than above:
/// nothing was done), the errors of the collectives, kCuda.
///
/// **End.** Destroy it when this rank's work with it has ended: after finish(stream) and a
/// synchronization of `stream`.
class ShardedParameters {
 public:
  /// Collective. The communicator and the shards must outlive the result. Errors: kInvalidArgument
  /// names the layer and what is wrong; those of Communicator::allocate().
  TUTTI_API static Result<ShardedParameters> create(Communicator& communicator,
                                                    const std::vector<ShardedLayer>& layers,
                                                    const ShardedOptions& options = {});
  TUTTI_API ShardedParameters(ShardedParameters&&) noexcept;
  TUTTI_API ShardedParameters& operator=(ShardedParameters&&) noexcept;
  TUTTI_API ~ShardedParameters();

  /// The number of layers.
  TUTTI_API int layers() const;

  /// Starts to gather `layer`, unless it is gathered or being gathered. The shard is read on
  /// another stream: after writing it, call updated(). kInvalidArgument if `depth` other layers are
  /// gathered and not released.
  TUTTI_API Status prefetch(int layer);

  /// The whole layer, ranks * count elements. `compute` may read it until release(). Gathers the
  /// layer if it was not prefetched.
  TUTTI_API Result<const void*> gathered(int layer, Stream compute);

  /// Ends the use of a layer: all work that reads it has been enqueued on `compute`.
  TUTTI_API Status release(int layer, Stream compute);

  /// Where `compute` writes the gradient of the layer: ranks * count elements of the layer's type.
  /// Undefined content at first. The address stays the same until reduce_gradient().
  TUTTI_API Result<void*> gradient(int layer, Stream compute);

  /// Starts to reduce the gradient of the layer: all work that writes it has been enqueued on
  /// `compute`. `shard_gradient`, `count` elements in any memory of this rank's device, receives
  /// this rank's part of the reduction over all ranks. It is valid after finish().
  TUTTI_API Status reduce_gradient(int layer, void* shard_gradient, Stream compute,
                                   ReduceOp op = {});

  /// Later work of `compute` sees all gradients that were reduced before this call.
  TUTTI_API Status finish(Stream compute);

  /// Later calls of prefetch() read what `compute` has written to shards before this call.
  TUTTI_API Status updated(Stream compute);

 private:
  explicit ShardedParameters(std::unique_ptr<ShardedParametersImpl> impl);
  std::unique_ptr<ShardedParametersImpl> impl_;
};

}  // namespace tutti
