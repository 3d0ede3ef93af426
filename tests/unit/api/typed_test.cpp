// The functions of ranges: what they deduce, which sizes they refuse, and that each one calls the
// function of its name.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/check.hpp"
#include "support/run_ranks.hpp"
#include "tutti/device/scalar.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using Ints = std::vector<int>;
using Sizes = std::vector<std::size_t>;

constexpr int kThree = 3;

void require_equal(const Ints& actual, const Ints& expected) {
  require(actual == expected, fmt::format("{} instead of {}", testing::PrintToString(actual),
                                          testing::PrintToString(expected)));
}

// What `body` finds wrong on one of three ranks; empty: nothing.
std::string on_three(const std::function<void(Communicator&)>& body) {
  auto groups = groups_of(kThree);
  return run_ranks(RankKind::kThreads, kThree,
                   [&](int rank) { body(groups[static_cast<std::size_t>(rank)]); });
}

// `count` numbers from 100 * rank up.
Ints numbers(const Communicator& group, std::size_t count) {
  Ints made(count);
  std::iota(made.begin(), made.end(), 100 * group.rank());
  return made;
}

template <class T>
constexpr DataType kTypeOf = DataTypeOf<T>::value;

TEST(TypedTest, KnowsElementTypes) {
  static_assert(kTypeOf<double> == DataType::kFloat64 && kTypeOf<float> == DataType::kFloat32);
  static_assert(kTypeOf<Half> == DataType::kFloat16 && kTypeOf<__half> == DataType::kFloat16);
  static_assert(kTypeOf<Bfloat16> == DataType::kBfloat16);
  static_assert(kTypeOf<__nv_bfloat16> == DataType::kBfloat16);
  static_assert(kTypeOf<Float8E4M3> == DataType::kFloat8E4M3);
  static_assert(kTypeOf<__nv_fp8_e4m3> == DataType::kFloat8E4M3);
  static_assert(kTypeOf<Float8E5M2> == DataType::kFloat8E5M2);
  static_assert(kTypeOf<__nv_fp8_e5m2> == DataType::kFloat8E5M2);
  static_assert(kTypeOf<std::int8_t> == DataType::kInt8);
  static_assert(kTypeOf<std::uint8_t> == DataType::kUint8);
  static_assert(kTypeOf<std::int32_t> == DataType::kInt32);
  static_assert(kTypeOf<std::uint32_t> == DataType::kUint32);
  static_assert(kTypeOf<std::int64_t> == DataType::kInt64);
  static_assert(kTypeOf<std::uint64_t> == DataType::kUint64);
  static_assert(kTypeOf<long long> == DataType::kInt64);
  static_assert(kTypeOf<unsigned long long> == DataType::kUint64);
}

TEST(TypedTest, TakesRangesThatOutliveTheCall) {
  static_assert(InputBuffer<std::span<const float>> && InputBuffer<const std::vector<float>&>);
  static_assert(OutputBuffer<std::span<float>> && OutputBuffer<std::array<float, 4>&>);
  static_assert(OutputBuffer<float(&)[4]>);
  static_assert(!InputBuffer<std::vector<float>>, "gone before a stream has read it");
  static_assert(!InputBuffer<std::vector<bool>&> && !InputBuffer<std::vector<char>&>);
  static_assert(!OutputBuffer<const std::vector<float>&> && !OutputBuffer<std::span<const float>>);
  static_assert(!OutputFor<std::span<float>, std::span<const double>>);
}

TEST(TypedTest, Reduces) {
  EXPECT_EQ(on_three([](Communicator& group) {
              const Ints input = numbers(group, 2);
              Ints output(2);
              require_ok(all_reduce(group, input, output));
              require_equal(output, {300, 303});
              require_ok(all_reduce(group, std::span(output), {.op = ReduceOp::max()}));
              require_equal(output, {300, 303});
              float array[1] = {static_cast<float>(group.rank())};
              require_ok(all_reduce(group, array, {.op = ReduceOp::avg()}));
              require(array[0] == 1, "the average of 0, 1 and 2");
            }),
            "");
}

TEST(TypedTest, Gathers) {
  EXPECT_EQ(on_three([](Communicator& group) {
              const Ints expected = {0, 1, 100, 101, 200, 201};
              const Ints input = numbers(group, 2);
              Ints output(6), in_place(6), at_root(group.rank() == 1 ? 6 : 0);
              require_ok(all_gather(group, input, output));
              require_equal(output, expected);
              std::copy(input.begin(), input.end(), in_place.begin() + 2 * group.rank());
              require_ok(all_gather(group, in_place));
              require_equal(in_place, expected);
              require_ok(gather(group, input, at_root, 1));
              if (group.rank() == 1) require_equal(at_root, expected);
              Ints uneven(3);
              const Sizes counts = {0, 2, 1};
              const auto own =
                  std::span(input).first(counts[static_cast<std::size_t>(group.rank())]);
              require_ok(all_gather_v(group, own, uneven, counts));
              require_equal(uneven, {100, 101, 200});
            }),
            "");
}

TEST(TypedTest, ReducesAndScatters) {
  EXPECT_EQ(on_three([](Communicator& group) {
              const Ints expected = {300 + 6 * group.rank(), 303 + 6 * group.rank()};
              Ints input = numbers(group, 6), output(2);
              require_ok(reduce_scatter(group, input, output));
              require_equal(output, expected);
              Ints uneven(static_cast<std::size_t>(group.rank()));
              require_ok(reduce_scatter_v(group, std::span(input).first(3), uneven, Sizes{0, 1, 2},
                                          {.op = ReduceOp::min()}));
              require_equal(uneven, group.rank() == 0   ? Ints{}
                                    : group.rank() == 1 ? Ints{0}
                                                        : Ints{1, 2});
              require_ok(reduce_scatter(group, input));
              const auto own = input.begin() + 2 * group.rank();
              require_equal({own, own + 2}, expected);
            }),
            "");
}

