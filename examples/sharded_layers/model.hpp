// L linear layers, x[k + 1] = x[k] W[k] with W [width, width] and x [tokens, width], forward and
// backward: once with parameters that are sharded over the ranks, once with all of them on each
// rank.
#pragma once

#include <vector>

#include "machine.hpp"

struct Shape {
  std::size_t layers = 4, width = 128, tokens = 64;  // tokens of one rank
};

// Small integers, so that products and sums are exact in every type used here: W moves and negates
// columns, and few elements of an input are not 0.
float weight(std::size_t layer, std::size_t row, std::size_t column, const Shape& shape);
std::vector<float> input_of(int rank, int ranks, const Shape& shape);
std::vector<float> output_gradient_of(int rank, const Shape& shape);  // of the last layer's output

class Model {
 public:
  Model(tutti::Communicator& group, Machine& machine, const Shape& shape);

  // Enqueue forward and backward for this rank's tokens. Unsharded gradients are those of this
  // rank's tokens alone; `add` adds them to the earlier ones. `release_early` releases layers
  // before they are used, which is wrong.
  void step_sharded(tutti::ShardedParameters& parameters, bool release_early = false);
  void step_unsharded(bool add = false);

  void load_tokens(int rank);  // the tokens of `rank`
  std::vector<tutti::ShardedLayer> shards() const;
  std::vector<float> output();                                 // of the last step
  std::vector<float> shard_gradient(std::size_t layer);        // of the last sharded step
  std::vector<float> own_part_of_gradient(std::size_t layer);  // of the unsharded gradient

 private:
  void forward(std::size_t layer, const void* weights);
  void weight_gradient(std::size_t layer, void* gradient, bool add);
  void input_gradient(std::size_t layer, const void* weights);
  std::size_t shard_elements() const { return shape_.width * shape_.width / ranks_; }

  Machine& machine_;
  Shape shape_;
  std::size_t rank_, ranks_;
  std::vector<void*> activations_;            // [layers + 1]
  void *output_gradient_, *flowing_, *next_;  // gradients between layers
  std::vector<void*> weights_, gradients_;    // whole, for step_unsharded()
  std::vector<void*> shards_, shard_gradients_;
};
