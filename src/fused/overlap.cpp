#include "fused/overlap.hpp"

#include <fmt/format.h>

namespace tutti {

bool overlap(const PlacedMatrix& a, const PlacedMatrix& b) {
  if (a.end() <= b.address || b.end() <= a.address) return false;
  if (a.distance != b.distance) return true;
  const PlacedMatrix& first = a.address <= b.address ? a : b;
  const PlacedMatrix& second = a.address <= b.address ? b : a;
  const std::size_t column = (second.address - first.address) % first.distance;
  return column < first.length || column + second.length > first.distance;
}

Status check_apart(std::span<const PlacedMatrix> matrices) {
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const PlacedMatrix &a = matrices[j], &b = matrices[i];
      if ((!a.written && !b.written) || !overlap(a, b)) continue;
      return {StatusCode::kInvalidArgument,
              fmt::format("{} and {} overlap, and the call writes {}", a.name, b.name,
                          a.written && b.written ? "both" : (a.written ? a.name : b.name))};
    }
  }
  return Status::ok();
}

}  // namespace tutti
