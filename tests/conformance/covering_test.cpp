#include "conformance/covering.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace tutti::test {
namespace {

using Pairs = std::set<std::tuple<std::size_t, int, std::size_t, int>>;

Pairs pairs_in(const std::vector<Combination>& combinations) {
  Pairs pairs;
  for (const Combination& all : combinations) {
    for (std::size_t d = 0; d < all.size(); ++d) {
      for (std::size_t e = d + 1; e < all.size(); ++e) pairs.insert({d, all[d], e, all[e]});
    }
  }
  return pairs;
}

bool anything(const Combination&) { return true; }

// Dimension 0's last value goes with the first two values of dimension 1 alone, and value 0 of
// dimension 2 needs value 1 of dimension 3.
bool picky(const Combination& chosen) {
  if (chosen[0] == 4 && chosen[1] != kAny && chosen[1] > 1) return false;
  return chosen[2] != 0 || chosen[3] == kAny || chosen[3] == 1;
}

TEST(PairwiseTest, EveryPairOccursInFarFewerCombinations) {
  const std::vector<int> sizes = {9, 7, 5, 4, 3, 2};
  const auto found = pairwise(sizes, anything, 1);
  EXPECT_EQ(pairs_in(found).size(), pairs_in(product(sizes, anything)).size());
  EXPECT_GE(found.size(), 9u * 7u);
  EXPECT_LE(found.size(), 2u * 9u * 7u);
}

TEST(PairwiseTest, EveryPossiblePairOccursAndNothingForbidden) {
  const std::vector<int> sizes = {5, 6, 4, 3, 2};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto found = pairwise(sizes, picky, seed);
    EXPECT_EQ(pairs_in(found), pairs_in(product(sizes, picky))) << "seed " << seed;
    for (const Combination& all : found) EXPECT_TRUE(picky(all));
  }
}

TEST(PairwiseTest, TheSeedDecides) {
  const std::vector<int> sizes = {5, 6, 4, 3, 2};
  EXPECT_EQ(pairwise(sizes, anything, 3), pairwise(sizes, anything, 3));
  EXPECT_NE(pairwise(sizes, anything, 3), pairwise(sizes, anything, 4));
}

TEST(ProductTest, HasEveryAllowedCombinationOnce) {
  EXPECT_EQ(product({3, 4, 2}, anything).size(), 24u);
  EXPECT_TRUE(product({3, 0, 2}, anything).empty());
  EXPECT_TRUE(pairwise({3, 0, 2}, anything, 1).empty());
}

}  // namespace
}  // namespace tutti::test
