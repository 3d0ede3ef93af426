// The tools of the tests, tested: each must be able to say no.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <random>
#include <thread>

#include "support/check.hpp"
#include "support/compare.hpp"
#include "support/group.hpp"
#include "support/inputs.hpp"
#include "support/reference.hpp"
#include "support/workbench.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

template <class T>
Bytes bytes_of(std::initializer_list<T> values) {
  Bytes bytes(values.size() * sizeof(T));
  std::copy(values.begin(), values.end(), reinterpret_cast<T*>(bytes.data()));
  return bytes;
}

template <class T>
Bytes reduce(DataType dtype, OpKind op, std::initializer_list<T> per_rank,
             std::initializer_list<double> scalars = {}) {
  Reference reference(dtype, op, 1);
  auto scalar = scalars.begin();
  for (const T value : per_rank) reference.add(view_of(value), scalars.size() ? *scalar++ : 1.0);
  return reference.result();
}

TEST(ReferenceTest, FloatsAddInRankOrder) {
  EXPECT_EQ(reduce(DataType::kFloat32, OpKind::kSum, {1e8f, 1.0f, -1e8f}), bytes_of({0.0f}));
  EXPECT_EQ(reduce(DataType::kFloat32, OpKind::kSum, {1e8f, -1e8f, 1.0f}), bytes_of({1.0f}));
}

TEST(ReferenceTest, NarrowFloatsRoundOnce) {
  const Half one = from_float<Half>(1.0f), tiny = from_float<Half>(0x1p-11f);
  // 1 + 2^-11 is a tie that rounds to 1; in fp32 the second addend lifts it over the tie.
  EXPECT_EQ(reduce(DataType::kFloat16, OpKind::kSum, {one, tiny, tiny}),
            bytes_of({from_float<Half>(1.0f + 0x1p-10f)}));
}

TEST(ReferenceTest, IntegersWrapAndAveragesTruncate) {
  using I = std::int8_t;
  EXPECT_EQ(reduce(DataType::kInt8, OpKind::kSum, {I{100}, I{100}}), bytes_of({I{-56}}));
  EXPECT_EQ(reduce(DataType::kInt8, OpKind::kAvg, {I{-3}, I{-4}}), bytes_of({I{-3}}));
  EXPECT_EQ(reduce(DataType::kInt8, OpKind::kMin, {I{3}, I{-4}}), bytes_of({I{-4}}));
  EXPECT_EQ(reduce(DataType::kUint8, OpKind::kMax, {std::uint8_t{3}, std::uint8_t{252}}),
            bytes_of({std::uint8_t{252}}));
  EXPECT_EQ(reduce(DataType::kInt8, OpKind::kPreMulSum, {I{10}, I{10}}, {2.0, 3.9}),
            bytes_of({I{50}}));
}

TEST(ReferenceTest, MinimumKnowsZerosAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(reduce(DataType::kFloat32, OpKind::kMin, {0.0f, -0.0f}), bytes_of({-0.0f}));
  EXPECT_EQ(reduce(DataType::kFloat32, OpKind::kMax, {-0.0f, 0.0f}), bytes_of({0.0f}));
  EXPECT_EQ(difference(DataType::kFloat32, bytes_of({nan}),
                       reduce(DataType::kFloat32, OpKind::kMin, {1.0f, nan, -1.0f})),
            "");
}

// Adds in the element type itself, in a random order: what exact inputs must not notice.
template <class T>
Bytes reduce_badly(const InputSpec& spec, std::size_t count, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(spec.ranks));
  for (int r = 0; r < spec.ranks; ++r) order[static_cast<std::size_t>(r)] = r;
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  Bytes sum;
  for (const int rank : order) {
    const Bytes input = make_input(spec, rank, count);
    Reference scaled(spec.dtype, spec.op == OpKind::kAvg ? OpKind::kSum : spec.op, count);
    if (sum.empty()) {
      scaled.add(input, scalar_of(spec, rank));
    } else {
      scaled.add(sum, 1.0);
      scaled.add(input, scalar_of(spec, rank));
    }
    sum = scaled.result();
  }
  return sum;
}

