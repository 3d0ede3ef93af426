// Random numbers for matrices: a prime number of them, repeated, so that no shift goes unseen and
// nothing large has to be kept. They use all bits of their type, since a GPU's power, and so its
// clock, depends on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "tutti/types.hpp"

namespace tutti::cli {

std::uint64_t scrambled(std::uint64_t key);  // all bits depend on all bits (splitmix64)

// Uniform in [-1, 1), as they are in the type: fp16, bf16 or fp32.
class Numbers {
 public:
  static constexpr std::size_t kPeriod = 65537;  // elements; prime

  Numbers(DataType dtype, std::uint64_t seed);
  double operator[](std::size_t index) const { return values_[index % kPeriod]; }
  std::span<const float> values() const { return values_; }  // of a period
  const Bytes& period() const { return period_; }

 private:
  std::vector<float> values_;
  Bytes period_;
};

double number_of(DataType dtype, ByteView bytes);  // the value of one element
// The most that rounding once to the type changes, relative to the value.
double rounding_of(DataType dtype);

}  // namespace tutti::cli
