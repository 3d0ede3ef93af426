// Parameters of which every rank keeps a part, layer by layer (fully sharded data parallel): a
// layer is gathered under the computation of the one before it, and given up behind its own.
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

// Rank r's shard holds the elements from r * count on, of ranks * count. A layer that does not
// divide is padded by its owner.
struct ShardedLayer {
  const void* shard = nullptr;  // `count` elements of this rank, in any memory of its device
  std::size_t count = 0;        // > 0, equal on every rank
  DataType dtype = DataType::kFloat32;
};

struct ShardedOptions {
  // How many layers may be gathered at once, and how many gradients be under way: 2 gather the next
  // one under the computation of this one. >= 1, equal on every rank.
  int depth = 2;
  // Of all_gather. Where neither an algorithm nor sm_budget is given, it is copy_engine on CUDA,
  // which leaves the multiprocessors to the computation.
  CallOptions gather = {};
  // Of reduce_scatter, which needs multiprocessors in any case: the fastest algorithm, as in any
  // call. sm_budget limits how many it takes.
  CallOptions reduce = {};
};

//   forward   k: w = gathered(k, stream); prefetch(k + 1); compute with w; release(k, stream)
//   backward  k: w = gathered(k, stream); prefetch(k - 1); g = gradient(k, stream); compute g;
//                reduce_gradient(k, shard_gradient, stream); compute what layer k - 1 needs, with
//                w; release(k, stream)
//   at the end:  finish(stream)
//
// Every rank makes the same calls in the same order, each from a thread of its own; a group_start()
// before them changes nothing. `compute` is the
// stream of the computation; everything else is ordered by this class: copying a shard to its place
// in the gathered layer on a stream of its own, gathering in place on another, reducing on a third.
// A block is written again only behind what the stream of its release() had been given by then.
// The gathering and the reducing are operations of one communicator, and run one after the other,
// in the order of the calls: they would share the same links anyway. So prefetch() before the
// computation, reduce_gradient() behind it.
//
// Only the gathered layers and gradients are symmetric memory: per size of layer, and of each of
// the two, `depth` blocks (fewer where fewer layers have that size), allocated by create(). After
// that nothing is allocated, registered or exchanged (Communicator::counters()), but for what an
// algorithm makes when it first runs (NCCL's communicator). Not within captures.
//
// On the host backend a call returns when it is done, and streams are not looked at: prefetch()
// gathers at once, and nothing runs under anything.
//
// Errors of every call: kInvalidArgument (no such layer, or an order that is not the one above:
// nothing was done), those of the collectives, kCuda. Destroy it when this rank's work with it has
// ended: after finish(stream), and a synchronisation of `stream`.
class ShardedParameters {
 public:
  // Collective. The communicator and the shards outlive the result. Errors: kInvalidArgument says
  // what is wrong with which layer; those of Communicator::allocate().
  TUTTI_API static Result<ShardedParameters> create(Communicator& communicator,
                                                    const std::vector<ShardedLayer>& layers,
                                                    const ShardedOptions& options = {});
  TUTTI_API ShardedParameters(ShardedParameters&&) noexcept;
  TUTTI_API ShardedParameters& operator=(ShardedParameters&&) noexcept;
  TUTTI_API ~ShardedParameters();

  TUTTI_API int layers() const;

  // Begins to gather `layer`; of one that is gathered, or under way, nothing. It reads the shard in
  // a stream of its own: what has written it is to be ordered before, by updated(). Error:
  // kInvalidArgument where `depth` others are gathered and not released.
  TUTTI_API Status prefetch(int layer);

  // The whole layer: ranks * count elements, to be read in `compute`'s order until release().
  // Gathers what was not prefetched.
  TUTTI_API Result<const void*> gathered(int layer, Stream compute);

  // `compute` has been given everything that reads the layer.
  TUTTI_API Status release(int layer, Stream compute);

  // Where the layer's gradient belongs: ranks * count elements of its type, to be written in
  // `compute`'s order; what is there is not defined. Until reduce_gradient(), the same address.
  TUTTI_API Result<void*> gradient(int layer, Stream compute);

  // `compute` has been given everything that writes gradient(layer). `shard_gradient`, `count`
  // elements in any memory of this rank's device, becomes this rank's part of the reduction over
  // all ranks; it is there behind finish().
  TUTTI_API Status reduce_gradient(int layer, void* shard_gradient, Stream compute,
                                   ReduceOp op = {});

  // What `compute` is given from now on finds every gradient that was reduced so far.
  TUTTI_API Status finish(Stream compute);

  // Prefetches from now on find what `compute` has been given so far to write into shards.
  TUTTI_API Status updated(Stream compute);

 private:
  explicit ShardedParameters(std::unique_ptr<ShardedParametersImpl> impl);
  std::unique_ptr<ShardedParametersImpl> impl_;
};

}  // namespace tutti
