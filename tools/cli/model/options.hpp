// What `tutti model` was asked for: as typed, and as checked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "model/links.hpp"
#include "model/predict.hpp"

namespace tutti::cli {

// The text of each option; empty: not given. Of `sizes` the collective, sizes, type and root.
struct ModelArguments {
  BenchArguments sizes;
  std::string nodes, gpus_per_node, link, gbit_per_s, algorithms, compare, fit, output;
  bool unfolded = false, print_link = false;
};

struct ModelOptions {
  Collective collective = Collective::kAllReduce;
  std::vector<int> nodes;  // a cluster after the other
  int ranks_per_node = 1;
  model::Links links;  // its cluster has no size yet
  std::vector<std::size_t> bytes;
  DataType dtype = DataType::kFloat32;
  int root = 0;
  std::vector<model::ModelledAlgorithm> algorithms;
  std::vector<std::string> compare, fit;  // files of results
  model::Folding folding = model::Folding::kWherePossible;
  std::string output;
  bool print_link = false;
};

// The first thing that cannot be right is kInvalidArgument.
Result<ModelOptions> check_model_arguments(const ModelArguments& arguments);

}  // namespace tutti::cli
