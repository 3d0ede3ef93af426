// One operation on more than 2^32 elements, which is also more than 2^31 bytes.
#pragma once

#include <string>

#include "support/group.hpp"

namespace tutti::test {

inline constexpr std::size_t kHugeCount = (std::size_t{1} << 32) + 12345;  // of one byte each

// In place and in symmetric memory: 4.3 GB for each rank. Empty if every element was right.
std::string run_huge(const GroupSpec& spec, std::string_view algorithm);

}  // namespace tutti::test
