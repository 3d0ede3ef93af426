// Sums in the host's memory, with the bits that bodies of algorithms have: in the order of the
// sources, narrow types in fp32, rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/types.hpp"

namespace tutti {

struct Combination {
  DataType dtype = DataType::kFloat32;
  OpKind op = OpKind::kSum;  // kSum, kProd, kMin or kMax: scalars and the divisor are apart
  std::size_t count = 0;     // elements
  // At least one. Any of them may be `into`; otherwise they do not overlap it. Any alignment.
  std::span<const std::byte* const> sources;
  // What the sources are multiplied with, one each; empty: nothing.
  std::span<const Scalar> scalars = {};
  int divisor = 1;  // of the sum, before it is rounded
  std::byte* into = nullptr;
};

// Instructions that loops over types narrower than fp32 are compiled for. All give the same bits.
enum class CombineWith : std::uint8_t { kPortable, kAvx2, kAvx512 };
// Whether this processor has them. The fastest ones that it has.
bool can_combine_with(CombineWith instructions);
CombineWith fastest_to_combine_with();

void combine(const Combination& combination, CombineWith instructions = fastest_to_combine_with());

}  // namespace tutti
