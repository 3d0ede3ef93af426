// The inputs' promise: whatever the order of ranks, and even if every partial result is rounded to
// the element type, the reduction gives the expected bits. The library's conversions, which the
// inputs do not use, are the judge.
#include "bench/inputs.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/convert.hpp"

namespace tutti {

static void PrintTo(DataType dtype, std::ostream* out) { *out << to_string(dtype); }

}  // namespace tutti

namespace tutti::cli {
namespace {

double combine(OpKind op, double a, double b) {
  switch (op) {
    case OpKind::kProd:
      return a * b;
    case OpKind::kMin:
      return std::min(a, b);
    case OpKind::kMax:
      return std::max(a, b);
    default:
      return a + b;
  }
}

// `value` after a trip through the element type; integers wrap as the type does.
double rounded(DataType dtype, double value) {
  std::byte element[8] = {};
  if (is_floating(dtype)) {
    store_element(dtype, element, value);
  } else {
    const auto whole = static_cast<std::int64_t>(value);
    std::memcpy(element, &whole, sizeof whole);
  }
  return load_element(dtype, element);
}

struct Case {
  DataType dtype;
  OpKind op;
  int ranks;
};

// Ranks in the order first, first + 1, ..., around.
double reduce_from(const Case& c, int first, const ExactInputs& inputs,
                   const std::vector<double>& values) {
  double result = 0;
  for (int k = 0; k < c.ranks; ++k) {
    const int rank = (first + k) % c.ranks;
    const double mine =
        values[static_cast<std::size_t>(rank)] * inputs.op(rank).scalar.to<double>();
    result = k == 0 ? mine : rounded(c.dtype, combine(c.op, result, mine));
  }
  return c.op == OpKind::kAvg ? result / c.ranks : result;
}

// Averages over 9, 11, 13 or 15 ranks need more room than two bits of mantissa have; they are exact
// where the sum is rounded once.
bool has_room(const Case& c) {
  return !(c.dtype == DataType::kFloat8E5M2 && c.op == OpKind::kAvg && c.ranks > 8 &&
           c.ranks % 2 == 1);
}

void expect_exact(const Case& c) {
  const ExactInputs inputs({.dtype = c.dtype, .op = c.op, .ranks = c.ranks});
  const std::size_t element = size_of(c.dtype);
  const Bytes expected = inputs.expected(3);
  std::vector<Bytes> given;
  for (int rank = 0; rank < c.ranks; ++rank) given.push_back(inputs.input(rank, 3));
  for (std::size_t i = 0; i < ExactInputs::kPeriod; i += 37) {
    std::vector<double> values;
    for (const Bytes& input : given) {
      values.push_back(load_element(c.dtype, &input[i * element]));
    }
    const double want = load_element(c.dtype, &expected[i * element]);
    const int orders = has_room(c) ? c.ranks : 0;
    for (int first = 0; first < orders; ++first) {
      ASSERT_EQ(rounded(c.dtype, reduce_from(c, first, inputs, values)), want)
          << fmt::format("element {}, from rank {}", i, first);
    }
  }
}

class EveryType : public testing::TestWithParam<DataType> {};

TEST_P(EveryType, IsExactInAnyOrderForEveryOp) {
  for (const OpKind op : kAllOps) {
    if (op == OpKind::kProd && !is_floating(GetParam())) continue;  // beyond what a double holds
    for (const int ranks : {1, 2, 3, 7, 8, 15, 16}) {
      SCOPED_TRACE(fmt::format("{} {} ranks", to_string(op), ranks));
      expect_exact({GetParam(), op, ranks});
    }
  }
}

TEST_P(EveryType, ExpectsNoPoison) {
  const std::size_t element = size_of(GetParam());
  const Bytes poison(element, std::byte{kPoison});
  for (const OpKind op : kAllOps) {
    for (const int ranks : {1, 2, 5, 16}) {
      const Bytes expected =
          ExactInputs({.dtype = GetParam(), .op = op, .ranks = ranks}).expected(0);
      for (std::size_t at = 0; at < expected.size(); at += element) {
        ASSERT_NE(std::memcmp(&expected[at], poison.data(), element), 0)
            << to_string(op) << " of " << ranks << " ranks, byte " << at;
      }
    }
  }
}

TEST_P(EveryType, ChainsStayFinite) {
  for (const OpKind op : kAllOps) {
    for (const int ranks : {1, 2, 3, 8, 16}) {
      const ExactInputs inputs({.dtype = GetParam(), .op = op, .ranks = ranks, .applications = 10});
      const Bytes expected = inputs.expected(0);
      for (std::size_t i = 0; i < ExactInputs::kPeriod; ++i) {
        ASSERT_TRUE(std::isfinite(load_element(GetParam(), &expected[i * size_of(GetParam())])));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EveryType, testing::ValuesIn(kAllDataTypes),
                         [](const auto& parameter) {
                           return std::string(to_string(parameter.param));
                         });

TEST(ExactInputs, WrapIntegerProductsAsTheTypeDoes) {
  const ExactInputs inputs({.dtype = DataType::kUint8, .op = OpKind::kProd, .ranks = 5});
  const Bytes expected = inputs.expected(1);
  std::vector<unsigned> products(ExactInputs::kPeriod, 1);
  for (int rank = 0; rank < 5; ++rank) {
    const Bytes input = inputs.input(rank, 1);
    for (std::size_t i = 0; i < input.size(); ++i) products[i] *= static_cast<unsigned>(input[i]);
  }
  for (std::size_t i = 0; i < products.size(); ++i) {
    ASSERT_EQ(static_cast<unsigned>(expected[i]), products[i] % 256);
  }
}

TEST(ExactInputs, ChainedSumsGrowByTheNumberOfRanks) {
  const ExactInputs once({.dtype = DataType::kInt64, .ranks = 3});
  const ExactInputs thrice({.dtype = DataType::kInt64, .ranks = 3, .applications = 3});
  const Bytes first = once.expected(0), third = thrice.expected(0);
  for (std::size_t at = 0; at < first.size(); at += 8) {
    ASSERT_EQ(9 * load_element(DataType::kInt64, &first[at]),
              load_element(DataType::kInt64, &third[at]));
  }
}

TEST(ExactInputs, DifferFromRankToRankAndIterationToIteration) {
  const ExactInputs inputs({.dtype = DataType::kFloat32, .ranks = 4});
  const std::set<Bytes> different = {inputs.input(0, 0), inputs.input(1, 0), inputs.input(0, 1),
                                     inputs.input(3, 1)};
  EXPECT_EQ(different.size(), 4u);
  EXPECT_NE(inputs.expected(0), inputs.expected(1));
}

TEST(CountMismatches, FindsEveryFlippedBit) {
  const Bytes period = ExactInputs({.dtype = DataType::kFloat32}).input(0, 0);
  Bytes data(3 * period.size() - 8);
  tile(data, period);
  EXPECT_EQ(count_mismatches(data, period, 4).count, 0u);
  data[period.size() + 5] ^= std::byte{1};
  data.back() ^= std::byte{128};
  const Mismatches found = count_mismatches(data, period, 4);
  EXPECT_EQ(found.count, 2u);
  EXPECT_EQ(found.first, period.size() / 4 + 1);
}

TEST(CountMismatches, SeesAShiftByAPowerOfTwo) {
  const Bytes period = ExactInputs({.dtype = DataType::kInt32}).input(0, 0);
  Bytes data(8 * 65536);
  tile(data, period);
  const ByteView shifted = ByteView(data).subspan(65536);
  EXPECT_GT(count_mismatches(shifted, period, 4).count, shifted.size() / 4 / 2);
}

}  // namespace
}  // namespace tutti::cli