Bytes reduce_well(const InputSpec& spec, std::size_t count) {
  Reference reference(spec.dtype, spec.op == OpKind::kAvg ? OpKind::kSum : spec.op, count);
  for (int r = 0; r < spec.ranks; ++r) {
    reference.add(make_input(spec, r, count), scalar_of(spec, r));
  }
  return reference.result();
}

TEST(InputsTest, ExactInputsHaveOneAnswerWhateverTheOrder) {
  constexpr std::size_t kCount = 500;
  for (const DataType dtype : kAllDataTypes) {
    for (const OpKind op : kAllOps) {
      for (const int ranks : {2, 3, 5, 8, 16}) {
        // Averages divide at the end, which an order in the element type cannot show.
        if (op == OpKind::kAvg) continue;
        const InputSpec spec{.dtype = dtype, .op = op, .ranks = ranks, .seed = 7};
        const Bytes badly =
            visit_data_type(dtype, [&]<class T>() { return reduce_badly<T>(spec, kCount, 11); });
        EXPECT_EQ(difference(dtype, reduce_well(spec, kCount), badly), "")
            << to_string(dtype) << " " << to_string(op) << " " << ranks;
      }
    }
  }
}

TEST(InputsTest, AveragesOfExactInputsAreTheInputs) {
  for (const DataType dtype : {DataType::kFloat8E5M2, DataType::kBfloat16, DataType::kFloat64}) {
    const InputSpec spec{.dtype = dtype, .op = OpKind::kAvg, .ranks = 16, .seed = 7};
    Reference reference(dtype, OpKind::kAvg, 100);
    for (int r = 0; r < spec.ranks; ++r) reference.add(make_input(spec, r, 100));
    EXPECT_EQ(difference(dtype, make_input(spec, 0, 100), reference.result()), "");
  }
}

TEST(InputsTest, RandomInputsTellTheAccumulatorAndTheOrder) {
  constexpr std::size_t kCount = 1000;
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat8E4M3,
                               DataType::kFloat8E5M2, DataType::kFloat32, DataType::kFloat64}) {
    const InputSpec spec{
        .dtype = dtype, .op = OpKind::kSum, .kind = InputKind::kRandom, .ranks = 5, .seed = 7};
    const Bytes badly =
        visit_data_type(dtype, [&]<class T>() { return reduce_badly<T>(spec, kCount, 11); });
    EXPECT_NE(difference(dtype, reduce_well(spec, kCount), badly), "") << to_string(dtype);
  }
}

TEST(InputsTest, ShorterInputsAreBeginningsOfLongerOnes) {
  const InputSpec spec{.kind = InputKind::kRandom, .ranks = 3, .seed = 1};
  const Bytes whole = make_input(spec, 1, 100), part = make_input(spec, 1, 7);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
  EXPECT_NE(make_input(spec, 2, 100), whole);
}

TEST(InputsTest, SpecialInputsHoldEveryKindOfValue) {
  const InputSpec spec{.kind = InputKind::kSpecial, .ranks = 1, .seed = 1};
  const Bytes bytes = make_input(spec, 0, 10000);
  int nans = 0, infinities = 0, negative_zeros = 0, subnormals = 0;
  for (std::size_t i = 0; i < 10000; ++i) {
    const float value = from_bytes<float>(ByteView(bytes).subspan(i * 4, 4));
    nans += std::isnan(value);
    infinities += std::isinf(value);
    negative_zeros += value == 0 && std::signbit(value);
    subnormals += std::fpclassify(value) == FP_SUBNORMAL;
  }
  for (const int seen : {nans, infinities, negative_zeros, subnormals}) EXPECT_GT(seen, 50);
}

TEST(CompareTest, BitsCountAndNansAreAlike) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(difference(DataType::kFloat32, bytes_of({nan, 1.0f}), bytes_of({-nan, 1.0f})), "");
  EXPECT_THAT(difference(DataType::kFloat32, bytes_of({0.0f}), bytes_of({-0.0f})),
              HasSubstr("element 0: expected 0 (0x00000000), got -0 (0x80000000); 1 of 1 wrong"));
  EXPECT_NE(difference(DataType::kFloat32, bytes_of({nan}), bytes_of({1.0f})), "");
  EXPECT_NE(difference(DataType::kFloat32, bytes_of({1.0f}), bytes_of({1.0f, 1.0f})), "");
}

