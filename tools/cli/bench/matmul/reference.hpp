// What a product must be, at samples: two rows, two columns, the corners, and elements of all parts
// of C, each a sum in fp64.
#pragma once

#include <vector>

#include "bench/inputs.hpp"
#include "bench/matmul/shapes.hpp"
#include "bench/numbers.hpp"
#include "tutti/matmul.hpp"

namespace tutti::cli {

// One product, whose matrices repeat these numbers without gaps.
struct MatmulFactors {
  MatmulExtents extents;
  DataType dtype = DataType::kFloat32;
  MatrixLayout layout = MatrixLayout::kRowMajor;  // of B
  const Numbers& a;
  const Numbers& b;
  const Numbers* bias = nullptr;  // null: none
};

class MatmulReference {
 public:
  explicit MatmulReference(const MatmulFactors& factors);

  // Compares whole rows of C, from row `first` on, with what is known of them. Mismatches have the
  // index within C.
  Mismatches check(std::size_t first, ByteView rows) const;

 private:
  struct Sample {
    std::size_t row, column;
    double value;
  };
  void add_row(const MatmulFactors& factors, std::size_t row);
  void add_column(const MatmulFactors& factors, std::size_t column);
  bool is_right(double want, double got) const;

  std::size_t rows_, columns_, element_;
  DataType dtype_;
  double slack_;                 // what sums in fp32 may be off
  std::vector<Sample> samples_;  // by row
};

}  // namespace tutti::cli
