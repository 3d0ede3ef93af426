// What the ranks put in: functions of (seed, rank, index) alone, so that every rank can compute
// what every other one holds.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.hpp"
#include "tutti/types.hpp"

namespace tutti::test {

enum class InputKind : std::uint8_t {
  // Every partial result, in any order, is exact in the element type for up to 16 ranks: what has
  // one right answer whatever the algorithm.
  kExact,
  // Full mantissas, nearby exponents, both signs: the answer shows the order of the additions, the
  // accumulator's width and every rounding. Integers: all bits, so that they wrap.
  kRandom,
  // As kRandom, mixed with NaN (all ones and signalling ones, too), infinities, both zeros (-0.0 on
  // every rank, too), subnormals and the largest finite values.
  // Floating types.
  kSpecial,
};
inline constexpr InputKind kAllInputKinds[] = {InputKind::kExact, InputKind::kRandom,
                                               InputKind::kSpecial};
std::string_view to_string(InputKind kind);  // "exact", "random", "special"

struct InputSpec {
  DataType dtype = DataType::kFloat32;
  OpKind op = OpKind::kSum;
  InputKind kind = InputKind::kExact;
  int ranks = 1;
  std::uint64_t seed = 0;
  friend bool operator==(const InputSpec&, const InputSpec&) = default;
};

// The first `count` elements of rank `rank`. A longer input starts with every shorter one.
Bytes make_input(const InputSpec& spec, int rank, std::size_t count);

// Rank `rank`'s pre-multiplier; the ranks' differ. 1 for other ops. Of 64-bit integers no double
// holds it.
Scalar scalar_of(const InputSpec& spec, int rank);

}  // namespace tutti::test
