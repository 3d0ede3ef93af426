#include "tutti/sharded_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "group/stream_marks.hpp"
#include "operation/checks.hpp"
#include "tutti/symmetric_pool.hpp"

namespace tutti {
namespace {

Status check(const std::vector<ShardedLayer>& layers, const ShardedOptions& options, int ranks) {
  if (layers.empty()) return {StatusCode::kInvalidArgument, "sharded parameters without a layer"};
  if (options.depth < 1) {
    return {StatusCode::kInvalidArgument, fmt::format("depth {}: at least 1", options.depth)};
  }
  TUTTI_TRY(check_options("gather", options.gather));
  TUTTI_TRY(check_options("reduce", options.reduce));
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const ShardedLayer& layer = layers[k];
    const auto refuse = [k](std::string_view why) {
      return Status(StatusCode::kInvalidArgument, fmt::format("layer {}: {}", k, why));
    };
    if (layer.shard == nullptr) return refuse("its shard is null");
    if (layer.count == 0) return refuse("its shard has no elements");
    if (static_cast<std::size_t>(layer.dtype) >= kAllDataTypes.size()) {
      return refuse("unknown dtype");
    }
    const std::size_t element = size_of(layer.dtype);
    if (layer.count > kMostBytes / element / static_cast<std::size_t>(ranks)) {
      return refuse("its size overflows");
    }
  }
  return Status::ok();
}

}  // namespace

class ShardedParametersImpl {
 public:
  ShardedParametersImpl(Communicator& communicator, const std::vector<ShardedLayer>& layers,
                        const ShardedOptions& options)
      : communicator_(communicator.impl()),
        backend_(communicator.backend()),
        rank_(static_cast<std::size_t>(communicator.rank())),
        ranks_(static_cast<std::size_t>(communicator.size())),
        depth_(static_cast<std::size_t>(options.depth)),
        gather_(options.gather),
        reduce_(options.reduce),
        weights_(communicator),
        gradients_(communicator) {
    for (const ShardedLayer& layer : layers) layers_.push_back({.sharded = layer});
    // Gathering leaves the multiprocessors to the computation. Reducing takes some whoever moves
    // the bytes: it is what is chosen for any call, and few blocks where sm_budget says so.
    const CallOptions& gather = options.gather;
    const bool free_to_choose = gather.algorithm.empty() && !gather.sm_budget;
    if (free_to_choose && backend_ == Backend::kCuda && ranks_ > 1) {
      gather_.algorithm = "copy_engine";
    }
  }

  Status open();
  CommunicatorImpl& communicator() { return communicator_; }
  int layers() const { return static_cast<int>(layers_.size()); }
  Status prefetch(int layer);
  Result<const void*> gathered(int layer, Stream compute);
  Status release(int layer, Stream compute);
  Result<void*> gradient(int layer, Stream compute);
  Status reduce_gradient(int layer, void* to, Stream compute, ReduceOp op);
  // What was prefetched and never gathered as well: its block may be freed behind this.
  Status finish(Stream compute) {
    for (const Layer& layer : layers_) TUTTI_TRY(layer.ready.hold(compute));
    return reduced_.hold(compute);
  }
  Status updated(Stream compute) {
    TUTTI_TRY(written_.set(compute));
    return written_.hold(copy_in_.get());
  }

 private:
  // What is done with a layer, whose name outlives the caller's text.
  struct KeptOptions {
    explicit KeptOptions(const CallOptions& given) : options(given), algorithm(given.algorithm) {}
    CallOptions get() const {
      CallOptions copy = options;
      copy.algorithm = algorithm;
      return copy;
    }
    CallOptions options;
    std::string algorithm;
  };

  struct Layer {
    ShardedLayer sharded;
    SymmetricBlock weights = {};   // held while it is gathered
    SymmetricBlock gradient = {};  // held from gradient() to reduce_gradient()
    StreamMark ready = {};
  };

  std::size_t shard_bytes(const Layer& layer) const {
    return layer.sharded.count * size_of(layer.sharded.dtype);
  }
  std::size_t bytes(const Layer& layer) const { return ranks_ * shard_bytes(layer); }
  // This rank's place in a block.
  std::byte* own_place(const Layer& layer, const SymmetricBlock& block) const {
    return static_cast<std::byte*>(block.data()) + rank_ * shard_bytes(layer);
  }
  Result<Layer*> find(std::string_view call, int layer);
  Status check_depth(int layer) const;
  Status fill(SymmetricPool& pool);
  Status gather(Layer& layer);
  Status scatter(Layer& layer, ReduceOp op);

