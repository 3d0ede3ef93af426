// Numbers in the arguments of every public call, at the ends of their types.
//
// The structured bindings fail to compile where a struct gets a field, or loses one: if the new one
// is a number, it belongs into the test below the binding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "support/check.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int kLeastInt = std::numeric_limits<int>::min();
constexpr int kMostInt = std::numeric_limits<int>::max();
constexpr float kUnbounded = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
// Of elements of four bytes, more than any memory holds.
const std::vector<std::size_t> kTooMany = {
    kMostBytes,           std::size_t{1} << 62, std::size_t{INT64_MAX},
    std::size_t{1} << 63, SIZE_MAX / 4,         SIZE_MAX};
// Of a group of one rank, all but rank 0.
const std::vector<int> kNoRank = {kLeastInt, -1, 1, kMostInt};

// A group of one rank, whose calls need nobody else.
class Fields : public testing::Test {
 protected:
  Communicator& group() { return groups_.front(); }

  // `call` is right, and is refused with its `field` at any of the `values`. A refusal says whose
  // it is, and leaves the group usable.
  template <class AnyCall, class Field, class Values>
  void refuses(const AnyCall& call, Field AnyCall::*field, const Values& values) {
    for (const auto& value : values) {
      AnyCall wrong = call;
      wrong.*field = value;
      expect_refused(run(wrong), testing::PrintToString(value));
    }
    require_ok(run(call));
  }

  template <class AnyCall>
  void refuses_types(const AnyCall& call) {
    refuses(call, &AnyCall::dtype,
            std::array{static_cast<DataType>(12), static_cast<DataType>(255)});
    if constexpr (requires { call.op; }) {
      refuses(call, &AnyCall::op,
              std::array{ReduceOp{static_cast<OpKind>(6)}, ReduceOp{static_cast<OpKind>(255)}});
    }
  }

  template <class AnyCall>
  void refuses_options(const AnyCall& call) {
    [[maybe_unused]] const auto& [algorithm, timeout, blocks, threads, chunk_bytes, sm_budget] =
        call.options;
    for (const CallOptions& options :
         {CallOptions{.timeout = milliseconds(-1)}, CallOptions{.timeout = milliseconds::min()},
          CallOptions{.blocks = -1}, CallOptions{.blocks = kLeastInt}, CallOptions{.threads = -1},
          CallOptions{.threads = kLeastInt}, CallOptions{.chunk_bytes = SIZE_MAX},
          CallOptions{.chunk_bytes = std::size_t{1} << 63}, CallOptions{.sm_budget = -1},
          CallOptions{.sm_budget = kLeastInt}}) {
      AnyCall wrong = call;
      wrong.options = options;
      expect_refused(run(wrong), "options");
    }
    AnyCall most = call;
    most.options = {.timeout = milliseconds::max(),
                    .blocks = kMostInt,
                    .threads = kMostInt,
                    .chunk_bytes = std::size_t{1} << 40,
                    .sm_budget = kMostInt};
    require_ok(run(most));
  }

  void expect_refused(const Status& status, const std::string& what) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << what << ": " << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(": ")) << what;
    EXPECT_TRUE(group().status().is_ok()) << what << ": " << group().status().to_string();
  }

  Status run(const AllReduce& call) { return all_reduce(group(), call); }
  Status run(const AllGather& call) { return all_gather(group(), call); }
  Status run(const ReduceScatter& call) { return reduce_scatter(group(), call); }
  Status run(const AllToAll& call) { return all_to_all(group(), call); }
  Status run(const Broadcast& call) { return broadcast(group(), call); }
  Status run(const Reduce& call) { return reduce(group(), call); }
  Status run(const Gather& call) { return gather(group(), call); }
  Status run(const Scatter& call) { return scatter(group(), call); }
  Status run(const AllGatherV& call) { return all_gather_v(group(), call); }
  Status run(const ReduceScatterV& call) { return reduce_scatter_v(group(), call); }
  Status run(const AllToAllV& call) { return all_to_all_v(group(), call); }
  Status run(const Barrier& call) { return barrier(group(), call); }
  Status run(const Put& call) { return put(group(), call); }
  Status run(const Get& call) { return get(group(), call); }
  Status run(const Signal& call) { return signal(group(), call); }
  Status run(const WaitSignal& call) { return wait_signal(group(), call); }
  Status run(const AllReduceResidualRmsNorm& call) {
    return all_reduce_residual_rms_norm(group(), call);
  }
  Status run(const AllGatherMatmul& call) { return all_gather_matmul(group(), call); }
  // A message of the rank's to itself takes a group of both ends.
  Status run(const Send& call) {
    group_start();
    const Status sent = send(group(), call);
    const Status taken =
        sent.is_ok()
            ? recv(group(), {.buffer = to_.data(), .count = kCount, .options = call.options})
            : sent;
    const Status ended = group_end();
    return taken.is_ok() ? ended : taken;
  }
  Status run(const Recv& call) {
    group_start();
    const Status taken = recv(group(), call);
    const Status sent =
        taken.is_ok()
            ? send(group(), {.buffer = from_.data(), .count = kCount, .options = call.options})
            : taken;
    const Status ended = group_end();
    return sent.is_ok() ? ended : sent;
  }

  static constexpr std::size_t kCount = 4;
  std::vector<Communicator> groups_ = groups_of(1);
  alignas(16) std::array<float, kCount> from_{1, 2, 3, 4}, to_{};
};

