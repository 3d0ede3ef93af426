#include "model.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace {

float sign(std::size_t a, std::size_t b, std::size_t c) {
  const std::uint64_t mixed =
      (a * 0x9E3779B97F4A7C15 ^ b * 0xC2B2AE3D27D4EB4F ^ c * 0x165667B19E3779F9);
  return (mixed * 0xFF51AFD7ED558CCD >> 63) != 0 ? -1.0F : 1.0F;
}

template <class T>
T value_of(tutti::Result<T> result) {
  check(result.status());
  return *std::move(result);
}

}  // namespace

float weight(std::size_t layer, std::size_t row, std::size_t column, const Shape& shape) {
  const std::size_t moved = (row + 7 * layer + 3) % shape.width;
  return column == moved ? sign(layer, row, column) : 0.0F;
}

// A gradient is a sum over all ranks' tokens. At most about 128 elements of a column are not 0,
// because bf16 represents the integers up to 256.
std::vector<float> input_of(int rank, int ranks, const Shape& shape) {
  const std::size_t apart =
      std::max<std::size_t>(1, static_cast<std::size_t>(ranks) * shape.tokens / 128);
  std::vector<float> values(shape.tokens * shape.width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t token = i / shape.width, column = i % shape.width;
    if ((token + column) % apart == 0)
      values[i] = sign(static_cast<std::size_t>(rank), token, column);
  }
  return values;
}

std::vector<float> output_gradient_of(int rank, const Shape& shape) {
  std::vector<float> values(shape.tokens * shape.width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = sign(i / shape.width, static_cast<std::size_t>(rank) + 1, i % shape.width);
  }
  return values;
}

Model::Model(tutti::Communicator& group, Machine& machine, const Shape& shape)
    : machine_(machine),
      shape_(shape),
      rank_(static_cast<std::size_t>(group.rank())),
      ranks_(static_cast<std::size_t>(group.size())) {
  const std::size_t tokens = shape.tokens * shape.width, whole = shape.width * shape.width;
  for (std::size_t k = 0; k <= shape.layers; ++k) activations_.push_back(machine.allocate(tokens));
  for (void** one : {&output_gradient_, &flowing_, &next_}) *one = machine.allocate(tokens);
  for (std::size_t k = 0; k < shape.layers; ++k) {
    std::vector<float> values(whole);
    for (std::size_t row = 0; row < shape.width; ++row) {
      for (std::size_t column = 0; column < shape.width; ++column) {
        values[row * shape.width + column] = weight(k, row, column, shape);
      }
    }
    weights_.push_back(machine.allocate(whole));
    machine.write(weights_.back(), values);
    gradients_.push_back(machine.allocate(whole));
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(rank_ * shard_elements());
    shards_.push_back(machine.allocate(shard_elements()));
    machine.write(shards_.back(), {first, first + static_cast<std::ptrdiff_t>(shard_elements())});
    shard_gradients_.push_back(machine.allocate(shard_elements()));
  }
  load_tokens(group.rank());
}

void Model::load_tokens(int rank) {
  machine_.write(activations_[0], input_of(rank, static_cast<int>(ranks_), shape_));
  machine_.write(output_gradient_, output_gradient_of(rank, shape_));
}

void Model::forward(std::size_t layer, const void* weights) {
  machine_.multiply({.a = activations_[layer],
                     .b = weights,
                     .c = activations_[layer + 1],
                     .m = shape_.tokens,
                     .n = shape_.width,
                     .k = shape_.width});
}

void Model::weight_gradient(std::size_t layer, void* gradient, bool add) {
  const bool last = layer + 1 == shape_.layers;
  machine_.multiply({.a = activations_[layer],
                     .b = last ? output_gradient_ : flowing_,
                     .c = gradient,
                     .m = shape_.width,
                     .n = shape_.width,
                     .k = shape_.tokens,
                     .a_transposed = true,
                     .add = add});
}

void Model::input_gradient(std::size_t layer, const void* weights) {
  const bool last = layer + 1 == shape_.layers;
  machine_.multiply({.a = last ? output_gradient_ : flowing_,
                     .b = weights,
                     .c = next_,
                     .m = shape_.tokens,
                     .n = shape_.width,
                     .k = shape_.width,
                     .b_transposed = true});
  std::swap(flowing_, next_);
}

// While a layer computes, the next layer is gathered and the previous gradient is reduced.
void Model::step_sharded(tutti::ShardedParameters& parameters, bool release_early) {
  const tutti::Stream stream = machine_.stream();
  const int last = parameters.layers() - 1;
  for (int k = 0; k <= last; ++k) {
    const void* weights = value_of(parameters.gathered(k, stream));
    if (k < last && release_early) check(parameters.release(k, stream));
    if (k < last) check(parameters.prefetch(k + 1));
    forward(static_cast<std::size_t>(k), weights);
    if (k < last && !release_early) check(parameters.release(k, stream));
  }
  for (int k = last; k >= 0; --k) {
    const auto layer = static_cast<std::size_t>(k);
    const void* weights = value_of(parameters.gathered(k, stream));
    if (release_early) check(parameters.release(k, stream));
    if (k > 0) check(parameters.prefetch(k - 1));
    weight_gradient(layer, value_of(parameters.gradient(k, stream)), false);
    check(parameters.reduce_gradient(k, shard_gradients_[layer], stream));
    if (k > 0) input_gradient(layer, weights);
    if (!release_early) check(parameters.release(k, stream));
  }
  check(parameters.finish(stream));
}

void Model::step_unsharded(bool add) {
  for (std::size_t k = 0; k < shape_.layers; ++k) forward(k, weights_[k]);
  for (std::size_t k = shape_.layers; k-- > 0;) {
    weight_gradient(k, gradients_[k], add);
    if (k > 0) input_gradient(k, weights_[k]);
  }
}

std::vector<tutti::ShardedLayer> Model::shards() const {
  std::vector<tutti::ShardedLayer> layers;
  for (const void* shard : shards_) layers.push_back({shard, shard_elements(), machine_.dtype()});
  return layers;
}

std::vector<float> Model::output() {
  return machine_.read(activations_.back(), shape_.tokens * shape_.width);
}

std::vector<float> Model::shard_gradient(std::size_t layer) {
  return machine_.read(shard_gradients_[layer], shard_elements());
}

std::vector<float> Model::own_part_of_gradient(std::size_t layer) {
  const std::vector<float> whole = machine_.read(gradients_[layer], shape_.width * shape_.width);
  const auto first = whole.begin() + static_cast<std::ptrdiff_t>(rank_ * shard_elements());
  return {first, first + static_cast<std::ptrdiff_t>(shard_elements())};
}