  CommunicatorImpl& communicator_;
  Backend backend_;
  std::size_t rank_, ranks_, depth_;
  KeptOptions gather_, reduce_;
  // One pool each: in a common one the oldest block would be a gradient on its way.
  SymmetricPool weights_, gradients_;
  OwnStream copy_in_, gathering_, reducing_;
  StreamMark written_, copied_, computed_, reduced_;
  std::vector<Layer> layers_;
};

Status ShardedParametersImpl::open() {
  for (OwnStream* stream : {&copy_in_, &gathering_, &reducing_}) {
    TUTTI_ASSIGN(*stream, OwnStream::create(communicator_));
  }
  for (StreamMark* mark : {&written_, &copied_, &computed_, &reduced_}) {
    TUTTI_ASSIGN(*mark, StreamMark::create(communicator_));
  }
  for (Layer& layer : layers_) {
    TUTTI_ASSIGN(layer.ready, StreamMark::create(communicator_));
  }
  TUTTI_TRY(fill(weights_));
  return fill(gradients_);
}

// With the blocks that a loop will want: taken all at once, then given back.
Status ShardedParametersImpl::fill(SymmetricPool& pool) {
  std::map<std::size_t, std::size_t> of_size;
  for (const Layer& layer : layers_) ++of_size[bytes(layer)];
  std::vector<SymmetricBlock> blocks;
  for (const auto& [size, layers] : of_size) {
    for (std::size_t n = std::min(layers, depth_); n > 0; --n) {
      TUTTI_ASSIGN(auto block, pool.take(size));
      blocks.push_back(std::move(block));
    }
  }
  return Status::ok();
}

Result<ShardedParametersImpl::Layer*> ShardedParametersImpl::find(std::string_view call,
                                                                  int layer) {
  if (layer >= 0 && layer < layers()) return &layers_[static_cast<std::size_t>(layer)];
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}({}): there are {} layers", call, layer, layers()));
}

Status ShardedParametersImpl::check_depth(int layer) const {
  std::string held;
  std::size_t count = 0;
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    if (!layers_[k].weights) continue;
    held += fmt::format("{}{}", count++ == 0 ? "" : ", ", k);
  }
  if (count < depth_) return Status::ok();
  return {StatusCode::kInvalidArgument,
          fmt::format("layer {} cannot be gathered: {} are already ({}), and depth is {}; release "
                      "one first",
                      layer, count, held, depth_)};
}

Status ShardedParametersImpl::prefetch(int layer) {
  TUTTI_ASSIGN(Layer * found, find("prefetch", layer));
  if (found->weights) return Status::ok();
  TUTTI_TRY(check_depth(layer));
  TUTTI_ASSIGN(found->weights, weights_.take(bytes(*found), copy_in_.get()));
  const Status status = gather(*found);
  // Not by the pool's own order: what was enqueued has to end before the block is used again.
  if (status.is_ok()) return status;
  (void)found->weights.give_back(gathering_.get());
  found->weights = {};
  return status;
}

Status ShardedParametersImpl::gather(Layer& layer) {
  std::byte* const own = own_place(layer, layer.weights);
  TUTTI_TRY(copy_in_.copy(own, layer.sharded.shard, shard_bytes(layer)));
  TUTTI_TRY(copied_.set(copy_in_.get()));
  TUTTI_TRY(copied_.hold(gathering_.get()));
  TUTTI_TRY(communicator_.execute({.collective = Collective::kAllGather,
                                   .input = own,
                                   .output = layer.weights.data(),
                                   .count = ranks_ * layer.sharded.count,
                                   .dtype = layer.sharded.dtype,
                                   .stream = gathering_.get(),
                                   .options = gather_.get()}));
  return layer.ready.set(gathering_.get());
}

Result<const void*> ShardedParametersImpl::gathered(int layer, Stream compute) {
  TUTTI_TRY(prefetch(layer));
  const Layer& found = layers_[static_cast<std::size_t>(layer)];
  TUTTI_TRY(found.ready.hold(compute));
  return static_cast<const void*>(found.weights.data());
}

