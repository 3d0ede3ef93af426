// What all_gather_v, reduce_scatter_v and all_to_all_v refuse, what they take, and what they do
// with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/check.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;
using Counts = std::vector<std::size_t>;

// One rank alone keeps its only piece.
class UnevenTest : public ::testing::Test {
 protected:
  void expect_refused(const Status& status, std::string_view text) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok()) << "a refused call must leave the group usable";
  }
  Communicator& group() { return groups_[0]; }

  std::vector<Communicator> groups_ =
      take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  alignas(16) std::array<float, 64> values_{};
  const std::array<std::size_t, 1> two_{2}, none_{0};
  std::size_t found_ = 99;
};

TEST_F(UnevenTest, BadArgumentsAreRefused) {
  float* const v = values_.data();
  float* const w = v + 32;
  const AllGatherV good{.input = v, .output = w, .counts = two_.data()};
  const auto refused = [&](std::string_view text, auto&& change) {
    AllGatherV call = good;
    change(call);
    expect_refused(all_gather_v(group(), call), text);
  };
  refused("null buffer", [&](AllGatherV& call) { call.input = nullptr; });
  refused("null buffer", [&](AllGatherV& call) { call.output = nullptr; });
  refused("no counts", [&](AllGatherV& call) { call.counts = nullptr; });
  refused("give one of them", [&](AllGatherV& call) {
    call.device_counts = {two_.data(), nullptr, 2};
  });
  refused("need a limit", [&](AllGatherV& call) {
    call.counts = nullptr;
    call.device_counts = {two_.data(), nullptr, 0};
  });
  refused("overlap", [&](AllGatherV& call) { call.output = v + 1; });
  refused("aligned", [&](AllGatherV& call) { call.output = reinterpret_cast<char*>(w) + 2; });
  refused("dtype", [&](AllGatherV& call) { call.dtype = static_cast<DataType>(99); });
  refused("push", [&](AllGatherV& call) { call.options.algorithm = "pull"; });
  const std::array<std::size_t, 1> far{std::size_t{1} << 33};
  refused("below 2^32 - 1", [&](AllGatherV& call) { call.counts = far.data(); });
}

TEST_F(UnevenTest, AllToAllNeedsBothCountsAndALimit) {
  float* const v = values_.data();
  AllToAllV call{.input = v, .output = v + 32, .send_counts = two_.data(), .max_count = 2};
  expect_refused(all_to_all_v(group(), call), "give both");
  call.recv_counts = two_.data();
  EXPECT_TRUE(all_to_all_v(group(), call));
  call.max_count = 1;
  expect_refused(all_to_all_v(group(), call), "the count of rank 0 is 2, and the most is 1");
  call.max_count = 2;
  call.output = v;
  expect_refused(all_to_all_v(group(), call), "it does not run in place");
}

TEST_F(UnevenTest, InPlaceIsForCountsOnTheHost) {
  float* const v = values_.data();
  EXPECT_TRUE(all_gather_v(group(), {.input = v, .output = v, .counts = two_.data()}));
  EXPECT_TRUE(reduce_scatter_v(group(), {.input = v, .output = v, .counts = two_.data()}));
  expect_refused(
      all_gather_v(group(), {.input = v, .output = v, .device_counts = {two_.data(), nullptr, 2}}),
      "counts on the device");
}

TEST_F(UnevenTest, NothingNeedsNoBuffer) {
  EXPECT_TRUE(all_gather_v(group(), {.counts = none_.data()}));
  EXPECT_TRUE(reduce_scatter_v(group(), {.counts = none_.data()}));
  EXPECT_TRUE(all_to_all_v(group(), {.send_counts = none_.data(), .recv_counts = none_.data()}));
}

TEST_F(UnevenTest, RowsForCountsOnTheHostSaySo) {
  float* const v = values_.data();
  const Status status = all_gather_v(group(), {.input = v,
                                               .output = v + 8,
                                               .device_counts = {two_.data(), &found_, 2},
                                               .options = {.algorithm = "one_shot_push"}});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("needs counts on the host"));
}

TEST_F(UnevenTest, ExplainHasALinePerAlgorithmAndNoOperation) {
  for (const char* id : {"all_gather_v/push", "all_gather_v/one_shot_push", "all_gather_v/nccl"}) {
    EXPECT_THAT(explain(group(), "all_gather_v", {.count = 1024}), HasSubstr(id));
  }
  EXPECT_THAT(explain(group(), "all_to_all_v", {.count = 1024, .counts_on_device = true}),
              HasSubstr("needs counts on the host"));
}

// Three ranks, of which the middle one has nothing for itself and rank 2 nothing at all.
constexpr int kRanks = 3;
const Counts kCounts = {5, 301, 0};
Counts sent_by(int rank) {
  return rank == 0 ? Counts{2, 7, 0} : rank == 1 ? Counts{40, 0, 3} : Counts{0, 0, 0};
}
Counts taken_by(int rank) {
  Counts taken;
  for (int r = 0; r < kRanks; ++r) taken.push_back(sent_by(r)[static_cast<std::size_t>(rank)]);
  return taken;
}
int value(int from, int to, std::size_t i) {
  return from * 100'000 + to * 10'000 + static_cast<int>(i);
}

template <class Run>
void on_three_ranks(const Run& run) {
  auto groups = groups_of(kRanks);
  on_all_ranks(kRanks, [&](int rank) { run(groups[static_cast<std::size_t>(rank)], rank); });
}

