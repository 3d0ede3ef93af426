// Single elements of a type that is known only at run time, as numbers.
#pragma once

#include <cstdint>

#include "tutti/types.hpp"

namespace tutti {

// Writes `value` as one element of `dtype`: as Scalar::to() does, and types narrower than float are
// rounded once, of what a double holds of `value`. `at` may be unaligned.
void store_element(DataType dtype, void* at, Scalar value);

// Exact. `at` may be unaligned.
Scalar load_scalar(DataType dtype, const void* at);
// The same as a double: exact, except for 64-bit integers beyond 2^53.
double load_element(DataType dtype, const void* at);

// `value` in the type in which `dtype` accumulates, in the low bytes of a word (ScalarBits).
std::uint64_t accumulator_bits(DataType dtype, Scalar value);

}  // namespace tutti
