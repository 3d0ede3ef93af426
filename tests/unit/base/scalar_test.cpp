// The conversions against an independent slow reference: the nearest of all values of the type,
// found by search in double, where everything here is exact.
#include "tutti/device/scalar.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tutti {
namespace {

// What a type is, said apart from the code under test.
struct Shape {
  int exponent_bits, mantissa_bits;
  unsigned largest;   // encoding of the largest finite value
  unsigned infinity;  // encoding of what an infinity becomes
  bool saturates;     // finite overflow becomes `largest`, else `infinity`
};

template <class T>
constexpr Shape kShape{};
template <>
constexpr Shape kShape<Half>{5, 10, 0x7bff, 0x7c00, false};
template <>
constexpr Shape kShape<Bfloat16>{8, 7, 0x7f7f, 0x7f80, false};
template <>
constexpr Shape kShape<Float8E4M3>{4, 3, 0x7e, 0x7e, true};
template <>
constexpr Shape kShape<Float8E5M2>{5, 2, 0x7b, 0x7c, true};

template <class T>
class Scalar : public testing::Test {
 protected:
  static constexpr Shape kS = kShape<T>;
  static constexpr unsigned kSign = 1u << (kS.exponent_bits + kS.mantissa_bits);

  static T of(unsigned bits) { return T{static_cast<decltype(T::bits)>(bits)}; }

