#include "bench/measurement.hpp"

#include <gtest/gtest.h>

namespace tutti {

static void PrintTo(OpKind op, std::ostream* out) { *out << to_string(op); }

}  // namespace tutti

namespace tutti::cli {
namespace {

TEST(Report, MeasurementSurvivesTheJourney) {
  Measurement sent;
  sent.size = 3;
  sent.algorithm = "two_shot";
  sent.in_place = true;
  sent.chosen = true;
  sent.last = true;
  sent.plan = {.algorithm = "all_reduce/two_shot",
               .blocks = 4,
               .threads = 256,
               .chunk_bytes = 4096,
               .source = PlanSource::kShipped};
  sent.samples_us = {1.25, 3.5};
  sent.unstaged_us = {1};
  sent.sent_bytes = 4096.5;
  sent.cpu_share = 0.75;
  sent.wrong = 7;
  sent.first_wrong = "rank 1";
  const auto received = report_from_json_text(to_json_text(sent));
  ASSERT_TRUE(received.is_ok()) << received.status().to_string();
  const auto& got = std::get<Measurement>(*received);
  EXPECT_EQ(got.size, sent.size);
  EXPECT_EQ(got.algorithm, sent.algorithm);
  EXPECT_TRUE(got.in_place && got.chosen && got.last);
  EXPECT_EQ(got.plan, sent.plan);
  EXPECT_EQ(got.samples_us, sent.samples_us);
  EXPECT_EQ(got.unstaged_us, sent.unstaged_us);
  EXPECT_EQ(got.sent_bytes, sent.sent_bytes);
  EXPECT_EQ(got.cpu_share, sent.cpu_share);
  EXPECT_EQ(got.wrong, sent.wrong);
  EXPECT_EQ(got.first_wrong, sent.first_wrong);
}

TEST(Report, OverlapSurvivesTheJourney) {
  const OverlapMeasurement sent{.phase = Phase::kSequential,
                                .algorithm = "copy_engine",
                                .chosen = true,
                                .plan = {.algorithm = "all_gather/copy_engine", .blocks = 3},
                                .library = "cuBLASLt 13.0.2",
                                .samples_us = {3, 4},
                                .matmul_us = {1, 1.5},
                                .gather_us = {2, 2.5},
                                .megahertz = {1980, 1755},
                                .wrong = 7,
                                .first_wrong = "rank 1"};
  const auto received = report_from_json_text(to_json_text(sent));
  ASSERT_TRUE(received.is_ok()) << received.status().to_string();
  const auto& got = std::get<OverlapMeasurement>(*received);
  EXPECT_EQ(got.phase, sent.phase);
  EXPECT_EQ(got.algorithm, sent.algorithm);
  EXPECT_EQ(got.chosen, sent.chosen);
  EXPECT_EQ(got.plan, sent.plan);
  EXPECT_EQ(got.library, sent.library);
  EXPECT_EQ(got.samples_us, sent.samples_us);
  EXPECT_EQ(got.matmul_us, sent.matmul_us);
  EXPECT_EQ(got.gather_us, sent.gather_us);
  EXPECT_EQ(got.megahertz, sent.megahertz);
  EXPECT_EQ(got.wrong, sent.wrong);
  EXPECT_EQ(got.first_wrong, sent.first_wrong);
}

TEST(Report, GatherMatmulSurvivesTheJourney) {
  const GatherMatmulMeasurement sent{.setting = 2,
                                     .algorithm = "fused",
                                     .config = "128x256x64",
                                     .library = "cuBLASLt 13.0.2",
                                     .last = true,
                                     .samples_us = {3, 4},
                                     .host_us = 41.5,
                                     .megahertz = 1755,
                                     .wrong = 7,
                                     .first_wrong = "rank 1"};
  const auto received = report_from_json_text(to_json_text(sent));
  ASSERT_TRUE(received.is_ok()) << received.status().to_string();
  const auto& got = std::get<GatherMatmulMeasurement>(*received);
  EXPECT_EQ(got.setting, sent.setting);
  EXPECT_EQ(got.algorithm, sent.algorithm);
  EXPECT_EQ(got.config, sent.config);
  EXPECT_EQ(got.library, sent.library);
  EXPECT_TRUE(got.last);
  EXPECT_EQ(got.samples_us, sent.samples_us);
  EXPECT_EQ(got.host_us, sent.host_us);
  EXPECT_EQ(got.megahertz, sent.megahertz);
  EXPECT_EQ(got.wrong, sent.wrong);
  EXPECT_EQ(got.first_wrong, sent.first_wrong);
}

TEST(Report, UncheckedStaysUnchecked) {
  const auto received = report_from_json_text(to_json_text(Measurement{.algorithm = "x"}));
  ASSERT_TRUE(received.is_ok());
  EXPECT_EQ(std::get<Measurement>(*received).wrong, std::nullopt);
}

TEST(Report, OtherKindsSurviveTheJourney) {
  const auto skipped = report_from_json_text(to_json_text(Skipped{"nccl", "not found \xff"}));
  ASSERT_TRUE(skipped.is_ok());
  EXPECT_EQ(std::get<Skipped>(*skipped).algorithm, "nccl");
  const auto failure = report_from_json_text(to_json_text(Failure{StatusCode::kTimeout, "late"}));
  ASSERT_TRUE(failure.is_ok());
  EXPECT_EQ(std::get<Failure>(*failure).code, StatusCode::kTimeout);
  EXPECT_EQ(std::get<Failure>(*failure).text, "late");
  EXPECT_TRUE(std::holds_alternative<Alive>(*report_from_json_text(to_json_text(Alive{}))));
  EXPECT_TRUE(std::holds_alternative<Done>(*report_from_json_text(to_json_text(Done{}))));
}

TEST(Report, WhatIsTunedSurvivesTheJourney) {
  const auto trying = report_from_json_text(to_json_text(Trying{4, "one_shot"}));
  ASSERT_TRUE(trying.is_ok());
  EXPECT_EQ(std::get<Trying>(*trying).size, 4u);
  EXPECT_EQ(std::get<Trying>(*trying).candidate, "one_shot");
  const auto dropped = report_from_json_text(to_json_text(Dropped{5, "two_shot", "wrong"}));
  ASSERT_TRUE(dropped.is_ok());
  EXPECT_EQ(std::get<Dropped>(*dropped).size, 5u);
  EXPECT_EQ(std::get<Dropped>(*dropped).candidate, "two_shot");
  EXPECT_EQ(std::get<Dropped>(*dropped).why, "wrong");
  const Tuned sent{.size = 6,
                   .best = {.algorithm = "ring", .blocks = 4, .threads = 64, .chunk_bytes = 4096},
                   .time_us = 1.5,
                   .samples = 50,
                   .runner_up = "two_shot",
                   .runner_up_us = 2.5};
  const auto tuned = report_from_json_text(to_json_text(sent));
  ASSERT_TRUE(tuned.is_ok());
  const auto& got = std::get<Tuned>(*tuned);
  EXPECT_EQ(got.size, sent.size);
  EXPECT_EQ(got.best, sent.best);
  EXPECT_EQ(got.time_us, sent.time_us);
  EXPECT_EQ(got.samples, sent.samples);
  EXPECT_EQ(got.runner_up, sent.runner_up);
  EXPECT_EQ(got.runner_up_us, sent.runner_up_us);
}

class OperationReport : public testing::TestWithParam<std::optional<OpKind>> {};

TEST_P(OperationReport, SurvivesTheJourney) {
  RecordedOperation sent;
  sent.sequence = 7;
  sent.row = "all_reduce/one_shot";
  sent.count = 3;
  sent.bytes = 6;
  sent.dtype = DataType::kBfloat16;
  sent.op = GetParam();
  sent.state = OperationState::kDone;
  sent.started_ns = 1'000'000'000'000'000'007;
  sent.ended_ns = sent.started_ns + 5;
  Operations report;
  report.operations.push_back(sent);
  const auto received = report_from_json_text(to_json_text(report));
  ASSERT_TRUE(received.is_ok()) << received.status().to_string();
  const RecordedOperation& got = std::get<Operations>(*received).operations.at(0);
  EXPECT_EQ(to_string(got), to_string(sent));
  EXPECT_EQ(got.bytes, sent.bytes);
  EXPECT_EQ(got.state, sent.state);
  EXPECT_EQ(got.started_ns, sent.started_ns);
  EXPECT_EQ(got.ended_ns, sent.ended_ns);
}

INSTANTIATE_TEST_SUITE_P(Ops, OperationReport, testing::Values(OpKind::kMax, std::nullopt),
                         [](const auto& tested) { return tested.param ? "max" : "none"; });

TEST(Report, NoiseIsRefused) {
  for (const char* noise :
       {"", "{", "[]", "7", "{\"kind\":\"party\"}", "{\"kind\":\"measurement\"}",
        "{\"kind\":\"failure\",\"code\":\"x\",\"text\":\"\"}"}) {
    EXPECT_EQ(report_from_json_text(noise).status().code(), StatusCode::kMismatch) << noise;
  }
}

}  // namespace
}  // namespace tutti::cli