TEST_F(Fields, OfAllGatherMatmuls) {
  const AllGatherMatmul call{.a = from_.data(),
                             .b = from_.data(),
                             .c = to_.data(),
                             .m = 2,
                             .n = 2,
                             .k = 2,
                             .dtype = DataType::kFloat32};
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15,
                                f16, f17, f18, f19, f20, f21] = call;
  for (const auto field : {&AllGatherMatmul::m, &AllGatherMatmul::n, &AllGatherMatmul::k,
                           &AllGatherMatmul::lda, &AllGatherMatmul::ldb, &AllGatherMatmul::ldc}) {
    refuses(call, field, kTooMany);
  }
  refuses_types(call);
  refuses(call, &AllGatherMatmul::b_layout,
          std::array{static_cast<MatrixLayout>(2), static_cast<MatrixLayout>(255)});
  refuses(call, &AllGatherMatmul::timeout, std::array{milliseconds(-1), milliseconds::min()});
  using Pipeline = AllGatherMatmulPipeline;
  refuses(call, &AllGatherMatmul::pipeline,
          std::array{Pipeline{.protocol = "push"}, Pipeline{.mover = "hand"},
                     Pipeline{.streams = 0}, Pipeline{.streams = -1}, Pipeline{.streams = kMostInt},
                     Pipeline{.tiles = 0}, Pipeline{.tiles = kMostInt}});
  refuses(call, &AllGatherMatmul::fused,
          std::array{AllGatherMatmulFused{.transport = "push"}, AllGatherMatmulFused{""}});
  AllGatherMatmul most = call;
  most.timeout = milliseconds::max();
  most.workspace_bytes = SIZE_MAX;
  require_ok(run(most));
}

TEST_F(Fields, OfReductions) {
  const AllReduce all{.input = from_.data(), .output = to_.data(), .count = kCount};
  [[maybe_unused]] const auto& [a1, a2, a3, a4, a5, a6, a7] = all;
  refuses(all, &AllReduce::count, kTooMany);
  refuses_types(all);
  refuses_options(all);

  const ReduceScatter part{.input = from_.data(), .output = to_.data(), .count = kCount};
  [[maybe_unused]] const auto& [s1, s2, s3, s4, s5, s6, s7, s8] = part;
  refuses(part, &ReduceScatter::count, kTooMany);
  refuses(part, &ReduceScatter::rows,
          std::vector<std::size_t>{3, 1u << 31, SIZE_MAX / 2, SIZE_MAX});
  refuses_types(part);
  refuses_options(part);

  const Reduce one{.input = from_.data(), .output = to_.data(), .count = kCount};
  [[maybe_unused]] const auto& [r1, r2, r3, r4, r5, r6, r7, r8] = one;
  refuses(one, &Reduce::count, kTooMany);
  refuses(one, &Reduce::root, kNoRank);
  refuses_types(one);
  refuses_options(one);
}

