// Comparing results bit for bit.
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "tutti/types.hpp"

namespace tutti::test {

// Empty where the two are equal bit for bit, but that any NaN equals any NaN. Else the first
// difference with its index, values and bits, and how many there are.
std::string difference(DataType dtype, ByteView expected, ByteView seen);

}  // namespace tutti::test
