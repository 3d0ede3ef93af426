// How two elements become one, at the edges.
#include "algorithms/reduction.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "algorithms/instantiate.hpp"
#include "base/convert.hpp"
#include "support/compare.hpp"
#include "support/inputs.hpp"
#include "support/reference.hpp"

namespace tutti {
namespace {

TEST(ReductionTest, IntegersWrap) {
  EXPECT_EQ(wrapping_add<std::int8_t>(127, 1), -128);
  EXPECT_EQ(wrapping_add<std::int32_t>(std::numeric_limits<std::int32_t>::max(), 1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(wrapping_multiply<std::int8_t>(-128, -1), -128);
  EXPECT_EQ(wrapping_multiply<std::uint8_t>(16, 17), 16);
  EXPECT_EQ(wrapping_multiply<std::int64_t>(std::int64_t{1} << 62, 2),
            std::numeric_limits<std::int64_t>::min());
}

template <class T>
void expect_orders_zeros_and_keeps_nan() {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const T value : {T{1}, T{-1}, T{0}, std::numeric_limits<T>::infinity()}) {
    EXPECT_TRUE(std::isnan(minimum(value, nan)));
    EXPECT_TRUE(std::isnan(minimum(nan, value)));
    EXPECT_TRUE(std::isnan(maximum(value, nan)));
    EXPECT_TRUE(std::isnan(maximum(nan, value)));
  }
  for (const auto& [a, b] : {std::pair{T{0}, -T{0}}, std::pair{-T{0}, T{0}}}) {
    EXPECT_TRUE(std::signbit(minimum(a, b)));
    EXPECT_FALSE(std::signbit(maximum(a, b)));
  }
  EXPECT_EQ(minimum(T{-2}, T{3}), T{-2});
  EXPECT_EQ(maximum(T{-2}, T{3}), T{3});
}

TEST(ReductionTest, FloatsOrderZerosAndKeepNan) {
  expect_orders_zeros_and_keeps_nan<float>();
  expect_orders_zeros_and_keeps_nan<double>();
}

TEST(ReductionTest, MinimumIsOfTheElementsOwnSign) {
  EXPECT_EQ(minimum<std::int8_t>(-1, 1), -1);
  EXPECT_EQ(minimum<std::uint8_t>(255, 1), 1);
  EXPECT_EQ(maximum<std::int64_t>(-1, 1), 1);
  EXPECT_EQ(maximum<std::uint64_t>(~std::uint64_t{0}, 1), ~std::uint64_t{0});
}

// A team with a GPU's tiles and order of loads, over inputs in this process.
struct LoadsAhead {
  static constexpr bool kLoadsAhead = true;
};
struct SmallTiles {
  template <class T>
  static constexpr int tile_elements() {
    return static_cast<int>(16 / sizeof(T));
  }
  test::InputSpec spec;

  int ranks() const { return spec.ranks; }
  ScalarBits scalar_of(int rank) const {
    return accumulator_bits(spec.dtype, test::scalar_of(spec, rank));
  }
  void end_of_loads() const {}
  template <class T>
  Tile<T, tile_elements<T>()> load(const std::byte* from, LoadsAhead, TileAt at) const {
    Tile<T, tile_elements<T>()> tile;
    std::memcpy(&tile, from + at.first * sizeof(T), sizeof tile);
    return tile;
  }
};

// What comes of some tiles with the loads ahead is what should.
template <class Reduction>
void expect_reference(const test::InputSpec& spec) {
  using T = typename Reduction::Element;
  constexpr int kElements = SmallTiles::tile_elements<T>();
  constexpr std::size_t kCount = 40 * kElements;
  const SmallTiles team{spec};
  KernelArgs work{};
  work.ranks = spec.ranks;
  work.scaled_by_peers = spec.op == OpKind::kPreMulSum;
  work.divisor = spec.op == OpKind::kAvg ? spec.ranks : 1;
  const Scalars<Reduction, kMaxCudaRanks> scalars(team, work);

  test::Reference reference(spec.dtype, spec.op, kCount);
  std::vector<Bytes> inputs;
  Pointers<kMaxCudaRanks> from{};
  for (int r = 0; r < spec.ranks; ++r) {
    inputs.push_back(test::make_input(spec, r, kCount));
    from.at[r] = inputs.back().data();
    reference.add(inputs.back(), test::scalar_of(spec, r));
  }

  Bytes seen(kCount * sizeof(T));
  for (std::size_t first = 0; first < kCount; first += kElements) {
    const auto tile =
        reduce_tile<Reduction>(team, from, LoadsAhead{}, TileAt{first, kElements}, scalars);
    std::memcpy(seen.data() + first * sizeof(T), &tile, sizeof tile);
  }
  EXPECT_EQ(test::difference(spec.dtype, reference.result(), seen), "")
      << to_string(spec.dtype) << " " << to_string(spec.op) << ", " << spec.ranks << " ranks";
}

void expect_reference(DataType dtype, OpKind op, test::InputKind kind) {
  for (const int ranks : {1, 2, 3, 8}) {
    with_reduction(dtype, op, [&](auto reduction) {
      expect_reference<typename decltype(reduction)::Type>(
          test::InputSpec{dtype, op, kind, ranks, 1});
    });
  }
}

TEST(ReductionTest, TilesLoadedAheadGiveTheReference) {
  for (const DataType dtype : kAllDataTypes) {
    for (const OpKind op : kAllOps) {
      expect_reference(dtype, op, test::InputKind::kRandom);
      if (is_floating(dtype)) expect_reference(dtype, op, test::InputKind::kSpecial);
    }
  }
}

}  // namespace
}  // namespace tutti
