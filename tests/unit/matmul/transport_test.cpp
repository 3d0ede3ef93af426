// Which transport brings A: a pure function.
#include "matmul/transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "matmul/select.hpp"
#include "some_problem.hpp"

namespace tutti {
namespace {

using test::problem_of;
using test::tile_named;
using ::testing::StartsWith;

TransportQuestion question_of(std::size_t m, std::size_t n, std::size_t k, int ranks) {
  const MatmulProblem problem = problem_of(m, {n}, k);
  return {.problem = problem,
          .tiling = fastest_tile(problem, 132).tiling,
          .plan = {.shards = ranks, .own = 1},
          .multiprocessors = 132};
}

TransportQuestion forced(TransportQuestion question, ArrivalTransport transport) {
  question.forced = transport;
  return question;
}

// A matmul of 83 us cannot hide what copy engines need 140 us for; one of 1.4 ms can.
TEST(Transport, PullersAreForProductsThatAreShorterThanTheGather) {
  const auto small = choose_transport(question_of(4096, 1792, 4096, 4));
  ASSERT_TRUE(small.is_ok());
  EXPECT_EQ(small->transport, ArrivalTransport::kPull) << small->text();
  EXPECT_EQ(small->pullers, 16);
  EXPECT_EQ(small->plan.k_groups, 8);
  EXPECT_EQ(small->plan.own, 1);
  EXPECT_LT(small->pull_us, small->copy_engine_us);
  EXPECT_THAT(small->text(), StartsWith("pulled by 16 blocks, 8 k-groups (predicted: pull "));

  const TransportQuestion question = question_of(16384, 8192, 8192, 4);
  const auto large = choose_transport(question);
  ASSERT_TRUE(large.is_ok());
  EXPECT_EQ(large->transport, ArrivalTransport::kCopyEngine) << large->text();
  EXPECT_EQ(large->pullers, 0);
  EXPECT_EQ(large->plan, question.plan);
  EXPECT_EQ(large->tiling, question.tiling);
  EXPECT_THAT(large->text(), StartsWith("by copy engines"));
}

TEST(Transport, AForcedOneIsTaken) {
  const TransportQuestion large = question_of(16384, 8192, 8192, 4);
  const auto pulled = choose_transport(forced(large, ArrivalTransport::kPull));
  ASSERT_TRUE(pulled.is_ok());
  EXPECT_EQ(pulled->transport, ArrivalTransport::kPull);
  EXPECT_EQ(pulled->text(), "pulled by 16 blocks, 8 k-groups");
  const TransportQuestion small = question_of(4096, 1792, 4096, 4);
  const auto copied = choose_transport(forced(small, ArrivalTransport::kCopyEngine));
  ASSERT_TRUE(copied.is_ok());
  EXPECT_EQ(copied->transport, ArrivalTransport::kCopyEngine);
  EXPECT_EQ(copied->text(), "by copy engines");
}

// Then, and where few SMs are left, as where ranks share a GPU, all else stays possible.
TEST(Transport, WhatPullersCannotBringIsRefusedOnlyWhereTheyAreForced) {
  TransportQuestion few = question_of(4096, 1792, 4096, 4);
  few.multiprocessors = 6;
  const auto copied = choose_transport(few);
  ASSERT_TRUE(copied.is_ok());
  EXPECT_EQ(copied->transport, ArrivalTransport::kCopyEngine);
  const auto refused = choose_transport(forced(few, ArrivalTransport::kPull));
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(refused.status().message(), "6 SMs are too few for blocks that pull");
  few.multiprocessors = 42;
  EXPECT_EQ(choose_transport(forced(few, ArrivalTransport::kPull))->pullers, 10);
}

TEST(Transport, AForcedTileIsKept) {
  TransportQuestion question = question_of(4096, 1792, 4096, 4);
  question.tile = &tile_named("256x128");
  const auto chosen = choose_transport(forced(question, ArrivalTransport::kPull));
  ASSERT_TRUE(chosen.is_ok());
  EXPECT_EQ(chosen->tiling.tile->name, "256x128");
}

TEST(Transport, NamesAreParsed) {
  EXPECT_FALSE(parse_transport("auto")->has_value());
  EXPECT_EQ(*parse_transport("copy_engine"), ArrivalTransport::kCopyEngine);
  EXPECT_EQ(*parse_transport("pull"), ArrivalTransport::kPull);
  const Status unknown = parse_transport("push").status();
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(unknown.message(), "transport \"push\": auto, copy_engine or pull");
}

}  // namespace
}  // namespace tutti
