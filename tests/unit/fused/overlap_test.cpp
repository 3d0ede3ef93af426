#include "fused/overlap.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

constexpr PlacedMatrix at(std::uintptr_t address, std::size_t lines, std::size_t length,
                          std::size_t distance) {
  return {.address = address, .lines = lines, .length = length, .distance = distance};
}

bool both_ways(const PlacedMatrix& a, const PlacedMatrix& b) {
  EXPECT_EQ(overlap(a, b), overlap(b, a));
  return overlap(a, b);
}

TEST(Overlap, LinesWithoutGapsOverlapByTheByte) {
  EXPECT_FALSE(both_ways(at(100, 2, 8, 8), at(116, 1, 4, 4)));
  EXPECT_TRUE(both_ways(at(100, 2, 8, 8), at(115, 1, 4, 4)));
  EXPECT_FALSE(both_ways(at(100, 2, 8, 8), at(96, 1, 4, 4)));
  EXPECT_TRUE(both_ways(at(100, 2, 8, 8), at(96, 1, 5, 5)));
  EXPECT_TRUE(both_ways(at(100, 2, 8, 8), at(100, 2, 8, 8)));
}

TEST(Overlap, TheLastLineHasNoGap) {
  EXPECT_FALSE(both_ways(at(100, 2, 4, 16), at(120, 1, 4, 4)));
  EXPECT_TRUE(both_ways(at(100, 2, 4, 16), at(119, 1, 4, 4)));
}

TEST(Overlap, SideBySideIsApart) {
  // Rows of 16 bytes: columns 0 to 8 and 8 to 16.
  EXPECT_FALSE(both_ways(at(100, 3, 8, 16), at(108, 3, 8, 16)));
  EXPECT_TRUE(both_ways(at(100, 3, 8, 16), at(107, 3, 8, 16)));
  EXPECT_TRUE(both_ways(at(100, 3, 9, 16), at(108, 3, 8, 16)));
  // The second one begins a row later, and before the first one's columns.
  EXPECT_FALSE(both_ways(at(108, 3, 8, 16), at(116, 3, 8, 16)));
  EXPECT_TRUE(both_ways(at(108, 3, 8, 16), at(117, 3, 8, 16)));
  EXPECT_FALSE(both_ways(at(104, 3, 4, 16), at(113, 3, 7, 16)));
}

TEST(Overlap, OtherDistancesAreNotFollowed) {
  EXPECT_TRUE(both_ways(at(100, 3, 4, 16), at(108, 1, 4, 4)));
}

TEST(Overlap, TheTextNamesBothAndWhatIsWritten) {
  std::vector<PlacedMatrix> matrices = {at(100, 1, 8, 8), at(104, 1, 8, 8)};
  matrices[0].name = "a";
  matrices[1].name = "b";
  EXPECT_TRUE(check_apart(matrices).is_ok());
  matrices[1].written = true;
  EXPECT_EQ(check_apart(matrices).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(check_apart(matrices).message(), "a and b overlap, and the call writes b");
  matrices[0].written = true;
  EXPECT_EQ(check_apart(matrices).message(), "a and b overlap, and the call writes both");
}

}  // namespace
}  // namespace tutti
