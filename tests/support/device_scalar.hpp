// Pre-multipliers that lie in a rank's memory.
#pragma once

#include <array>
#include <cstddef>

#include "base/convert.hpp"
#include "support/device.hpp"
#include "tutti/types.hpp"

namespace tutti::test {

inline constexpr std::size_t kScalarRoom = 256;

// `op` with its multiplier at `place`, of `kScalarRoom` bytes, if an element can hold it; otherwise
// `op` itself.
inline ReduceOp in_memory(Device& device, std::byte* place, DataType dtype, const ReduceOp& op) {
  std::array<std::byte, 8> element{};
  store_element(dtype, element.data(), op.scalar);
  const Scalar held = load_scalar(dtype, element.data());
  if (op.kind != OpKind::kPreMulSum ||
      accumulator_bits(dtype, held) != accumulator_bits(dtype, op.scalar)) {
    return op;
  }
  device.write(place, element.data(), element.size());
  return ReduceOp::pre_mul_sum_at(place);
}

}  // namespace tutti::test
