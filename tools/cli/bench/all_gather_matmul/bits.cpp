#include "bench/all_gather_matmul/bits.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti::cli {

Result<Mismatches> BitComparison::operator()(std::size_t set) {
  if (reference_ == nullptr) {
    TUTTI_ASSIGN(reference_, device_.allocate(bytes()));
  }
  if (filled_ && set == of_) return compare(set);
  TUTTI_TRY(device_.copy(reference_.get(), sets_.c(set, 0), bytes()));
  of_ = set;
  filled_ = true;
  return Mismatches{};
}

std::size_t BitComparison::bytes() const {
  const MatmulSetting& setting = sets_.setting();
  return setting.extents.m * setting.extents.n * size_of(setting.dtype);
}

Result<Mismatches> BitComparison::compare(std::size_t set) const {
  constexpr std::size_t kAtOnce = 64 * MiB;
  const std::size_t element = size_of(sets_.setting().dtype), all = bytes();
  std::vector<std::byte> want(std::min(all, kAtOnce)), got(want.size());
  Mismatches found;
  for (std::size_t at = 0; at < all; at += want.size()) {
    const std::size_t now = std::min(want.size(), all - at);
    TUTTI_TRY(device_.copy(want.data(), reference_.get() + at, now));
    TUTTI_TRY(device_.copy(got.data(), sets_.c(set, 0) + at, now));
    if (std::memcmp(want.data(), got.data(), now) == 0) continue;
    for (std::size_t k = 0; k < now; k += element) {
      if (std::memcmp(want.data() + k, got.data() + k, element) == 0) continue;
      if (found.count++ == 0) found.first = (at + k) / element;
    }
  }
  return found;
}

}  // namespace tutti::cli