TEST(UnevenPiecesTest, EveryPieceComesToItsPlace) {
  on_three_ranks([](Communicator& group, int rank) {
    const Counts sent = sent_by(rank), taken = taken_by(rank);
    const SymmetricMemory memory = take(group.allocate(512 * sizeof(int)));
    int* const output = static_cast<int*>(memory.data());
    std::vector<int> input, expected;
    for (int r = 0; r < kRanks; ++r) {
      const auto at = static_cast<std::size_t>(r);
      for (std::size_t i = 0; i < sent[at]; ++i) input.push_back(value(rank, r, i));
      for (std::size_t i = 0; i < taken[at]; ++i) expected.push_back(value(r, rank, i));
    }
    input.resize(input.size() + 1);  // never empty
    for (const std::string_view row : {"", "push", "one_shot_push"}) {
      std::fill_n(output, 512, -1);
      require_ok(all_to_all_v(group, {.input = input.data(),
                                      .output = output,
                                      .send_counts = sent.data(),
                                      .recv_counts = taken.data(),
                                      .max_count = 40,
                                      .dtype = DataType::kInt32,
                                      .options = {.algorithm = row}}));
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output)) << row;
      EXPECT_EQ(output[expected.size()], -1) << row;
    }
  });
}

// Calls that are noted until the group's end have counts of their own by then.
TEST(UnevenPiecesTest, CountsMayGoOnceTheCallHasReturned) {
  on_three_ranks([](Communicator& group, int rank) {
    std::vector<int> input(302, rank), output(306, -1);
    group_start();
    {
      Counts counts = kCounts;
      require_ok(all_gather_v(group, {.input = input.data(),
                                      .output = output.data(),
                                      .counts = counts.data(),
                                      .dtype = DataType::kInt32}));
      counts.assign(counts.size(), 0);
    }
    require_ok(group_end());
    EXPECT_EQ(std::count(output.begin(), output.end(), 0), 5);
    EXPECT_EQ(std::count(output.begin(), output.end(), 1), 301);
  });
}

TEST(UnevenPiecesTest, TheDeviceTellsWhatItFound) {
  on_three_ranks([](Communicator& group, int rank) {
    const Counts sent = sent_by(rank);
    Counts found(kRanks, 99);
    std::vector<int> input(64, rank), output(128, -1);
    require_ok(all_to_all_v(group, {.input = input.data(),
                                    .output = output.data(),
                                    .device_counts = {sent.data(), found.data(), 40},
                                    .dtype = DataType::kInt32}));
    EXPECT_EQ(found, taken_by(rank));
  });
}

TEST(UnevenPiecesTest, ACountBeyondTheLimitIsFoundByAllAndMovesNothing) {
  on_three_ranks([](Communicator& group, int rank) {
    const Counts sent = sent_by(rank);
    std::vector<int> input(64, rank), output(128, -1);
    const Status status = all_to_all_v(group, {.input = input.data(),
                                               .output = output.data(),
                                               .device_counts = {sent.data(), nullptr, 39},
                                               .dtype = DataType::kInt32});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(),
                HasSubstr("all_to_all_v/push #1 (up to 39 x int32 of a rank): rank 1 has a count "
                          "of 40 on its device, and max_count is 39"));
    EXPECT_EQ(std::count(output.begin(), output.end(), -1), 128);
  });
}

// Rank 0 takes one element more of rank 1 than that one sends.
TEST(UnevenPiecesTest, CountsThatDifferAreAMismatch) {
  for (const std::string_view row : {"push", "one_shot_push"}) {
    on_three_ranks([row](Communicator& group, int rank) {
      const Counts sent = sent_by(rank);
      Counts taken = taken_by(rank);
      if (rank == 0) ++taken[1];
      std::vector<int> input(64, rank), output(128, -1);
      Status status = all_to_all_v(group, {.input = input.data(),
                                           .output = output.data(),
                                           .send_counts = sent.data(),
                                           .recv_counts = taken.data(),
                                           .max_count = 41,
                                           .dtype = DataType::kInt32,
                                           .options = {.algorithm = row}});
      if (rank != 0 && status.is_ok()) return;  // it had all it needed
      EXPECT_EQ(status.code(), StatusCode::kMismatch) << row << ": " << status.to_string();
      if (rank != 0) return;
      EXPECT_THAT(status.message(),
                  HasSubstr("rank 1 has a piece of 40 elements where rank 0 was told of 41"));
    });
  }
}

// Where all ranks were told all counts, another one is another operation.
TEST(UnevenPiecesTest, CountsThatShouldBeEqualAreComparedBySignature) {
  for (const std::string_view row : {"push", "one_shot_push"}) {
    on_three_ranks([row](Communicator& group, int rank) {
      Counts counts = kCounts;
      if (rank == 1) --counts[0];
      std::vector<int> input(302, rank), output(306, -1);
      const Status status = all_gather_v(group, {.input = input.data(),
                                                 .output = output.data(),
                                                 .counts = counts.data(),
                                                 .dtype = DataType::kInt32,
                                                 .options = {.algorithm = row}});
      EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    });
  }
}

TEST(UnevenPiecesTest, CountsOfAReductionOnTheDeviceAreCompared) {
  on_three_ranks([](Communicator& group, int rank) {
    Counts counts = kCounts;
    if (rank == 2) ++counts[2];
    std::vector<float> input(307, 1), output(302, -1);
    const Status status = reduce_scatter_v(group, {.input = input.data(),
                                                   .output = output.data(),
                                                   .device_counts = {counts.data(), nullptr, 301}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    EXPECT_EQ(std::count(output.begin(), output.end(), -1), 302);
  });
}

}  // namespace
}  // namespace tutti::test
