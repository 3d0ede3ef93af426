// Whether matrices of one call lie in the same memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tutti/status.hpp"

namespace tutti {

// `lines` of `length` bytes, `distance` bytes apart, of which none is 0.
struct PlacedMatrix {
  std::string name;
  std::uintptr_t address = 0;
  std::size_t lines = 1, length = 0, distance = 0;
  bool written = false;

  std::uintptr_t end() const { return address + (lines - 1) * distance + length; }
};

// Whether a byte may be in both. Exact for lines without gaps, and for matrices that lie side by
// side in the lines of a wider one; others overlap if one lies in the other's gaps.
bool overlap(const PlacedMatrix& a, const PlacedMatrix& b);

// kInvalidArgument names two that overlap of which one is written.
Status check_apart(std::span<const PlacedMatrix> matrices);

}  // namespace tutti