TEST(TypedTest, ExchangesAll) {
  EXPECT_EQ(
      on_three([](Communicator& group) {
        const int rank = group.rank();
        const Ints input = numbers(group, 3);
        Ints output(3);
        require_ok(all_to_all(group, input, output));
        require_equal(output, {rank, 100 + rank, 200 + rank});
        // To each rank as many elements as its number.
        const Sizes recv(kThree, static_cast<std::size_t>(rank)), send = {0, 1, 2};
        Ints uneven(static_cast<std::size_t>(3 * rank));
        require_ok(all_to_all_v(group, input, uneven, {.send = send, .recv = recv, .max = 2}));
        require_equal(uneven, rank == 0   ? Ints{}
                              : rank == 1 ? Ints{0, 100, 200}
                                          : Ints{1, 2, 101, 102, 201, 202});
      }),
      "");
}

TEST(TypedTest, HasRoots) {
  EXPECT_EQ(on_three([](Communicator& group) {
              const bool root = group.rank() == 2;
              Ints data = numbers(group, 2), output(2);
              require_ok(broadcast(group, root ? std::span(data) : std::span<int>(), output, 2));
              require_equal(output, {200, 201});
              require_ok(reduce(group, data, root ? std::span(output) : std::span<int>(), 2,
                                {.op = ReduceOp::max()}));
              require_equal(output, {200, 201});
              require_ok(reduce(group, data, 2));
              require_equal(data, root ? Ints{300, 303} : numbers(group, 2));
              require_ok(broadcast(group, data, 2));
              require_equal(data, {300, 303});
              const Ints parts = root ? Ints{7, 8, 9} : Ints{};
              Ints part(1);
              require_ok(scatter(group, parts, part, 2));
              require_equal(part, {7 + group.rank()});
            }),
            "");
}

TEST(TypedTest, SendsAndReceives) {
  EXPECT_EQ(on_three([](Communicator& group) {
              const int next = (group.rank() + 1) % kThree, before = (group.rank() + 2) % kThree;
              const Ints sent = numbers(group, 2);
              Ints received(2);
              group_start();
              require_ok(send(group, sent, next));
              require_ok(recv(group, received, before));
              require_ok(group_end());
              require_equal(received, {100 * before, 100 * before + 1});
            }),
            "");
}

// Two ranks: the first one asks, and a refused call needs nobody else.
TEST(TypedTest, RefusesSizesThatDoNotFit) {
  auto groups = groups_of(2);
  Communicator& group = groups[0];
  Ints two(2), three(3);
  const auto refused = [](const Status& status, std::string_view text) {
    require_failure(status, StatusCode::kInvalidArgument, {text});
  };
  refused(all_reduce(group, two, three), "all_reduce: output has 3 elements instead of 2");
  refused(all_gather(group, two, three), "all_gather: output has 3 elements instead of 4");
  refused(all_gather(group, three), "all_gather: data has 3 elements, which is no multiple of");
  refused(reduce_scatter(group, three, two), "reduce_scatter: input has 3 elements instead of 4");
  refused(reduce_scatter(group, three),
          "reduce_scatter: data has 3 elements, which is no multiple");
  refused(all_to_all(group, two, three), "all_to_all: output has 3 elements instead of 2");
  refused(all_to_all(group, three, three),
          "all_to_all: input has 3 elements, which is no multiple");
  refused(broadcast(group, two, three, 0), "broadcast: input has 2 elements instead of 3");
  refused(reduce(group, two, three, 0), "reduce: output has 3 elements instead of 2");
  refused(gather(group, two, three, 0), "gather: output has 3 elements instead of 4");
  refused(scatter(group, three, two, 0), "scatter: input has 3 elements instead of 4");
  refused(all_gather_v(group, two, three, Sizes{3}), "output has 1 counts for 2 ranks");
  refused(all_gather_v(group, two, three, Sizes{2, 2}), "output has 3 elements instead of 4");
  refused(all_gather_v(group, two, three, Sizes{1, 2}), "input has 2 elements instead of 1");
  refused(reduce_scatter_v(group, three, two, Sizes{2}), "input has 1 counts for 2 ranks");
  refused(reduce_scatter_v(group, three, two, Sizes{2, 2}), "input has 3 elements instead of 4");
  refused(reduce_scatter_v(group, three, two, Sizes{1, 2}), "output has 2 elements instead of 1");
  const Sizes one_each = {1, 1};
  refused(all_to_all_v(group, three, two, {.send = one_each, .recv = one_each, .max = 1}),
          "input has 3 elements instead of 2");
  refused(all_to_all_v(group, two, three, {.send = one_each, .recv = one_each, .max = 1}),
          "output has 3 elements instead of 2");
  refused(broadcast(group, two, 5), "root 5");
  EXPECT_TRUE(group.status().is_ok());
}

TEST(TypedTest, SeesMemoryAsElements) {
  auto groups = groups_of(1);
  const SymmetricMemory memory = take(groups[0].allocate(100));
  EXPECT_EQ(memory.as<double>().data(), memory.data());
  EXPECT_EQ(memory.as<double>().size(), 12);
  EXPECT_EQ(SymmetricMemory().as<int>().size(), 0);
  SymmetricPool pool(groups[0]);
  const SymmetricBlock block = take(pool.take(100));
  EXPECT_EQ(block.as<float>().data(), block.data());
  EXPECT_EQ(block.as<float>().size(), 25);
}

}  // namespace
}  // namespace tutti::test
