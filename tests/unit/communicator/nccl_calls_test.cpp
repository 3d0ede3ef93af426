// What NCCL is given of each collective.
#include <gtest/gtest.h>

#include <array>

#include "nccl_group.hpp"

namespace tutti::test {
namespace {

constexpr milliseconds kEnough{1000};  // for ranks that call one behind the other

std::vector<FakeNccl::Call> calls_named(const FakeNccl& nccl, std::string_view name) {
  std::vector<FakeNccl::Call> calls = nccl.calls();
  std::erase_if(calls, [name](const FakeNccl::Call& call) { return call.name != name; });
  return calls;
}

// As bytes, of one rank: from its place in the output, where it is in place. prepare_nccl() has run
// both collectives.
TEST(NcclCalls, WhatIsGatheredTravelsAsBytes) {
  NcclGroup world(2, kEnough);
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
  NcclGroup world(2, kEnough);
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
  NcclGroup world(2, kEnough);
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
  NcclGroup world(2, kEnough);
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
  NcclGroup world(2, kEnough);
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

}  // namespace
}  // namespace tutti::test
