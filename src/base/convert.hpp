// Single elements of a type that is known only at run time, as doubles.
#pragma once

#include "tutti/types.hpp"

namespace tutti {

// Writes `value` as one element of `dtype`, rounded once. Integers truncate, take the nearest end
// of their range where `value` is outside it, and 0 for NaN. `at` may be unaligned.
void store_element(DataType dtype, void* at, double value);

// Exact, except for 64-bit integers beyond 2^53. `at` may be unaligned.
double load_element(DataType dtype, const void* at);

// What an integer type can hold of `value`, as store_element() would: so that a conversion to it is
// defined. Of 64 bits, the nearest double within the range. Other types: `value` itself.
double within_range(DataType dtype, double value);

}  // namespace tutti
