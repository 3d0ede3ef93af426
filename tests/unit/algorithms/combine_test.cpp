// Sums in host memory have the bits of rule 4, whatever the type, the alignment and the
// place of the result.
#include "algorithms/combine.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "algorithms/reduction.hpp"
#include "base/bytes.hpp"
#include "support/compare.hpp"
#include "support/inputs.hpp"
#include "support/reference.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti::test {
namespace {

constexpr OpKind kOps[] = {OpKind::kSum, OpKind::kProd, OpKind::kMin,
                           OpKind::kMax, OpKind::kAvg,  OpKind::kPreMulSum};

struct Case {
  DataType dtype;
  OpKind op;
  int sources;
  std::size_t count;
  std::size_t shift;  // of all buffers, in bytes, from what elements are aligned to
  int in_place;       // which source the result replaces; -1: none
};

void expect_reference(const Case& c) {
  const std::size_t bytes = c.count * size_of(c.dtype);
  const InputSpec spec{c.dtype, c.op, InputKind::kSpecial, c.sources, 7};
  Reference reference(c.dtype, c.op, c.count);
  std::vector<Bytes> inputs;
  std::vector<Scalar> scalars;
  for (int s = 0; s < c.sources; ++s) {
    const Bytes input = make_input(spec, s, c.count);
    scalars.push_back(scalar_of(spec, s));
    reference.add(input, scalars.back());
    inputs.emplace_back(c.shift);
    inputs.back().insert(inputs.back().end(), input.begin(), input.end());
  }
  std::vector<const std::byte*> sources;
  for (const Bytes& input : inputs) sources.push_back(input.data() + c.shift);
  Bytes apart(c.shift + bytes);
  std::byte* const into =
      (c.in_place < 0 ? apart : inputs[static_cast<std::size_t>(c.in_place)]).data() + c.shift;
  combine({.dtype = c.dtype,
           .op = c.op == OpKind::kAvg ? OpKind::kSum : c.op,  // divided all the same
           .count = c.count,
           .sources = sources,
           .scalars = scalars,
           .divisor = c.op == OpKind::kAvg ? c.sources : 1,
           .into = into});
  EXPECT_EQ(difference(c.dtype, reference.result(), {into, bytes}), "")
      << to_string(c.dtype) << " " << to_string(c.op) << " of " << c.sources << " x " << c.count;
}

TEST(CombineTest, HasTheBitsOfTheReference) {
  for (const DataType dtype : kAllDataTypes) {
    for (const OpKind op : kOps) {
      expect_reference({dtype, op, 1, 300, 0, -1});
      expect_reference({dtype, op, 5, 513, 0, -1});
    }
  }
}

TEST(CombineTest, TakesAnyAlignmentAndReplacesASource) {
  for (const DataType dtype : {DataType::kFloat64, DataType::kBfloat16, DataType::kInt8}) {
    for (const std::size_t count : {0, 1, 255, 256, 257}) {
      expect_reference({dtype, OpKind::kSum, 3, count, 1, -1});
      expect_reference({dtype, OpKind::kAvg, 2, count, 1, 0});
      expect_reference({dtype, OpKind::kSum, 2, count, 0, 1});
    }
  }
}

// Every fp16 and bf16 value with some others, every pair of fp8 values: as one element at a time.
template <class T>
std::pair<std::vector<T>, std::vector<T>> pairs() {
  constexpr unsigned kValues = 1U << (8 * sizeof(T));
  constexpr unsigned kOthers = sizeof(T) == 1 ? kValues : 16;
  std::pair<std::vector<T>, std::vector<T>> made;
  for (unsigned k = 0; k < kOthers; ++k) {
    for (unsigned value = 0; value < kValues; ++value) {
      const unsigned other = sizeof(T) == 1 ? k : value * (2 * k + 1) + k * 0x9e37U;
      made.first.push_back({static_cast<decltype(T::bits)>(value)});
      made.second.push_back({static_cast<decltype(T::bits)>(other)});
    }
  }
  return made;
}

template <class T>
std::vector<T> one_by_one(const std::vector<T>& a, const std::vector<T>& b, OpKind op,
                          int divisor) {
  std::vector<T> results;
  results.reserve(a.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    const float x = portable::to_float(a[k]), y = portable::to_float(b[k]);
    const float result = op == OpKind::kSum    ? x + y
                         : op == OpKind::kProd ? x * y
                         : op == OpKind::kMin  ? minimum(x, y)
                                               : maximum(x, y);
    results.push_back(portable::from_float<T>(result / static_cast<float>(divisor)));
  }
  return results;
}

template <class T>
void expect_bits(CombineWith instructions) {
  const auto [a, b] = pairs<T>();
  const std::byte* const sources[] = {reinterpret_cast<const std::byte*>(a.data()),
                                      reinterpret_cast<const std::byte*>(b.data())};
  for (const OpKind op : {OpKind::kSum, OpKind::kProd, OpKind::kMin, OpKind::kMax}) {
    for (const int divisor : {1, 3}) {
      if (divisor > 1 && op != OpKind::kSum) continue;
      std::vector<T> results(a.size());
      combine({.dtype = DataTypeOf<T>::value,
               .op = op,
               .count = a.size(),
               .sources = sources,
               .divisor = divisor,
               .into = reinterpret_cast<std::byte*>(results.data())},
              instructions);
      EXPECT_TRUE(results == one_by_one(a, b, op, divisor))
          << to_string(DataTypeOf<T>::value) << " " << to_string(op) << " / " << divisor << " with "
          << static_cast<int>(instructions);
    }
  }
}

TEST(CombineTest, HasTheSameBitsWithAllInstructions) {
  for (const CombineWith instructions :
       {CombineWith::kPortable, CombineWith::kAvx2, CombineWith::kAvx512}) {
    if (!can_combine_with(instructions)) continue;
    expect_bits<Half>(instructions);
    expect_bits<Bfloat16>(instructions);
    expect_bits<Float8E4M3>(instructions);
    expect_bits<Float8E5M2>(instructions);
  }
  EXPECT_TRUE(can_combine_with(fastest_to_combine_with()));
}

}  // namespace
}  // namespace tutti::test
