#include "operation/lengths.hpp"

#include <bit>
#include <numeric>

namespace tutti {
namespace {

PieceCounts::Kind kind_of(Collective collective) {
  if (reduces(collective)) return PieceCounts::Kind::kParts;
  return collective == Collective::kAllGatherV ? PieceCounts::Kind::kSame
                                               : PieceCounts::Kind::kEach;
}

}  // namespace

std::vector<std::size_t> firsts_of(const std::vector<std::size_t>& lengths) {
  std::vector<std::size_t> firsts(lengths.size() + 1);
  std::partial_sum(lengths.begin(), lengths.end(), firsts.begin() + 1);
  return firsts;
}

Sides Lengths::sides(Collective collective, int rank, std::size_t element_bytes) const {
  const auto own = static_cast<std::size_t>(rank);
  const bool gathers = collective == Collective::kAllGatherV;
  Sides sides;
  if (are_on_device()) {
    sides = {1, 1, 0};
  } else if (collective == Collective::kAllToAllV) {
    sides = {firsts_of(sent).back(), firsts_of(taken).back(), 0};
  } else {
    const auto firsts = firsts_of(gathers ? taken : sent);
    const std::size_t piece = firsts[own + 1] - firsts[own];
    sides = gathers ? Sides{piece, firsts.back(), firsts[own]}
                    : Sides{firsts.back(), piece, firsts[own]};
  }
  return {sides.input * element_bytes, sides.output * element_bytes, sides.place * element_bytes};
}

PieceCounts Lengths::counts(Collective collective, DataType dtype) const {
  const std::size_t element = size_of(dtype) / size_of(moved_as(collective, dtype));
  PieceCounts counts{};
  counts.kind = kind_of(collective);
  counts.agreed = are_agreed(collective);
  counts.given = on_device.given;
  counts.found = on_device.found;
  counts.bits = static_cast<std::uint32_t>(std::countr_zero(element));
  const auto fill = [element](const std::vector<std::size_t>& lengths, bool apart, Range* pieces) {
    const auto firsts = firsts_of(lengths);
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      pieces[r] = {apart ? firsts[r] * element : 0, lengths[r] * element};
    }
  };
  fill(sent, counts.kind != PieceCounts::Kind::kSame, counts.sent);
  fill(taken, true, counts.taken);
  return counts;
}

}  // namespace tutti