  // Value of a finite, positive encoding.
  static double value(unsigned bits) {
    const int bias = (1 << (kS.exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> kS.mantissa_bits);
    const int mantissa = static_cast<int>(bits & ((1u << kS.mantissa_bits) - 1));
    const int implicit = exponent == 0 ? 0 : 1 << kS.mantissa_bits;
    return std::ldexp(mantissa + implicit, std::max(exponent, 1) - bias - kS.mantissa_bits);
  }

  Scalar() {
    for (unsigned bits = 0; bits <= kS.largest; ++bits) values_.push_back(value(bits));
  }

  unsigned nearest(float x) const {
    const unsigned sign = std::signbit(x) ? kSign : 0;
    const double magnitude = std::fabs(static_cast<double>(x));
    if (std::isinf(x)) return sign | kS.infinity;
    const double past_largest = 2 * values_.back() - values_[kS.largest - 1];
    const double midpoint = (values_.back() + past_largest) / 2;
    if (kS.saturates && magnitude > values_.back()) return sign | kS.largest;
    if (magnitude >= midpoint) return sign | kS.infinity;
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
    const auto upper = static_cast<unsigned>(above - values_.begin());
    if (upper > kS.largest) return sign | kS.largest;
    if (upper == 0) return sign;
    const double to_upper = values_[upper] - magnitude;
    const double to_lower = magnitude - values_[upper - 1];
    if (to_upper != to_lower) return sign | (to_upper < to_lower ? upper : upper - 1);
    return sign | (upper % 2 == 0 ? upper : upper - 1);
  }

  void expect_nearest(float x) {
    const T got = from_float<T>(x);
    if (got.bits != nearest(x) && failures_++ < 10) {
      ADD_FAILURE() << x << " became " << std::hex << +got.bits << ", not " << nearest(x);
    }
  }

  std::vector<double> values_;
  int failures_ = 0;
};

using Narrow = testing::Types<Half, Bfloat16, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(Scalar, Narrow);

TYPED_TEST(Scalar, EveryFiniteValueWidensExactlyAndComesBack) {
  for (unsigned bits = 0; bits <= this->kS.largest; ++bits) {
    for (const unsigned sign : {0u, this->kSign}) {
      const float wide = to_float(this->of(bits | sign));
      ASSERT_EQ(std::fabs(wide), this->values_[bits]) << std::hex << (bits | sign);
      ASSERT_EQ(std::signbit(wide), sign != 0) << std::hex << (bits | sign);
      ASSERT_EQ(from_float<TypeParam>(wide).bits, bits | sign);
    }
  }
}

TYPED_TEST(Scalar, EveryOtherEncodingIsInfinityOrNan) {
  for (unsigned bits = this->kS.largest + 1; bits < this->kSign; ++bits) {
    for (const unsigned sign : {0u, this->kSign}) {
      const float wide = to_float(this->of(bits | sign));
      if (bits == this->kS.infinity) {
        ASSERT_TRUE(std::isinf(wide) && std::signbit(wide) == (sign != 0)) << std::hex << bits;
        ASSERT_EQ(from_float<TypeParam>(wide).bits, bits | sign);
      } else {
        ASSERT_TRUE(std::isnan(wide)) << std::hex << bits;
        ASSERT_TRUE(std::isnan(to_float(from_float<TypeParam>(wide)))) << std::hex << bits;
      }
    }
  }
}

TYPED_TEST(Scalar, AllTiesAndTheirNeighboursRoundToNearestEven) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (unsigned bits = 0; bits <= this->kS.largest; ++bits) {
    const double low = this->values_[bits];
    const double high =
        bits < this->kS.largest ? this->values_[bits + 1] : 2 * low - this->values_[bits - 1];
    for (const double middle : {low, (low + high) / 2}) {
      const float at = static_cast<float>(middle);
      if (static_cast<double>(at) != middle) continue;  // bf16's lowest are float's lowest
      for (const float x : {std::nextafter(at, -kInfinity), at, std::nextafter(at, kInfinity)}) {
        this->expect_nearest(x);
        this->expect_nearest(-x);
      }
    }
  }
}

TYPED_TEST(Scalar, MillionsOfRandomFloatsRoundToNearestEven) {
  std::mt19937 random(20);
  for (int i = 0; i < 2'000'000; ++i) {
    const float x = portable::float_of(static_cast<std::int32_t>(random()));
    if (!std::isnan(x)) this->expect_nearest(x);
  }
  // The same in the type's own range, where most random floats are not.
  const double decades = std::log2(this->values_.back()) + 2;
  std::uniform_real_distribution<double> exponent(std::log2(this->values_[1]) - 3, decades);
  for (int i = 0; i < 1'000'000; ++i) {
    const double magnitude = std::exp2(exponent(random));
    this->expect_nearest(static_cast<float>(i % 2 == 0 ? magnitude : -magnitude));
  }
}

TYPED_TEST(Scalar, ExtremesOverflowAndNan) {
  using Limits = std::numeric_limits<float>;
  for (const float x :
       {0.0f, Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity(), 65504.0f,
        65519.996f, 65520.0f, 448.0f, 464.0f, 465.0f, 57344.0f, 61440.0f, 3.3961776e38f}) {
    this->expect_nearest(x);
    this->expect_nearest(-x);
  }
  for (const std::int32_t nan : {0x7f800001, 0x7fc00000, 0x7fffffff}) {
    for (const std::int32_t sign : {0, INT32_MIN}) {
      const TypeParam narrowed = from_float<TypeParam>(portable::float_of(nan | sign));
      EXPECT_EQ(narrowed.bits, this->kSign - 1) << std::hex << nan;
    }
  }
}

TEST(ScalarExamples, OverflowAsTheTypesDefineIt) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float(from_float<Half>(1e6f)), kInfinity);
  EXPECT_EQ(to_float(from_float<Bfloat16>(3.4e38f)), kInfinity);
  EXPECT_EQ(to_float(from_float<Float8E4M3>(1e6f)), 448);
  EXPECT_EQ(to_float(from_float<Float8E4M3>(-kInfinity)), -448);
  EXPECT_EQ(to_float(from_float<Float8E5M2>(1e6f)), 57344);
  EXPECT_EQ(to_float(from_float<Float8E5M2>(-kInfinity)), -kInfinity);
}

TEST(ScalarExamples, WidenAndNarrowLeaveOtherTypesAlone) {
  EXPECT_EQ(narrow<std::int64_t>(widen(std::int64_t{INT64_MIN})), INT64_MIN);
  EXPECT_EQ(narrow<double>(widen(0.1)), 0.1);
  EXPECT_EQ(narrow<Half>(widen(Half{0x3555})).bits, 0x3555);
}

}  // namespace
}  // namespace tutti