TEST_F(Fields, OfMovements) {
  const AllGather all{.input = from_.data(), .output = to_.data(), .count = kCount};
  [[maybe_unused]] const auto& [a1, a2, a3, a4, a5, a6] = all;
  refuses(all, &AllGather::count, kTooMany);
  refuses_types(all);
  refuses_options(all);

  const AllToAll each{.input = from_.data(), .output = to_.data(), .count = kCount};
  [[maybe_unused]] const auto& [e1, e2, e3, e4, e5, e6] = each;
  refuses(each, &AllToAll::count, kTooMany);
  refuses_types(each);
  refuses_options(each);

  const Barrier none{};
  [[maybe_unused]] const auto& [b1, b2] = none;
  refuses_options(none);
}

template <class Rooted>
Rooted rooted(const void* from, void* to) {
  return {.input = from, .output = to, .count = 4};
}

TEST_F(Fields, OfMovementsWithARoot) {
  [[maybe_unused]] const auto& [b1, b2, b3, b4, b5, b6, b7] = Broadcast{};
  [[maybe_unused]] const auto& [g1, g2, g3, g4, g5, g6, g7] = Gather{};
  [[maybe_unused]] const auto& [s1, s2, s3, s4, s5, s6, s7] = Scatter{};
  const auto each = [&]<class Rooted>(const Rooted& call) {
    refuses(call, &Rooted::count, kTooMany);
    refuses(call, &Rooted::root, kNoRank);
    refuses_types(call);
    refuses_options(call);
  };
  each(rooted<Broadcast>(from_.data(), to_.data()));
  each(rooted<Gather>(from_.data(), to_.data()));
  each(rooted<Scatter>(from_.data(), to_.data()));
}

TEST_F(Fields, OfPiecesOfAnyLengths) {
  const std::size_t count = kCount;
  const AllGatherV all{.input = from_.data(), .output = to_.data(), .counts = &count};
  const ReduceScatterV part{.input = from_.data(), .output = to_.data(), .counts = &count};
  const AllToAllV each{.input = from_.data(),
                       .output = to_.data(),
                       .send_counts = &count,
                       .recv_counts = &count,
                       .max_count = count};
  [[maybe_unused]] const auto& [a1, a2, a3, a4, a5, a6, a7] = all;
  [[maybe_unused]] const auto& [p1, p2, p3, p4, p5, p6, p7, p8] = part;
  [[maybe_unused]] const auto& [e1, e2, e3, e4, e5, e6, e7, e8, e9] = each;
  [[maybe_unused]] const auto& [d1, d2, d3] = all.device_counts;
  refuses_types(all);
  refuses_options(all);
  refuses_types(part);
  refuses_options(part);
  refuses_types(each);
  refuses_options(each);
  refuses(each, &AllToAllV::max_count, kTooMany);
  for (const std::size_t wrong : kTooMany) {
    refuses(all, &AllGatherV::counts, std::array{&wrong});
    refuses(part, &ReduceScatterV::counts, std::array{&wrong});
    refuses(each, &AllToAllV::send_counts, std::array{&wrong});
    refuses(each, &AllToAllV::recv_counts, std::array{&wrong});
    AllGatherV on_device = all;
    on_device.counts = nullptr;
    on_device.device_counts = {.given = &count, .max_count = wrong};
    expect_refused(run(on_device), "max_count");
  }
}

TEST_F(Fields, OfMessages) {
  const Send send{.buffer = from_.data(), .count = kCount};
  const Recv recv{.buffer = to_.data(), .count = kCount};
  [[maybe_unused]] const auto& [s1, s2, s3, s4, s5, s6] = send;
  [[maybe_unused]] const auto& [r1, r2, r3, r4, r5, r6] = recv;
  refuses(send, &Send::count, kTooMany);
  refuses(send, &Send::peer, kNoRank);
  refuses_types(send);
  refuses_options(send);
  refuses(recv, &Recv::count, kTooMany);
  refuses(recv, &Recv::peer, kNoRank);
  refuses_types(recv);
  refuses_options(recv);
}