// Behind the gathering, too: nobody may have waited for it.
Status ShardedParametersImpl::release(int layer, Stream compute) {
  TUTTI_ASSIGN(Layer * found, find("release", layer));
  if (!found->weights) {
    return {StatusCode::kInvalidArgument, fmt::format("release({}): it is not gathered", layer)};
  }
  TUTTI_TRY(found->ready.hold(compute));
  return found->weights.give_back(compute);
}

Result<void*> ShardedParametersImpl::gradient(int layer, Stream compute) {
  TUTTI_ASSIGN(Layer * found, find("gradient", layer));
  if (!found->gradient) {
    TUTTI_ASSIGN(found->gradient, gradients_.take(bytes(*found), compute));
  }
  return found->gradient.data();
}

Status ShardedParametersImpl::reduce_gradient(int layer, void* to, Stream compute, ReduceOp op) {
  TUTTI_ASSIGN(Layer * found, find("reduce_gradient", layer));
  const char* wrong = to == nullptr                                         ? "null"
                      : static_cast<std::size_t>(op.kind) >= kAllOps.size() ? "unknown op"
                      : !found->gradient ? "gradient() comes before it"
                                         : nullptr;
  if (wrong != nullptr) {
    return {StatusCode::kInvalidArgument, fmt::format("reduce_gradient({}): {}", layer, wrong)};
  }
  TUTTI_TRY(computed_.set(compute));
  TUTTI_TRY(computed_.hold(reducing_.get()));
  TUTTI_TRY(scatter(*found, op));
  TUTTI_TRY(reducing_.copy(to, own_place(*found, found->gradient), shard_bytes(*found)));
  TUTTI_TRY(reduced_.set(reducing_.get()));
  return found->gradient.give_back(reducing_.get());
}

Status ShardedParametersImpl::scatter(Layer& layer, ReduceOp op) {
  return communicator_.execute({.collective = Collective::kReduceScatter,
                                .input = layer.gradient.data(),
                                .output = own_place(layer, layer.gradient),
                                .count = ranks_ * layer.sharded.count,
                                .dtype = layer.sharded.dtype,
                                .op = op,
                                .stream = reducing_.get(),
                                .options = reduce_.get()});
}

Result<ShardedParameters> ShardedParameters::create(Communicator& communicator,
                                                    const std::vector<ShardedLayer>& layers,
                                                    const ShardedOptions& options) {
  return guarded(communicator, [&]() -> Result<ShardedParameters> {
    TUTTI_TRY(check(layers, options, communicator.size()));
    auto impl = std::make_unique<ShardedParametersImpl>(communicator, layers, options);
    TUTTI_TRY(impl->open());
    return ShardedParameters(std::move(impl));
  });
}

ShardedParameters::ShardedParameters(std::unique_ptr<ShardedParametersImpl> impl)
    : impl_(std::move(impl)) {}
ShardedParameters::ShardedParameters(ShardedParameters&&) noexcept = default;
ShardedParameters& ShardedParameters::operator=(ShardedParameters&&) noexcept = default;
ShardedParameters::~ShardedParameters() = default;

int ShardedParameters::layers() const { return impl_->layers(); }
Status ShardedParameters::prefetch(int layer) {
  return guarded(impl_->communicator(), [&]() -> Status { return impl_->prefetch(layer); });
}
Result<const void*> ShardedParameters::gathered(int layer, Stream compute) {
  return guarded(impl_->communicator(),
                 [&]() -> Result<const void*> { return impl_->gathered(layer, compute); });
}
Status ShardedParameters::release(int layer, Stream compute) {
  return guarded(impl_->communicator(), [&]() -> Status { return impl_->release(layer, compute); });
}
Result<void*> ShardedParameters::gradient(int layer, Stream compute) {
  return guarded(impl_->communicator(),
                 [&]() -> Result<void*> { return impl_->gradient(layer, compute); });
}
Status ShardedParameters::reduce_gradient(int layer, void* shard_gradient, Stream compute,
                                          ReduceOp op) {
  return guarded(impl_->communicator(), [&]() -> Status {
    return impl_->reduce_gradient(layer, shard_gradient, compute, op);
  });
}
Status ShardedParameters::finish(Stream compute) {
  return guarded(impl_->communicator(), [&]() -> Status { return impl_->finish(compute); });
}
Status ShardedParameters::updated(Stream compute) {
  return guarded(impl_->communicator(), [&]() -> Status { return impl_->updated(compute); });
}

}  // namespace tutti
