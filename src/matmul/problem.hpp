// One matmul as a value: what a choice may depend on, and, apart from it, where the matrices are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tutti/matmul.hpp"
#include "tutti/types.hpp"

namespace tutti {

// The size of one product, and what its addresses and gaps allow.
struct ProductShape {
  std::size_t n = 0;
  std::size_t ldb = 0, ldc = 0;  // never 0 where n is not
  bool bias = false;
  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

struct MatmulProblem {
  std::size_t m = 0, k = 0, lda = 0;
  DataType dtype = DataType::kBfloat16;
  MatrixLayout b_layout = MatrixLayout::kRowMajor;
  int products = 0;
  std::array<ProductShape, kMaxMatmulProducts> product = {};
  // The largest power of two, at most 256, that divides all addresses of matrices and all distances
  // between rows (columns), in bytes.
  std::size_t alignment = 256;
  std::size_t bias_alignment = 256;  // the same of the biases

  std::size_t columns() const {  // of all products
    std::size_t sum = 0;
    for (int i = 0; i < products; ++i) sum += product[static_cast<std::size_t>(i)].n;
    return sum;
  }
  friend bool operator==(const MatmulProblem&, const MatmulProblem&) = default;
};

struct ProductPlaces {
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
};

// Checked: a call that these describe has no invalid argument.
struct CheckedMatmul {
  MatmulProblem problem;
  const void* a = nullptr;
  std::array<ProductPlaces, kMaxMatmulProducts> product = {};
};

// Of what is not a size or an address: types, layout, backend, the number of products.
Status check_kinds(const Matmul& call);

// kInvalidArgument: null or misaligned pointers, a leading dimension that is too small, too many
// products, a value out of range. kUnsupported: a type that no algorithm multiplies. Products with
// n = 0 are left out; m = 0 leaves none.
Result<CheckedMatmul> check(const Matmul& call);

}  // namespace tutti
