// What checks matmuls finds wrong elements, and no others.
#include <gtest/gtest.h>

#include <cstring>

#include "bench/matmul/reference.hpp"
#include "bench/matmul/sets.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti::cli {
namespace {

struct ReferenceCase {
  DataType dtype;
  MatrixLayout layout;
  bool bias;
};
constexpr ReferenceCase kReferenceCases[] = {
    {DataType::kFloat32, MatrixLayout::kRowMajor, false},
    {DataType::kBfloat16, MatrixLayout::kColumnMajor, true},
    {DataType::kFloat16, MatrixLayout::kRowMajor, true}};
constexpr MatmulExtents kSampledExtents{.m = 37, .n = 300, .k = 131};

void put(DataType dtype, std::byte* to, float value) {
  if (dtype == DataType::kFloat32) std::memcpy(to, &value, sizeof value);
  if (dtype == DataType::kBfloat16) {
    const auto narrow = from_float<Bfloat16>(value);
    std::memcpy(to, &narrow, sizeof narrow);
  }
  if (dtype == DataType::kFloat16) {
    const auto narrow = from_float<Half>(value);
    std::memcpy(to, &narrow, sizeof narrow);
  }
}

class SampledProduct {
 public:
  explicit SampledProduct(const ReferenceCase& of)
      : case_(of), a_(of.dtype, 10), b_(of.dtype, 11), bias_(of.dtype, 12) {
    const auto& [m, n, k] = kSampledExtents;
    c_.resize(m * n * size_of(of.dtype));
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) set(i, j, sum(i, j));
    }
  }

  // In fp32, in the order of k.
  float sum(std::size_t i, std::size_t j) const {
    const auto& [m, n, k] = kSampledExtents;
    float sum = 0;
    for (std::size_t l = 0; l < k; ++l) {
      const bool by_row = case_.layout == MatrixLayout::kRowMajor;
      sum += static_cast<float>(a_[i * k + l]) *
             static_cast<float>(b_[by_row ? l * n + j : j * k + l]);
    }
    return case_.bias ? sum + static_cast<float>(bias_[j]) : sum;
  }
  void set(std::size_t i, std::size_t j, float value) {
    put(case_.dtype, &c_[(i * kSampledExtents.n + j) * size_of(case_.dtype)], value);
  }
  // In two parts, as large matrices are read.
  Mismatches check() const {
    const MatmulReference reference({.extents = kSampledExtents,
                                     .dtype = case_.dtype,
                                     .layout = case_.layout,
                                     .a = a_,
                                     .b = b_,
                                     .bias = case_.bias ? &bias_ : nullptr});
    const std::size_t half = 20 * kSampledExtents.n * size_of(case_.dtype);
    const Mismatches upper = reference.check(0, ByteView(c_).first(half));
    Mismatches lower = reference.check(20, ByteView(c_).subspan(half));
    if (upper.count > 0) lower.first = upper.first;
    lower.count += upper.count;
    return lower;
  }

 private:
  ReferenceCase case_;
  Numbers a_, b_, bias_;
  Bytes c_;
};

TEST(MatmulReference, FindsNothingInASumThatIsRight) {
  for (const ReferenceCase& each : kReferenceCases)
    EXPECT_EQ(SampledProduct(each).check().count, 0u);
}

TEST(MatmulReference, FindsAnElementOfWhichASummandIsMissing) {
  for (const ReferenceCase& each : kReferenceCases) {
    SampledProduct product(each);
    const std::size_t row = kSampledExtents.m - 1, column = kSampledExtents.n - 1;
    product.set(row, column, product.sum(row, column) + 0.4f);
    const Mismatches found = product.check();
    EXPECT_EQ(found.first, row * kSampledExtents.n + column);
    EXPECT_GE(found.count, 1u);
  }
}

TEST(MatmulReference, FindsAWrongRowColumnOrTile) {
  const SampledProduct right(kReferenceCases[0]);
  const auto wrong = [&right](auto hits) {
    SampledProduct product = right;
    for (std::size_t i = 0; i < kSampledExtents.m; ++i) {
      for (std::size_t j = 0; j < kSampledExtents.n; ++j) {
        if (hits(i, j)) product.set(i, j, 0);
      }
    }
    return product.check().count;
  };
  for (std::size_t row = 0; row < kSampledExtents.m; ++row) {
    EXPECT_GT(wrong([row](std::size_t i, std::size_t) { return i == row; }), 0u) << row;
  }
  for (std::size_t column = 0; column < kSampledExtents.n; column += 13) {
    EXPECT_GT(wrong([column](std::size_t, std::size_t j) { return j == column; }), 0u) << column;
  }
  EXPECT_GT(wrong([](std::size_t i, std::size_t j) { return i / 16 == 1 && j / 16 == 7; }), 0u);
}

TEST(MatmulSets, AreAsManyAsTheCacheDoesNotHold) {
  class Rotating final : public MatmulDevice {
   public:
    Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) override {
      return std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
    }
    Status copy(void* to, const void* from, std::size_t bytes) override {
      std::memcpy(to, from, bytes);
      return Status::ok();
    }
    Status fill(std::byte* at, std::uint8_t value, std::size_t bytes) override {
      std::memset(at, value, bytes);
      return Status::ok();
    }
    std::size_t rotated_bytes() const override { return 10 * 3 * 16 * 16 * sizeof(float) - 1; }
    Status prepare(MatmulArm&, std::size_t) override { return Status::ok(); }
    Status sample(std::span<MatmulArm* const>, int) override { return Status::ok(); }
  } device;
  auto sets = MatmulSets::make(device, {.extents = {16, 16, 16}});
  ASSERT_TRUE(sets.is_ok()) << sets.status().to_string();
  EXPECT_EQ(sets->size(), 10u);
  EXPECT_EQ(sets->a(9) - sets->a(0), 9 * 1024);
  EXPECT_EQ(std::memcmp(sets->b(0, 0), sets->b(9, 0), 1024), 0);
  EXPECT_NE(std::memcmp(sets->a(0), sets->b(0, 0), 1024), 0);
  ASSERT_TRUE(sets->poison().is_ok());
  EXPECT_GT(sets->check(9)->count, 200u);  // of 256 elements
}

}  // namespace
}  // namespace tutti::cli
