// Numbers of a program that differ between ranks and between iterations of its loops:
// "(rank + step) mod 8".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tutti::pipelines {

enum class Variable : std::uint8_t { kRank, kStep, kTile, kStream };
inline constexpr std::size_t kVariables = 4;

// The values of all variables, by Variable.
using Bindings = std::array<int, kVariables>;

// A sum of variables and a constant, modulo `modulus` if that is not 0.
struct Index {
  std::array<int, kVariables> factors = {};
  int offset = 0;
  int modulus = 0;

  constexpr int at(const Bindings& values) const {
    int sum = offset;
    for (std::size_t i = 0; i < kVariables; ++i) sum += factors[i] * values[i];
    return modulus == 0 ? sum : ((sum % modulus) + modulus) % modulus;
  }
  friend bool operator==(const Index&, const Index&) = default;
};

constexpr Index constant(int value) { return {.factors = {}, .offset = value}; }

constexpr Index variable(Variable which) {
  Index index;
  index.factors[static_cast<std::size_t>(which)] = 1;
  return index;
}

inline constexpr Index kRank = variable(Variable::kRank);
inline constexpr Index kStep = variable(Variable::kStep);
inline constexpr Index kTile = variable(Variable::kTile);
inline constexpr Index kStream = variable(Variable::kStream);

// Sums are formed before mod() is applied.
constexpr Index operator+(Index a, const Index& b) {
  for (std::size_t i = 0; i < kVariables; ++i) a.factors[i] += b.factors[i];
  a.offset += b.offset;
  return a;
}

constexpr Index operator-(Index a, const Index& b) {
  for (std::size_t i = 0; i < kVariables; ++i) a.factors[i] -= b.factors[i];
  a.offset -= b.offset;
  return a;
}

constexpr Index operator+(const Index& a, int b) { return a + constant(b); }
constexpr Index operator-(const Index& a, int b) { return a - constant(b); }

constexpr Index mod(Index index, int modulus) {
  index.modulus = modulus;
  return index;
}

}  // namespace tutti::pipelines