TEST_F(Fields, OfOneSidedCalls) {
  auto memory = take(group().allocate(64));
  const Put put{.from = from_.data(), .to = memory.data(), .count = kCount};
  const Get get{.from = memory.data(), .to = to_.data(), .count = kCount};
  [[maybe_unused]] const auto& [p1, p2, p3, p4, p5, p6, p7] = put;
  [[maybe_unused]] const auto& [g1, g2, g3, g4, g5, g6, g7] = get;
  refuses(put, &Put::count, kTooMany);
  refuses(put, &Put::peer, kNoRank);
  refuses_types(put);
  refuses(get, &Get::count, kTooMany);
  refuses(get, &Get::peer, kNoRank);
  refuses_types(get);

  const Signal signal{};
  const WaitSignal wait{};
  [[maybe_unused]] const auto& [s1, s2, s3] = signal;
  [[maybe_unused]] const auto& [w1, w2, w3, w4, w5] = wait;
  const std::array no_channel = {kLeastInt, -1, device::kSignalChannels, kMostInt};
  refuses(signal, &Signal::peer, kNoRank);
  refuses(signal, &Signal::channel, no_channel);
  require_ok(run(signal));  // refuses() sends one, too: there is one for each wait below
  require_ok(run(signal));
  refuses(wait, &WaitSignal::peer, kNoRank);
  refuses(wait, &WaitSignal::channel, no_channel);
  refuses(wait, &WaitSignal::times,
          std::array<std::uint64_t, 3>{(1ull << 62) + 1, 1ull << 63, UINT64_MAX});
  refuses(wait, &WaitSignal::timeout, std::array{milliseconds(-1), milliseconds::min()});
}

// More of them than have come is no reason to go on.
TEST_F(Fields, ManySignalsAreWaitedFor) {
  require_ok(run(Signal{}));
  const Status waited = run(WaitSignal{.times = 1ull << 62, .timeout = milliseconds(50)});
  EXPECT_EQ(waited.code(), StatusCode::kTimeout) << waited.to_string();
}

TEST_F(Fields, OfNormalisations) {
  constexpr std::size_t kLongToken = 1024;
  std::vector<std::uint16_t> in(kLongToken), residual(kLongToken), weight(kLongToken),
      sum(kLongToken), out(kLongToken);
  const AllReduceResidualRmsNorm norm{.input = in.data(),
                                      .residual = residual.data(),
                                      .weight = weight.data(),
                                      .residual_output = sum.data(),
                                      .output = out.data(),
                                      .tokens = 1,
                                      .hidden = kLongToken};
  [[maybe_unused]] const auto& [n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13] = norm;
  using Norm = AllReduceResidualRmsNorm;
  refuses(norm, &Norm::tokens, kTooMany);
  refuses(norm, &Norm::hidden,
          std::vector<std::size_t>{0, 1, 1016, 1025, 16392, 1ull << 32, SIZE_MAX - 7});
  refuses(norm, &Norm::epsilon, std::array{-1.0F, kUnbounded, -kUnbounded, kNoNumber});
  refuses(norm, &Norm::scale, std::array{0.0F, -1.0F, 2.0F, kUnbounded, kNoNumber});
  refuses(norm, &Norm::dtype, std::array{static_cast<DataType>(255), DataType::kInt8});
  refuses_options(norm);
}

TEST_F(Fields, OfMemory) {
  for (const std::size_t bytes : {std::size_t{0}, kMostBytes + 1, std::size_t{1} << 63, SIZE_MAX}) {
    expect_refused(group().allocate(bytes).status(), "allocate");
    expect_refused(group().register_memory(from_.data(), bytes).status(), "register_memory");
    SymmetricPool pool(group());
    expect_refused(pool.take(bytes).status(), "take");
  }
  expect_refused(group().allocate((std::size_t{1} << 46) + 1).status(), "allocate");
  const auto much = group().allocate(std::size_t{1} << 46);
  EXPECT_EQ(much.status().code(), StatusCode::kResourceExhausted) << much.status().to_string();
}

TEST_F(Fields, OfShardedParameters) {
  const ShardedLayer layer{.shard = from_.data(), .count = kCount};
  const ShardedOptions options{};
  [[maybe_unused]] const auto& [l1, l2, l3] = layer;
  [[maybe_unused]] const auto& [o1, o2, o3] = options;
  const auto made = [&](ShardedLayer one, const ShardedOptions& with) {
    return ShardedParameters::create(group(), {one}, with).status();
  };
  for (const std::size_t count : kTooMany) {
    ShardedLayer wrong = layer;
    wrong.count = count;
    expect_refused(made(wrong, options), "count");
  }
  for (const int depth : {kLeastInt, -1, 0}) expect_refused(made(layer, {.depth = depth}), "depth");
  expect_refused(made(layer, {.gather = {.blocks = -1}}), "gather");
  expect_refused(made(layer, {.reduce = {.sm_budget = -1}}), "reduce");
  const auto sharded = ShardedParameters::create(group(), {layer}, {.depth = kMostInt});
  require_ok(sharded.status());
}

