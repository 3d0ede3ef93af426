// What is called a right product, and what a wrong one, in each type.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "bench/overlap/operands.hpp"
#include "plain_memory.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti::cli {
namespace {

float as_tf32(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= ~std::uint32_t{0x1fff};
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
float load(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof value, sizeof value);
  return to_float(value);
}

// One rank's matrices, multiplied in fp32 as a library would do it.
template <class T>
class Product {
 public:
  explicit Product(const Operands::Setting& setting)
      : setting_(setting),
        buffers_{Bytes(m() * k() * sizeof(T)), Bytes(k() * n() * sizeof(T)),
                 Bytes(m() * n() * sizeof(T)), Bytes(setting.part_bytes),
                 Bytes(setting.part_bytes * static_cast<std::size_t>(setting.ranks))},
        operands_(memory_, setting,
                  {.a = setting.dependent ? buffers_[4].data() : buffers_[0].data(),
                   .b = buffers_[1].data(),
                   .c = buffers_[2].data(),
                   .part = buffers_[3].data(),
                   .gathered = buffers_[4].data()}) {}

  Operands& operands() { return operands_; }

  // C = A x B, where B is read `shift` elements further on.
  void multiply(std::size_t shift = 0) {
    const Operands::Places& places = operands_.places();
    for (std::size_t row = 0; row < m(); ++row) {
      for (std::size_t column = 0; column < n(); ++column) {
        float sum = 0;
        for (std::size_t i = 0; i < k(); ++i) {
          const std::size_t from = (i * n() + column + shift) % (k() * n());
          sum += factor(load<T>(places.a, row * k() + i)) * factor(load<T>(places.b, from));
        }
        const T rounded = from_float<T>(sum);
        std::memcpy(places.c + (row * n() + column) * sizeof(T), &rounded, sizeof rounded);
      }
    }
  }

  std::uint64_t wrong(bool flip = false) {
    const auto found = operands_.check_product(flip);
    EXPECT_TRUE(found.is_ok());
    return found->count;
  }

 private:
  std::size_t m() const { return setting_.matmul.m; }
  std::size_t n() const { return setting_.matmul.n; }
  std::size_t k() const { return setting_.matmul.k; }
  float factor(float value) const { return setting_.matmul.tf32 ? as_tf32(value) : value; }

  Operands::Setting setting_;
  PlainMemory memory_;
  Bytes buffers_[5];
  Operands operands_;
};

Operands::Setting setting_of(DataType dtype, bool tf32 = false) {
  return {.matmul = {.m = 33, .n = 47, .k = 501, .dtype = dtype, .tf32 = tf32},
          .rank = 1,
          .ranks = 3,
          .part_bytes = 4096};
}

template <class T>
void expect_told_apart(const Operands::Setting& setting) {
  Product<T> product(setting);
  ASSERT_TRUE(product.operands().fill(0).is_ok());
  product.multiply();
  EXPECT_EQ(product.wrong(), 0u);
  EXPECT_EQ(product.wrong(true), 1u);  // a sign
  product.multiply(1);
  EXPECT_GT(product.wrong(), 240u);  // nearly every element that is looked at
  product.multiply();
  ASSERT_TRUE(product.operands().fill(1).is_ok());
  EXPECT_GT(product.wrong(), 240u);  // of older numbers
}

TEST(OverlapOperands, ProductsOfFloats) {
  expect_told_apart<float>(setting_of(DataType::kFloat32));
}
TEST(OverlapOperands, ProductsOfTf32) {
  expect_told_apart<float>(setting_of(DataType::kFloat32, true));
}
TEST(OverlapOperands, ProductsOfHalves) { expect_told_apart<Half>(setting_of(DataType::kFloat16)); }
TEST(OverlapOperands, ProductsOfBfloat16) {
  expect_told_apart<Bfloat16>(setting_of(DataType::kBfloat16));
}

// Plain TF32 is not what was asked for where it was not asked for.
TEST(OverlapOperands, LostBitsAreSeen) {
  Product<float> product(setting_of(DataType::kFloat32, true));
  ASSERT_TRUE(product.operands().fill(0).is_ok());
  product.multiply();
  Product<float> reference(setting_of(DataType::kFloat32));
  ASSERT_TRUE(reference.operands().fill(0).is_ok());
  std::memcpy(reference.operands().places().c, product.operands().places().c,
              reference.operands().product_bytes());
  EXPECT_GT(reference.wrong(), 200u);
}

TEST(OverlapOperands, WhatIsGatheredIsAWhereTheMatmulDepends) {
  Operands::Setting setting = setting_of(DataType::kFloat16);
  setting.dependent = true;
  setting.part_bytes = setting.matmul.m / 3 * setting.matmul.k * 2;
  Product<Half> product(setting);
  ASSERT_TRUE(product.operands().fill(0).is_ok());
  product.multiply();
  EXPECT_EQ(product.wrong(), 0u);
  EXPECT_EQ(product.operands().check_gathered(false)->count, 0u);
  std::byte* const second_rank = product.operands().places().gathered + setting.part_bytes;
  const std::byte* const mine = product.operands().places().part;
  EXPECT_EQ(std::memcmp(second_rank, mine, setting.part_bytes), 0);
  second_rank[6] ^= std::byte{4};
  const auto found = product.operands().check_gathered(false);
  EXPECT_EQ(found->count, 1u);
  EXPECT_EQ(found->first, setting.part_bytes / 2 + 3);
}

// Longer than what is looked at at once.
TEST(OverlapOperands, GatheredToTheBit) {
  Operands::Setting setting = setting_of(DataType::kFloat32);
  setting.part_bytes = 70 * Numbers::kPeriod * sizeof(float) + 4;
  Product<float> product(setting);
  Operands& operands = product.operands();
  ASSERT_TRUE(operands.fill(3).is_ok());
  EXPECT_GT(operands.check_gathered(false)->count, 0u);  // nothing was gathered yet
  for (int rank = 0; rank < setting.ranks; ++rank) {
    Operands::Setting theirs = setting;
    theirs.rank = rank;
    Product<float> peer(theirs);
    ASSERT_TRUE(peer.operands().fill(3).is_ok());
    std::memcpy(operands.places().gathered + static_cast<std::size_t>(rank) * setting.part_bytes,
                peer.operands().places().part, setting.part_bytes);
  }
  EXPECT_EQ(operands.check_gathered(false)->count, 0u);
  EXPECT_EQ(operands.check_gathered(true)->count, 1u);
  operands.places().gathered[operands.gathered_bytes() - 1] ^= std::byte{1};
  EXPECT_EQ(operands.check_gathered(false)->first, operands.gathered_bytes() / 4 - 1);
}

}  // namespace
}  // namespace tutti::cli
