// What is chosen for a group of one rank.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "planning/choose.hpp"
#include "unit/planning/entries.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

// Where nothing is computed no row runs; one that is named does, and where NCCL was asked for it is
// NCCL.
TEST(ChooseAlone, OneRankCopies) {
  Topology topology = eight_h200();
  topology.ranks = 1;
  for (const Collective collective : kAllCollectives) {
    Request request = bytes_of(8 * KiB);
    request.collective = collective;
    request.dtype = DataType::kBfloat16;
    request.packet_bytes = MiB;
    const bool norm = collective == Collective::kAllReduceResidualRmsNorm;
    if (norm) request.hidden = 1024;
    const auto alone = [&] {
      const auto plan = choose(request, topology, TuningTable::empty());
      EXPECT_TRUE(plan.is_ok()) << plan.status().to_string();
      return plan.is_ok() && plan->alone;
    };
    const bool copies = !norm && collective != Collective::kSendRecv;
    EXPECT_EQ(alone(), copies) << to_string(collective);
    topology.ranks = 2;
    EXPECT_FALSE(alone()) << to_string(collective);
    topology.ranks = 1;
    if (collective == Collective::kBarrier) continue;
    request.only_nccl = collective != Collective::kAllReduceResidualRmsNorm;
    EXPECT_FALSE(alone()) << to_string(collective);
    request.only_nccl = false;
    request.algorithm = rows_of(collective).front().name();
    EXPECT_FALSE(alone()) << to_string(collective);
    const std::string tune = fmt::format("{}:@{}", to_string(collective), request.algorithm);
    request.tune = tune;
    request.algorithm = {};
    EXPECT_FALSE(alone()) << to_string(collective);
    request.tune = {};
    if (!reduces(collective) || norm) continue;
    request.op = OpKind::kAvg;
    EXPECT_TRUE(alone()) << "the average of one";
    request.op = OpKind::kPreMulSum;
    EXPECT_FALSE(alone()) << to_string(collective);
  }
  Request counted = bytes_of(64);
  counted.collective = Collective::kAllGatherV;
  counted.packet_bytes = MiB;
  EXPECT_TRUE(choose(counted, topology, TuningTable::empty())->alone);
  counted.counts_on_device = true;
  EXPECT_FALSE(choose(counted, topology, TuningTable::empty())->alone);
}

TEST(ChooseAlone, ExplainSaysSo) {
  Topology topology = eight_h200();
  topology.ranks = 1;
  const std::string text = explain(bytes_of(64), topology, TuningTable::empty(), kTestRows);
  EXPECT_THAT(text, testing::HasSubstr("plan: all_reduce/quick: one rank alone, a copy (model)\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("; one rank alone: its input is copied, and no kernel runs\n"));
}

}  // namespace
}  // namespace tutti
