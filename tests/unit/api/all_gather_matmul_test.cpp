// all_gather_matmul with threads as ranks on the host: what it computes, what it refuses, and what
// it says where ranks differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "support/check.hpp"
#include "support/ranks.hpp"
#include "support/told.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"
#include "unit/api/layer_of_rank.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

// Every m, type, layout andbuffers; the rest in turn.
std::vector<Layer> layers(int ranks) {
  std::vector<Layer> all;
  unsigned turn = 0;
  for (const std::size_t m : {1, 3, 7, 2 * ranks, 23}) {
    for (const DataType dtype : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
      for (const MatrixLayout layout : {MatrixLayout::kRowMajor, MatrixLayout::kColumnMajor}) {
        for (const LayerBuffers buffers :
             {LayerBuffers::kPlain, LayerBuffers::kSymmetric, LayerBuffers::kInPlace}) {
          const unsigned bits = turn++ * 5 / 2;
          all.push_back({.m = m,
                         .k = 20,
                         .n = (bits & 1) != 0 ? std::vector<std::size_t>{9}
                                              : std::vector<std::size_t>{4, 0, 13},
                         .dtype = dtype,
                         .layout = layout,
                         .bias = (bits & 2) != 0,
                         .gathered = (bits & 4) != 0,
                         .buffers = buffers});
        }
      }
    }
  }
  return all;
}

class AllGatherMatmulTest : public ::testing::TestWithParam<int> {
 protected:
  static constexpr std::size_t kSymmetricBytes = 16 * KiB;

  template <class Body>
  void on_group(const Body& body) {
    auto groups = groups_of(GetParam());
    on_all_ranks(GetParam(), [&](int rank) {
      Communicator& group = groups[static_cast<std::size_t>(rank)];
      const SymmetricMemory memory = take(group.allocate(kSymmetricBytes));
      body(group, static_cast<std::byte*>(memory.data()));
    });
  }
};

TEST_P(AllGatherMatmulTest, MultipliesTheRowsOfAllRanks) {
  on_group([](Communicator& group, std::byte* symmetric) {
    int salt = 0;
    for (const Layer& layer : layers(group.size())) {
      LayerOfRank side(layer, group, symmetric);
      side.fill(++salt);
      const AllGatherMatmul call = side.call();
      EXPECT_EQ(take(all_gather_matmul_workspace(group, call)),
                call.gathered != nullptr || group.size() == 1 ? 0 : layer.bytes_of_a());
      require_ok(all_gather_matmul(group, call));
      side.expect_right(layer.text());
    }
  });
}

// Nothing is between the calls but new numbers. What the first one has made is used again.
TEST_P(AllGatherMatmulTest, CallsFollowEachOther) {
  on_group([](Communicator& group, std::byte* symmetric) {
    for (const LayerBuffers buffers :
         {LayerBuffers::kPlain, LayerBuffers::kSymmetric, LayerBuffers::kInPlace}) {
      const Layer layer = {.m = 11, .buffers = buffers};
      LayerOfRank side(layer, group, symmetric);
      Communicator::Counters counters;
      for (int salt = 0; salt < 4; ++salt) {
        side.fill(salt);
        require_ok(all_gather_matmul(group, side.call()));
        side.expect_right(fmt::format("call {}", salt));
        if (salt == 0) counters = group.counters();
      }
      EXPECT_EQ(group.counters(), counters);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, AllGatherMatmulTest, ::testing::Range(1, 6));

// More than one panel of the host's matmul, and several passes of a staged gather.
TEST(AllGatherMatmulHostTest, MatricesMayBeLarge) {
  auto groups = groups_of(4);
  on_all_ranks(4, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank side({.m = 1030, .k = 600, .n = {20}}, group, nullptr);
    side.fill(1);
    require_ok(all_gather_matmul(group, side.call()));
    side.expect_right("large");
  });
}

// With one rank that calls, and no other: nothing is communicated.
TEST(AllGatherMatmulHostTest, WithoutKOrRowsNobodyIsAsked) {
  auto groups = groups_of(2);
  std::array<float, 6> c{9, 9, 9, 9, 9, 9};
  const std::array<float, 3> bias{1, 2, 3};
  AllGatherMatmul call = {
      .c = c.data(), .bias = bias.data(), .m = 2, .n = 3, .k = 0, .dtype = DataType::kFloat32};
  EXPECT_EQ(take(all_gather_matmul_workspace(groups[1], call)), 0u);
  require_ok(all_gather_matmul(groups[1], call));
  EXPECT_EQ(c, (std::array<float, 6>{1, 2, 3, 1, 2, 3}));
  call.bias = nullptr;
  require_ok(all_gather_matmul(groups[1], call));
  EXPECT_EQ(c, (std::array<float, 6>{}));

  c.fill(9);
  const AllGatherMatmul nothing = {.m = 0, .n = 3, .k = 4, .dtype = DataType::kFloat32};
  EXPECT_EQ(take(all_gather_matmul_workspace(groups[1], nothing)), 0u);
  require_ok(all_gather_matmul(groups[1], nothing));
  const AllGatherMatmulPlan plan = take(tutti::plan(groups[1], nothing));
  EXPECT_EQ(plan.algorithm, "");
  EXPECT_EQ(plan.why, "M or N is 0: there is nothing to compute");
}

TEST(AllGatherMatmulHostTest, WithoutColumnsItGathers) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank side({.m = 5, .n = {0}, .gathered = true}, group, nullptr);
    side.fill(3);
    require_ok(all_gather_matmul(group, side.call()));
    side.expect_right("without columns");
    const AllGatherMatmulPlan plan = take(tutti::plan(group, side.call()));
    EXPECT_EQ(plan.algorithm, "unfused");
    EXPECT_THAT(plan.config, testing::StartsWith("all_gather_v/"));
  });
}

