// What a reduction must give, computed in the plainest way and apart from the library's kernels:
// rank 0's value, then rank 1's, and so on; fp16, bf16 and fp8 in fp32, rounded once at the end;
// fp32 and fp64 in their own arithmetic; integers wrap.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "tutti/types.hpp"

namespace tutti::test {

class Reference {
 public:
  Reference(DataType dtype, OpKind op, std::size_t count);

  // The next rank's input. `scalar` is its pre-multiplier; other ops leave it unused.
  void add(ByteView input, Scalar scalar = 1.0);

  // After the last rank.
  Bytes result() const;

 private:
  DataType dtype_;
  OpKind op_;
  std::size_t count_;
  int ranks_ = 0;
  // One of these holds the accumulators. Integers are kept modulo 2^64, which wraps like any
  // narrower type once it is cut to its width.
  std::vector<double> doubles_;
  std::vector<float> floats_;
  std::vector<std::uint64_t> integers_;
};

}  // namespace tutti::test