TEST(RunRanksTest, FailuresAreReportedWithTheirRank) {
  for (const RankKind kind : {RankKind::kThreads, RankKind::kProcesses}) {
    EXPECT_EQ(run_ranks(kind, 3, [](int) {}), "");
    const std::string failures = run_ranks(kind, 3, [](int rank) { require(rank != 1, "odd"); });
    EXPECT_THAT(failures, HasSubstr("rank 1: "));
    EXPECT_THAT(failures, HasSubstr("odd"));
    EXPECT_EQ(std::count(failures.begin(), failures.end(), '\n'), 1);
  }
}

TEST(RunRanksTest, AProcessThatDiesIsReported) {
  const std::string failures = run_ranks(RankKind::kProcesses, 2, [](int rank) {
    if (rank == 1) ::raise(SIGKILL);
  });
  EXPECT_THAT(failures, HasSubstr("rank 1: was killed by signal 9"));
}

TEST(RunRanksTest, AProcessThatIsLateIsKilled) {
  const std::string failures = run_ranks(
      RankKind::kProcesses, 2, [](int rank) { ::sleep(rank == 0 ? 60 : 0); },
      std::chrono::seconds(1));
  EXPECT_THAT(failures, HasSubstr("rank 0: did not end in time"));
}

TEST(ChildrenTest, LinesOfAChildThatIsKilledAreKept) {
  Children children(1, [](int, Wire& parent) {
    parent.say("first");
    parent.say("second\nhalf");
    ::pause();
  });
  ASSERT_TRUE(children.wait_for_line(0, "second", kPatience));
  children.signal(0, SIGKILL);
  const auto& child = children.finish(kPatience).front();
  EXPECT_THAT(child.lines, ::testing::ElementsAre("first", "second half"));
  EXPECT_FALSE(child.succeeded());
}

// One rank alone: what it computes is its input, unless something writes where it should not.
std::string check_after(const std::function<void(const AllReduce&)>& spoil, bool in_place) {
  std::string verdict;
  const std::string failures = run_group({.ranks = 1}, [&](Rank& rank) {
    Workbench bench(rank.group, rank.device, BufferKind::kSymmetric, 4096);
    const Trial trial{.count = 100, .offset = 1, .in_place = in_place};
    const AllReduce call = bench.prepare(trial);
    if (!in_place) std::memcpy(call.output, call.input, 400);
    spoil(call);
    verdict = bench.check(trial);
  });
  return failures + verdict;
}

TEST(WorkbenchTest, ASoundResultPasses) {
  EXPECT_EQ(check_after([](const AllReduce&) {}, false), "");
  EXPECT_EQ(check_after([](const AllReduce&) {}, true), "");
}

TEST(WorkbenchTest, StrayWritesAreFound) {
  const auto output = [](const AllReduce& call) { return static_cast<std::byte*>(call.output); };
  EXPECT_THAT(check_after([&](const AllReduce& call) { output(call)[400] ^= std::byte{1}; }, false),
              HasSubstr("output: wrote 1 bytes behind the buffer"));
  EXPECT_THAT(check_after([&](const AllReduce& call) { output(call)[-1] ^= std::byte{1}; }, true),
              HasSubstr("output: wrote 1 bytes before the buffer"));
  EXPECT_THAT(check_after([&](const AllReduce& call) { output(call)[8] ^= std::byte{1}; }, false),
              HasSubstr("element 2: "));
  EXPECT_THAT(check_after(
                  [&](const AllReduce& call) {
                    *static_cast<std::byte*>(const_cast<void*>(call.input)) ^= std::byte{1};
                  },
                  false),
              HasSubstr("the input was changed"));
}

TEST(WorkbenchTest, AnOutputThatNobodyWroteIsWrongEverywhere) {
  std::string verdict;
  (void)run_group({.ranks = 1}, [&](Rank& rank) {
    Workbench bench(rank.group, rank.device, BufferKind::kPlain, 4096);
    const Trial trial{.dtype = DataType::kInt8, .count = 1000};
    (void)bench.prepare(trial);
    verdict = bench.check(trial);
  });
  EXPECT_THAT(verdict, HasSubstr("1000 of 1000 wrong"));
}

}  // namespace
}  // namespace tutti::test