TEST(AllGatherMatmulHostTest, PlansAndExplanationsHaveBothSteps) {
  auto groups = groups_of(2);
  LayerOfRank side({.n = {7, 2}}, groups[0], nullptr);
  AllGatherMatmul call = side.call();
  const AllGatherMatmulPlan plan = take(tutti::plan(groups[0], call));
  EXPECT_EQ(plan.algorithm, "unfused");
  EXPECT_THAT(plan.config, testing::MatchesRegex("all_gather/[a-z_]+, host_matmul"));
  EXPECT_EQ(plan.why,
            "no measurement for 6x9x5 on the host, 2 ranks, elements of 4 bytes; the matrices are "
            "on the host");
  const std::string text = take(explain(groups[0], call));
  EXPECT_THAT(text, testing::StartsWith("all_gather_matmul (m 6, n 7 + 2, k 5, row, 2 Bs), fp32, "
                                        "2 ranks with 3 rows\n  * unfused          can run it; "));
  EXPECT_THAT(text, HasSubstr("\n  * host_matmul "));
  EXPECT_THAT(text, HasSubstr("all_gather/push"));
  call.algorithm = "unfused";
  EXPECT_EQ(take(tutti::plan(groups[0], call)).why,
            "the call names it; the matrices are on the host");
}

TEST(AllGatherMatmulHostTest, OneRankAloneMultipliesItsShard) {
  auto groups = groups_of(1);
  LayerOfRank side({.bias = true}, groups[0], nullptr);
  side.fill(1);  // which makes new matrices
  AllGatherMatmul call = side.call();
  EXPECT_EQ(take(tutti::plan(groups[0], call)).config, "host_matmul");
  call.workspace = nullptr;
  call.workspace_bytes = 0;
  call.gathered = nullptr;
  require_ok(all_gather_matmul(groups[0], call));
  std::array<float, 30> gathered{};
  call.gathered = gathered.data();
  EXPECT_EQ(take(tutti::plan(groups[0], call)).config, "copy, host_matmul");
  require_ok(all_gather_matmul(groups[0], call));
  EXPECT_EQ(std::memcmp(gathered.data(), call.a, sizeof(gathered)), 0);
}

// What is refused on one rank, which then calls rightly with the other one.
class AllGatherMatmulRefusals : public ::testing::Test {
 protected:
  template <class Change>
  void expect_refused(std::string_view text, Change change,
                      StatusCode code = StatusCode::kInvalidArgument) {
    AllGatherMatmul call = side_.call();
    change(call);
    const Status status = all_gather_matmul(groups_[0], call);
    EXPECT_EQ(status.code(), code) << status.to_string();
    EXPECT_EQ(status.message(), text);
    const Status planned = tutti::plan(groups_[0], call).status();
    EXPECT_EQ(planned.message(), text);
    EXPECT_TRUE(groups_[0].status().is_ok());
  }
  void expect_usable() {
    on_all_ranks(2, [&](int rank) {
      LayerOfRank side({}, groups_[static_cast<std::size_t>(rank)], nullptr);
      side.fill(5);
      require_ok(all_gather_matmul(groups_[static_cast<std::size_t>(rank)], side.call()));
      side.expect_right("after refusals");
    });
  }

