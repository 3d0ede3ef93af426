// What the ranks put into all_reduce_residual_rms_norm, and what must come out: small integers, so
// that residual_output is exact; output is compared with float64.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "bench/inputs.hpp"
#include "tutti/types.hpp"

namespace tutti::cli {

class NormInputs {
 public:
  struct Shape {
    DataType dtype = DataType::kBfloat16;
    int ranks = 1;
    std::size_t tokens = 0, hidden = 0;
    std::size_t count() const { return tokens * hidden; }
  };
  static constexpr float kEpsilon = 1e-6F;

  explicit NormInputs(const Shape& shape) : shape_(shape) {}

  // Input, residual and weight, one behind the other.
  Bytes input(int rank, std::uint32_t iteration) const;
  std::size_t input_bytes() const { return (2 * shape_.count() + shape_.hidden) * element(); }
  // residual_output, then output.
  std::size_t output_bytes() const { return 2 * shape_.count() * element(); }

  // residual_output must be right to the bit, output within half a unit in its last place and 2^-20
  // of what float64 gives.
  Mismatches count_wrong(ByteView output, std::uint32_t iteration) const;

 private:
  std::size_t element() const { return size_of(shape_.dtype); }
  // Of residual_output.
  double added(std::size_t i, std::uint32_t iteration) const;
  double bound() const;

  Shape shape_;
};

}  // namespace tutti::cli
