// A small set of combinations in which every possible pair of values of any two dimensions occurs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tutti::test {

// One value per dimension, as an index; kAny where it is not chosen yet.
using Combination = std::vector<int>;
inline constexpr int kAny = -1;

// Whether what is chosen so far can be completed. Must never say no to a part of something it
// says yes to.
using Allowed = std::function<bool(const Combination&)>;

// `sizes[d]`: how many values dimension d has. The same for the same seed. A pair occurs unless no
// allowed combination that the search found in many tries holds it.
std::vector<Combination> pairwise(const std::vector<int>& sizes, const Allowed& allowed,
                                  std::uint64_t seed);

// Every allowed combination.
std::vector<Combination> product(const std::vector<int>& sizes, const Allowed& allowed);

}  // namespace tutti::test