  std::vector<Communicator> groups_ = groups_of(2);
  LayerOfRank side_{{.n = {7, 2}, .bias = true}, groups_[0], nullptr};
};
using Fused = AllGatherMatmul;

TEST_F(AllGatherMatmulRefusals, Arguments) {
  expect_refused(
      "all_gather_matmul: lda is 6 and k is 5: the rows of a shard follow each other "
      "without gaps",
      [](Fused& call) { call.lda = 6; });
  expect_refused("all_gather_matmul: m x k overflows",
                 [](Fused& call) { call.m = std::size_t{1} << 58; });
  expect_refused("all_gather_matmul: matmul: unknown dtype",
                 [](Fused& call) { call.dtype = static_cast<DataType>(99); });
  expect_refused("all_gather_matmul: matmul: unknown layout of B",
                 [](Fused& call) { call.b_layout = static_cast<MatrixLayout>(7); });
  expect_refused(
      "all_gather_matmul: matmul: of bf16, fp16 or fp32, not fp64",
      [](Fused& call) { call.dtype = DataType::kFloat64; }, StatusCode::kUnsupported);
  const std::vector<MatmulProduct> many(kMaxMatmulProducts);
  expect_refused("all_gather_matmul: matmul: 9 products: at most 8",
                 [&](Fused& call) { call.more = many; });
  expect_refused(
      "all_gather_matmul: matmul: ldc 6 is less than the 7 elements that follow each "
      "other",
      [](Fused& call) { call.ldc = 6; });
  expect_refused(
      "unknown algorithm of all_gather_matmul 'fast'; known are unfused, "
      "pipelined_shift, pipelined_ring, pipelined_tiles, fused",
      [](Fused& call) { call.algorithm = "fast"; });
  expect_refused("all_gather_matmul: a timeout must not be negative",
                 [](Fused& call) { call.timeout = std::chrono::milliseconds(-1); });
  expect_usable();
}

TEST_F(AllGatherMatmulRefusals, Pointers) {
  const auto shifted = [](const void* memory) {
    return const_cast<std::byte*>(static_cast<const std::byte*>(memory)) + 2;
  };
  expect_refused("all_gather_matmul: null a", [](Fused& call) { call.a = nullptr; });
  expect_refused("all_gather_matmul: matmul: null b", [](Fused& call) { call.b = nullptr; });
  expect_refused("all_gather_matmul: matmul: null c", [](Fused& call) { call.c = nullptr; });
  expect_refused("all_gather_matmul: a is not aligned to its elements' 4 bytes",
                 [&](Fused& call) { call.a = shifted(call.a); });
  expect_refused("all_gather_matmul: workspace is not aligned to its elements' 4 bytes",
                 [&](Fused& call) { call.workspace = shifted(call.workspace); });
  expect_refused("all_gather_matmul: gathered is not aligned to its elements' 4 bytes",
                 [&](Fused& call) { call.gathered = shifted(call.workspace); });
  expect_refused("all_gather_matmul: matmul: bias is not aligned to its elements' 4 bytes",
                 [&](Fused& call) { call.bias = shifted(call.bias); });
  expect_usable();
}

TEST_F(AllGatherMatmulRefusals, WorkspacesThatAreTooSmall) {
  expect_refused("all_gather_matmul: workspace_bytes is 119: the gathered A [6, 5] needs 120 bytes",
                 [](Fused& call) { call.workspace_bytes = 119; });
  expect_refused(
      "all_gather_matmul: neither workspace nor gathered: the gathered A [6, 5] needs "
      "120 bytes",
      [](Fused& call) { call.workspace = nullptr; });
  // Without any other pointer.
  Fused sizes{.m = 6, .n = 7, .k = 5, .dtype = DataType::kFloat16};
  EXPECT_EQ(take(all_gather_matmul_workspace(groups_[1], sizes)), 60u);
  sizes.lda = 4;
  EXPECT_EQ(all_gather_matmul_workspace(groups_[1], sizes).status().code(),
            StatusCode::kInvalidArgument);
  expect_usable();
}

