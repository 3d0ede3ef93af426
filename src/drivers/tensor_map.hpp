// A description of a matrix for TMA, as the driver encodes it: CUtensorMap.
#pragma once

#include <cstdint>

namespace tutti {

struct alignas(64) TensorMap {
  std::uint64_t words[16];
};

}  // namespace tutti
