// Products of 8-bit floats that fp32 cannot hold, in which they are accumulated.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "support/check.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

struct Product {
  DataType dtype;
  int ranks;
  std::uint8_t first, middle, last;  // what rank 0, the ranks between, and the last rank have
  std::uint8_t result;
};

constexpr DataType kE4M3 = DataType::kFloat8E4M3, kE5M2 = DataType::kFloat8E5M2;
constexpr std::uint8_t kMost4 = 0x7e, kNan4 = 0x7f;                     // 448
constexpr std::uint8_t kMost5 = 0x7b, kInfinity5 = 0x7c, kNan5 = 0x7f;  // 57344
constexpr std::uint8_t kMinus = 0x80;

constexpr Product kProducts[] = {
    // fp32 holds 57344^8, and not 57344^9.
    {kE5M2, 8, kMost5, kMost5, kMost5, kMost5},
    {kE5M2, 8, kMost5 | kMinus, kMost5, kMost5, kMost5 | kMinus},
    {kE5M2, 9, kMost5, kMost5, kMost5, kInfinity5},
    {kE5M2, 9, kMost5 | kMinus, kMost5, kMost5, kInfinity5 | kMinus},
    {kE5M2, 9, kMost5, kMost5, 0, 0},
    {kE5M2, 10, kMost5, kMost5, 0, kNan5},
    {kE5M2, 3, kInfinity5, kMost5, kMost5, kInfinity5},
    // Likewise 448^14, and not 448^15.
    {kE4M3, 14, kMost4, kMost4, kMost4, kMost4},
    {kE4M3, 15, kMost4 | kMinus, kMost4, kMost4, kMost4 | kMinus},
    {kE4M3, 16, kMost4, kMost4, 0, kNan4},
};

// On every row that takes them. As many elements as end in the middle of a vector.
int expect(const Product& product, std::vector<Communicator>& groups) {
  int rows = 0;
  for (const Algorithm& row : rows_of(Collective::kAllReduce)) {
    if (row.host == nullptr || !row.takes(product.dtype, OpKind::kProd) ||
        row.max_ranks_host < product.ranks)
      continue;
    ++rows;
    on_all_ranks(product.ranks, [&](int rank) {
      const std::uint8_t mine = rank == 0                  ? product.first
                                : rank < product.ranks - 1 ? product.middle
                                                           : product.last;
      std::vector<std::uint8_t> values(1027, mine);
      require_ok(
          all_reduce(groups[static_cast<std::size_t>(rank)], {.input = values.data(),
                                                              .output = values.data(),
                                                              .count = values.size(),
                                                              .dtype = product.dtype,
                                                              .op = ReduceOp::prod(),
                                                              .options = {.algorithm = row.id}}));
      const std::vector<std::uint8_t> expected(values.size(), product.result);
      EXPECT_TRUE(values == expected)
          << row.id << ", " << product.ranks << " ranks of " << to_string(product.dtype) << ": "
          << +values.front() << ", not " << +product.result;
    });
  }
  return rows;
}

TEST(Overflow, OfProductsIsInfiniteWhereTheTypeHasAnInfinity) {
  std::vector<Communicator> groups;
  for (const Product& product : kProducts) {
    if (groups.size() != static_cast<std::size_t>(product.ranks)) {
      groups.clear();
      groups = groups_of(product.ranks);
    }
    EXPECT_GT(expect(product, groups), 2);
  }
}

}  // namespace
}  // namespace tutti::test