TEST_F(AllGatherMatmulRefusals, Overlaps) {
  const auto text = [](std::string_view first, std::string_view second, std::string_view written) {
    return fmt::format("all_gather_matmul: {} and {} overlap, and the call writes {}", first,
                       second, written);
  };
  std::array<float, 200> c{};
  expect_refused(text("a", "c", "c"),
                 [](Fused& call) { call.c = static_cast<float*>(const_cast<void*>(call.a)) + 1; });
  expect_refused(text("b", "c", "c"), [](Fused& call) { call.c = const_cast<void*>(call.b); });
  expect_refused(text("bias", "c", "c"), [&](Fused& call) {
    call.c = c.data();
    call.bias = c.data() + 51;  // the last row's last elements
  });
  expect_refused(text("c", "more[0].c", "both"), [&](Fused& call) { call.c = call.more[0].c; });
  expect_refused(text("c", "the gathered A", "both"),
                 [&](Fused& call) { call.workspace = call.c; });
  expect_refused(text("b", "the gathered A", "the gathered A"),
                 [&](Fused& call) { call.gathered = const_cast<void*>(call.b); });
  // In buffers is only where the shard lies in A.
  expect_refused(text("a", "the gathered A", "the gathered A"), [](Fused& call) {
    call.gathered = static_cast<float*>(const_cast<void*>(call.a)) - 15;
  });
  expect_usable();
}

TEST_F(AllGatherMatmulRefusals, GroupsOfCalls) {
  group_start();
  const Status status = all_gather_matmul(groups_[0], side_.call());
  require_ok(group_end());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "all_gather_matmul: not between group_start() and group_end()");
  expect_usable();
}

TEST_F(AllGatherMatmulRefusals, FailedGroups) {
  groups_[0].abort("enough");
  AllGatherMatmul call = side_.call();
  EXPECT_EQ(all_gather_matmul(groups_[0], call).code(), StatusCode::kAborted);
  call.k = 0;  // which asks nobody
  EXPECT_EQ(all_gather_matmul(groups_[0], call).code(), StatusCode::kAborted);
}

// Matrices that lie side by side.
TEST(AllGatherMatmulHostTest, ProductsMayShareRows) {
  auto groups = groups_of(1);
  const std::array<float, 2> a{1, 10};
  const std::array<float, 2> b{2, 3};
  std::array<float, 6> c{9, 9, 9, 9, 9, 9};
  const std::array<MatmulProduct, 1> more{
      {{.b = b.data() + 1, .c = c.data() + 1, .n = 1, .ldc = 3}}};
  require_ok(all_gather_matmul(groups[0], {.a = a.data(),
                                           .b = b.data(),
                                           .c = c.data(),
                                           .m = 2,
                                           .n = 1,
                                           .k = 1,
                                           .ldc = 3,
                                           .dtype = DataType::kFloat32,
                                           .more = more}));
  EXPECT_EQ(c, (std::array<float, 6>{2, 3, 9, 20, 30, 9}));
}

struct Difference {
  Layer there;
  std::string here_text, there_text;
};

class AllGatherMatmulMismatch : public ::testing::TestWithParam<Difference> {};

TEST_P(AllGatherMatmulMismatch, IsFoundByBothRanksAndNamesBoth) {
  const Difference& difference = GetParam();
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank side(rank == 0 ? Layer{} : difference.there, group, nullptr);
    side.fill(1);
    const Status status = all_gather_matmul(group, side.call());
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    const std::string& other = rank == 0 ? difference.there_text : difference.here_text;
    const std::string text = told(group, other);
    EXPECT_THAT(text, HasSubstr(difference.here_text));
    EXPECT_THAT(text, HasSubstr(difference.there_text));
  });
}

constexpr const char* kHere = "of all_gather_matmul (m 6, n 7, k 5, row, 1 B)";
INSTANTIATE_TEST_SUITE_P(
    Fields, AllGatherMatmulMismatch,
    ::testing::Values(
        Difference{{.n = {8}}, kHere, "of all_gather_matmul (m 6, n 8, k 5, row, 1 B)"},
        Difference{{.n = {0}}, kHere, "of all_gather_matmul (m 6, n 0, k 5, row, 1 B)"},
        Difference{{.m = 8}, kHere, "of all_gather_matmul (m 8, n 7, k 5, row, 1 B)"},
        Difference{{.m = 5}, kHere, "of all_gather_matmul (m 5, n 7, k 5, row, 1 B)"},
        Difference{{.k = 6}, kHere, "of all_gather_matmul (m 6, n 7, k 6, row, 1 B)"},
        Difference{{.layout = MatrixLayout::kColumnMajor},
                   kHere,
                   "of all_gather_matmul (m 6, n 7, k 5, column, 1 B)"},
        Difference{{.n = {7, 7}}, kHere, "of all_gather_matmul (m 6, n 7 + 7, k 5, row, 2 Bs)"},
        Difference{{.dtype = DataType::kBfloat16},
                   "(30 x fp32) of all_gather_matmul",
                   "(30 x bf16) of all_gather_matmul"}));

}  // namespace
}  // namespace tutti::test
