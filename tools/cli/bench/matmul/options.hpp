// What `tutti bench matmul` was asked for: as typed, and as checked.
#pragma once

#include <string>
#include <vector>

#include "bench/matmul/shapes.hpp"
#include "bench/options.hpp"
#include "tutti/matmul.hpp"

namespace tutti::cli {

// The text of each option; empty: not given. Of `bench` what all benchmarks have.
struct MatmulArguments {
  BenchArguments bench;
  std::string m, n, k, weights, preset, layout, tile, tune, products, seconds;
  bool bias = false;
};

// Among algorithms, next to kAutoName.
inline constexpr std::string_view kOwnName = "own", kCublasLtName = "cublaslt",
                                  kPlainName = "plain", kHostName = "host";

struct MatmulBenchOptions {
  BenchOptions bench;  // of its algorithms, names without "_matmul"
  std::vector<MatmulExtents> shapes;
  std::vector<DataType> dtypes;
  std::vector<MatrixLayout> layouts;  // of B
  std::vector<std::string> tiles;     // of the own kernel, one after the other; "": chosen
  bool tune = false;                  // before `auto` is measured
  int products = 1;
  bool bias = false;
  int seconds = 0;  // that a shape runs before it is measured
};

// Fills in what was not given. The first invalid value is kInvalidArgument.
Result<MatmulBenchOptions> check_matmul_arguments(const MatmulArguments& arguments,
                                                  const BenchMachine& machine);

}  // namespace tutti::cli
