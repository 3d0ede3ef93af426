// Sums in host memory have the bits of rule 4, whatever the type, the alignment and the
// place of the result.
#include "algorithms/combine.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "base/bytes.hpp"
#include "support/compare.hpp"
#include "support/inputs.hpp"
#include "support/reference.hpp"

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
  std::vector<double> scalars;
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

}  // namespace
}  // namespace tutti::test
