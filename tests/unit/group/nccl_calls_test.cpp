// What NCCL is given of each collective.
#include <gtest/gtest.h>

#include <array>

#include "nccl_group.hpp"

namespace tutti::test {
namespace {

std::vector<FakeNccl::Call> calls_named(const FakeNccl& nccl, std::string_view name) {
  std::vector<FakeNccl::Call> calls = nccl.calls();
  std::erase_if(calls, [name](const FakeNccl::Call& call) { return call.name != name; });
  return calls;
}

// As bytes, of one rank: from its place in the output, where it is in place. prepare_nccl() has run
// both collectives.
TEST(NcclCalls, WhatIsGatheredTravelsAsBytes) {
  NcclGroup world(2);
  const auto gathered = [&] { return calls_named(world.nccl, "all_gather"); };
  EXPECT_GT(gathered().size(), 2U);
  std::array<std::array<std::uint16_t, 6>, 2> outputs{};
  for (int r = 0; r < 2; ++r) {
    auto& output = outputs[static_cast<std::size_t>(r)];
    require_ok(all_gather(world.group(r), {.input = &output[static_cast<std::size_t>(r) * 3],
                                           .output = output.data(),
                                           .count = 3,
                                           .dtype = DataType::kBfloat16,
                                           .stream = world.stream(r),
                                           .options = {.algorithm = "nccl"}}));
    const NcclAllGather call = gathered().back().all_gather;
    EXPECT_EQ(call.input, &output[static_cast<std::size_t>(r) * 3]);
    EXPECT_EQ(call.output, output.data());
    EXPECT_EQ(call.bytes, 6U);
    EXPECT_EQ(call.stream, world.stream(r));
  }
}

// In place, each rank's piece lies in its own input; `count` is that of a piece.
TEST(NcclCalls, ReduceScatterGivesPiecesTheirOperation) {
  NcclGroup world(2);
  const auto scattered = [&] { return calls_named(world.nccl, "reduce_scatter"); };
  EXPECT_GT(scattered().size(), 2U);
  std::array<std::array<std::uint16_t, 6>, 2> inputs{};
  for (int r = 0; r < 2; ++r) {
    auto& input = inputs[static_cast<std::size_t>(r)];
    require_ok(reduce_scatter(world.group(r), {.input = input.data(),
                                               .output = &input[static_cast<std::size_t>(r) * 3],
                                               .count = 3,
                                               .dtype = DataType::kBfloat16,
                                               .op = ReduceOp::pre_mul_sum(0.5),
                                               .stream = world.stream(r),
                                               .options = {.algorithm = "nccl"}}));
    const NcclReduction call = scattered().back().reduction;
    EXPECT_EQ(call.input, input.data());
    EXPECT_EQ(call.output, &input[static_cast<std::size_t>(r) * 3]);
    EXPECT_EQ(call.count, 3U);
    EXPECT_EQ(call.dtype, DataType::kBfloat16);
    EXPECT_EQ(call.op.kind, OpKind::kPreMulSum);
    EXPECT_EQ(call.op.scalar, 0.5);
  }
}

// Likewise, of one piece; prepare_nccl() has run it.
TEST(NcclCalls, WhatIsExchangedTravelsAsBytes) {
  NcclGroup world(2);
  const auto exchanged = [&] { return calls_named(world.nccl, "exchange"); };
  EXPECT_GT(exchanged().size(), 2U);
  std::array<std::array<std::uint16_t, 12>, 2> buffers{};
  for (int r = 0; r < 2; ++r) {
    auto& buffer = buffers[static_cast<std::size_t>(r)];
    require_ok(all_to_all(world.group(r), {.input = buffer.data(),
                                           .output = &buffer[6],
                                           .count = 3,
                                           .dtype = DataType::kBfloat16,
                                           .stream = world.stream(r),
                                           .options = {.algorithm = "nccl"}}));
    const NcclExchange call = exchanged().back().exchange;
    ASSERT_EQ(call.sends.size(), 2U);
    ASSERT_EQ(call.receives.size(), 2U);
    for (int peer = 0; peer < 2; ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      EXPECT_EQ(call.sends[at].rank, peer);
      EXPECT_EQ(call.sends[at].from, &buffer[3 * at]);
      EXPECT_EQ(call.sends[at].bytes, 6U);
      EXPECT_EQ(call.receives[at].rank, peer);
      EXPECT_EQ(call.receives[at].to, &buffer[6 + 3 * at]);
      EXPECT_EQ(call.receives[at].bytes, 6U);
    }
    EXPECT_EQ(call.stream, world.stream(r));
  }
}

// The root's side alone is looked at on the root alone.
TEST(NcclCalls, GatherAndScatterSendAndReceiveWithTheRootAlone) {
  NcclGroup world(2);
  std::array<std::uint16_t, 12> buffer{};
  for (int r = 0; r < 2; ++r) {
    const bool is_root = r == 1;
    require_ok(gather(world.group(r), {.input = buffer.data(),
                                       .output = is_root ? &buffer[6] : nullptr,
                                       .count = 3,
                                       .dtype = DataType::kBfloat16,
                                       .root = 1,
                                       .stream = world.stream(r),
                                       .options = {.algorithm = "nccl"}}));
    const NcclExchange gathered = calls_named(world.nccl, "exchange").back().exchange;
    ASSERT_EQ(gathered.sends.size(), 1U);
    EXPECT_EQ(gathered.sends[0].rank, 1);
    EXPECT_EQ(gathered.sends[0].from, buffer.data());
    ASSERT_EQ(gathered.receives.size(), is_root ? 2U : 0U);
    if (is_root) {
      EXPECT_EQ(gathered.receives[1].to, &buffer[9]);
    }
    require_ok(scatter(world.group(r), {.input = is_root ? &buffer[6] : nullptr,
                                        .output = buffer.data(),
                                        .count = 3,
                                        .dtype = DataType::kBfloat16,
                                        .root = 1,
                                        .stream = world.stream(r),
                                        .options = {.algorithm = "nccl"}}));
    const NcclExchange scattered = calls_named(world.nccl, "exchange").back().exchange;
    ASSERT_EQ(scattered.receives.size(), 1U);
    EXPECT_EQ(scattered.receives[0].rank, 1);
    EXPECT_EQ(scattered.receives[0].to, buffer.data());
    ASSERT_EQ(scattered.sends.size(), is_root ? 2U : 0U);
    if (is_root) {
      EXPECT_EQ(scattered.sends[1].from, &buffer[9]);
    }
  }
}

TEST(NcclCalls, TheRootOfABroadcastAndAReductionIsTold) {
  NcclGroup world(2);
  std::array<std::uint16_t, 6> buffer{};
  for (int r = 0; r < 2; ++r) {
    require_ok(broadcast(world.group(r), {.input = r == 1 ? buffer.data() : nullptr,
                                          .output = &buffer[3],
                                          .count = 3,
                                          .dtype = DataType::kBfloat16,
                                          .root = 1,
                                          .stream = world.stream(r),
                                          .options = {.algorithm = "nccl"}}));
    const NcclBroadcast sent = calls_named(world.nccl, "broadcast").back().broadcast;
    EXPECT_EQ(sent.root, 1);
    EXPECT_EQ(sent.bytes, 6U);
    EXPECT_EQ(sent.output, &buffer[3]);
    require_ok(reduce(world.group(r), {.input = buffer.data(),
                                       .output = r == 1 ? &buffer[3] : nullptr,
                                       .count = 3,
                                       .dtype = DataType::kBfloat16,
                                       .op = ReduceOp::max(),
                                       .root = 1,
                                       .stream = world.stream(r),
                                       .options = {.algorithm = "nccl"}}));
    const NcclReduction reduced = calls_named(world.nccl, "reduce").back().reduction;
    EXPECT_EQ(reduced.root, 1);
    EXPECT_EQ(reduced.count, 3U);
    EXPECT_EQ(reduced.op.kind, OpKind::kMax);
  }
}

// Pieces one behind the other, and no message for what is empty.
TEST(NcclCalls, UnevenPiecesAreExchanged) {
  NcclGroup world(2);
  std::array<std::uint16_t, 24> buffer{};
  for (int r = 0; r < 2; ++r) {
    const std::array<std::size_t, 2> sent =
        r == 0 ? std::array<std::size_t, 2>{3, 0} : std::array<std::size_t, 2>{4, 2};
    const std::array<std::size_t, 2> taken =
        r == 0 ? std::array<std::size_t, 2>{3, 4} : std::array<std::size_t, 2>{0, 2};
    require_ok(all_to_all_v(world.group(r), {.input = buffer.data(),
                                             .output = &buffer[12],
                                             .send_counts = sent.data(),
                                             .recv_counts = taken.data(),
                                             .max_count = 4,
                                             .dtype = DataType::kBfloat16,
                                             .stream = world.stream(r),
                                             .options = {.algorithm = "nccl"}}));
    const NcclExchange call = calls_named(world.nccl, "exchange").back().exchange;
    ASSERT_EQ(call.sends.size(), r == 0 ? 1U : 2U);
    ASSERT_EQ(call.receives.size(), r == 0 ? 2U : 1U);
    EXPECT_EQ(call.sends.back().from, r == 0 ? &buffer[0] : &buffer[4]);
    EXPECT_EQ(call.sends.back().bytes, r == 0 ? 6U : 4U);
    EXPECT_EQ(call.receives.back().rank, 1);
    EXPECT_EQ(call.receives.back().to, r == 0 ? &buffer[15] : &buffer[12]);
    EXPECT_EQ(call.receives.back().bytes, r == 0 ? 8U : 4U);
  }
}

TEST(NcclCalls, WhatIsGatheredUnevenlyIsTheSameForEveryRank) {
  NcclGroup world(2);
  std::array<std::uint16_t, 24> buffer{};
  const std::array<std::size_t, 2> counts{3, 2};
  for (int r = 0; r < 2; ++r) {
    require_ok(all_gather_v(world.group(r), {.input = buffer.data(),
                                             .output = &buffer[12],
                                             .counts = counts.data(),
                                             .dtype = DataType::kBfloat16,
                                             .stream = world.stream(r),
                                             .options = {.algorithm = "nccl"}}));
    const NcclExchange call = calls_named(world.nccl, "exchange").back().exchange;
    ASSERT_EQ(call.sends.size(), 2U);
    for (const auto& send : call.sends) {
      EXPECT_EQ(send.from, buffer.data());
      EXPECT_EQ(send.bytes, 2 * counts[static_cast<std::size_t>(r)]);
    }
    EXPECT_EQ(call.receives[1].to, &buffer[15]);
    EXPECT_EQ(call.receives[1].bytes, 4U);
  }
}

// A reduction to the owner of each piece that has any elements.
TEST(NcclCalls, UnevenPiecesAreReducedToTheirRanks) {
  NcclGroup world(2);
  const auto reduced = [&] { return calls_named(world.nccl, "reduce"); };
  std::array<float, 24> buffer{};
  const std::array<std::size_t, 2> both{3, 2}, one{0, 5};
  for (int r = 0; r < 2; ++r) {
    const ReduceScatterV call{.input = buffer.data(),
                              .output = &buffer[12],
                              .counts = both.data(),
                              .op = ReduceOp::max(),
                              .stream = world.stream(r),
                              .options = {.algorithm = "nccl"}};
    std::size_t before = reduced().size();
    require_ok(reduce_scatter_v(world.group(r), call));
    if (r == 0) before = reduced().size() - 2;  // the first call has warmed NCCL up
    const auto calls = reduced();
    ASSERT_EQ(calls.size(), before + 2);
    for (int root = 0; root < 2; ++root) {
      const NcclReduction& each = calls[before + static_cast<std::size_t>(root)].reduction;
      EXPECT_EQ(each.root, root);
      EXPECT_EQ(each.input, &buffer[root == 0 ? 0 : 3]);
      EXPECT_EQ(each.output, &buffer[12]);
      EXPECT_EQ(each.count, both[static_cast<std::size_t>(root)]);
      EXPECT_EQ(each.op.kind, OpKind::kMax);
    }
    ReduceScatterV other = call;
    other.counts = one.data();
    require_ok(reduce_scatter_v(world.group(r), other));
    EXPECT_EQ(reduced().size(), before + 3);
  }
}

}  // namespace
}  // namespace tutti::test