TEST_F(Fields, OfCommunicators) {
  const CommunicatorOptions options{.backend = Backend::kHost};
  [[maybe_unused]] const auto& [c1, c2, c3, c4] = options;
  const auto made = [&](int CommunicatorOptions::*field, int value) {
    CommunicatorOptions wrong = options;
    wrong.*field = value;
    return Communicator::create_in_process(1, wrong).status();
  };
  for (const int device : {kLeastInt, -2}) {
    EXPECT_EQ(made(&CommunicatorOptions::device, device).code(), StatusCode::kInvalidArgument);
  }
  require_ok(made(&CommunicatorOptions::device, kMostInt));  // of the host there is no device
  for (const int ranks : {kLeastInt, -1, 0}) {
    const Status none = Communicator::create_in_process(ranks, options).status();
    EXPECT_EQ(none.code(), StatusCode::kInvalidArgument) << none.to_string();
  }
  const UniqueId id = take(UniqueId::create());
  struct Place {
    int rank, size;
  };
  for (const Place place : {Place{0, kMostInt},
                            {0, 0},
                            {kLeastInt, 1},
                            {-1, 2},
                            {2, 2},
                            {kMostInt, kMostInt},
                            {0, kLeastInt}}) {
    const Status none = Communicator::create(id, place.rank, place.size, options).status();
    EXPECT_EQ(none.code(), StatusCode::kInvalidArgument) << none.to_string();
  }
  for (const int port : {kLeastInt, -1, 65536, kMostInt}) {
    EXPECT_EQ(UniqueId::create_tcp("localhost", port).status().code(),
              StatusCode::kInvalidArgument);
  }
  for (const int color : {kLeastInt, -1, 0, kMostInt}) {
    for (const int key : {kLeastInt, kMostInt}) {
      const auto part = group().split(color, key);
      require_ok(part.status());
      EXPECT_EQ(*part == nullptr, color < 0);
    }
  }
}

// Asked for and not run: any count can be.
TEST_F(Fields, OfQuestions) {
  const Communicator::Query query{.count = kCount};
  [[maybe_unused]] const auto& [q1, q2, q3, q4, q5, q6, q7, q8, q9, q10] = query;
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter", "barrier",
                                 "all_to_all_v", "all_reduce_residual_rms_norm", "broadcast"}) {
    for (const std::size_t count : kTooMany) {
      for (const std::size_t hidden : {std::size_t{0}, std::size_t{1}, SIZE_MAX}) {
        Communicator::Query other = query;
        other.count = count;
        other.hidden = hidden;
        const auto plan = group().plan(collective, other);
        EXPECT_EQ(plan.is_ok(), plan.status().message().empty());
        EXPECT_FALSE(explain(group(), collective, other).empty());
      }
    }
    for (const int budget : {kLeastInt, -1}) {
      Communicator::Query other = query;
      other.sm_budget = budget;
      EXPECT_EQ(group().plan(collective, other).status().code(), StatusCode::kInvalidArgument)
          << collective;
    }
  }
}

TEST_F(Fields, OfMultipliers) {
  struct Case {
    double scalar;
    std::int32_t product;
  };
  for (const Case& each : {Case{kNoNumber, 0},
                           {kUnbounded, INT32_MAX},
                           {-kUnbounded, INT32_MIN},
                           {1e300, INT32_MAX},
                           {0x1p31, INT32_MAX},
                           {-0x1p31 - 1, INT32_MIN},
                           {2.9, 2}}) {
    const std::int32_t one = 1;
    std::int32_t product = -7;
    require_ok(all_reduce(group(), {.input = &one,
                                    .output = &product,
                                    .count = 1,
                                    .dtype = DataType::kInt32,
                                    .op = ReduceOp::pre_mul_sum(each.scalar)}));
    EXPECT_EQ(product, each.product) << each.scalar;
  }
}

}  // namespace
}  // namespace tutti::test
