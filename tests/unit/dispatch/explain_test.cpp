#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "dispatch/choose.hpp"
#include "unit/dispatch/rows.hpp"
#include "unit/tuning/entries.hpp"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

Request megabyte() {
  Request request;
  request.count = 524288;
  request.dtype = DataType::kBfloat16;
  return request;
}

TEST(Explain, SaysWhatWasAskedWhatIsTakenAndWhyOfEachRow) {
  Topology topology = eight_h200();
  topology.nccl = false;
  const std::string text = explain(megabyte(), topology, TuningTable::empty(), kTestRows);
  EXPECT_THAT(text, HasSubstr("all_reduce of 1M (524288 x bf16, sum), symmetric\n"));
  EXPECT_THAT(text, HasSubstr(to_text(topology)));
  EXPECT_THAT(text, HasSubstr("plan: all_reduce/lean, 1025 x 256 threads (model)\n"));
  EXPECT_THAT(text, ContainsRegex("  \\* all_reduce/lean +[0-9.]+ us  cost model\n"));
  EXPECT_THAT(text, ContainsRegex("    all_reduce/quick +[0-9.]+ us  cost model\n"));
  EXPECT_THAT(text, ContainsRegex("    all_reduce/nccl +-  needs NCCL"));
}

TEST(Explain, MeasuredTimesNameTheirSource) {
  TuningEntry entry = entry_of(0, 2 * MiB, "all_reduce/lean");
  entry.time_us = 12.25;
  entry.runner_up = "all_reduce/nccl";
  entry.runner_up_us = 24.5;
  const auto table =
      TuningTable::from_sources({{PlanSource::kShipped, "shipped h200.json", {entry}}});
  const auto rows = candidates(megabyte(), eight_h200(), *table, kTestRows);
  ASSERT_EQ(rows.size(), std::size(kTestRows));
  EXPECT_TRUE(rows[1].chosen);
  EXPECT_EQ(rows[1].predicted_us, 12.25);
  EXPECT_THAT(rows[1].why, AllOf(HasSubstr("measured on 2026-11-20"), HasSubstr("50 samples"),
                                 HasSubstr("shipped h200.json")));
  EXPECT_EQ(rows[4].predicted_us, 24.5);
  EXPECT_EQ(rows[0].why, "cost model");
  EXPECT_FALSE(rows[3].possible);
  EXPECT_EQ(rows[3].predicted_us, 0);
}

TEST(Explain, SaysWhatStagingDoesToATablesChoice) {
  const auto table = TuningTable::from_sources(
      {{PlanSource::kShipped, "shipped h200.json", {entry_of(0, 2 * MiB, "all_reduce/lean")}}});
  Request request = megabyte();
  request.symmetric = false;
  request.staging_bytes = 64 * KiB;
  const std::string text = explain(request, eight_h200(), *table, kTestRows);
  EXPECT_THAT(text, HasSubstr(", staged\n"));
  EXPECT_THAT(text,
              HasSubstr("cost model, 16 passes through 64K of staging; shipped h200.json names "
                        "it for symmetric buffers, but staged it is expected to be slower "
                        "than nccl\n"));
  EXPECT_THAT(text, ContainsRegex("  \\* all_reduce/nccl +[0-9.]+ us  cost model\n"));

  request.staging_bytes = MiB;  // one pass: the table's row stays
  EXPECT_THAT(explain(request, eight_h200(), *table, kTestRows),
              HasSubstr("1 pass through 1M of staging; shipped h200.json names it for symmetric "
                        "buffers\n"));
}

TEST(Explain, WithoutAPlanSaysWhy) {
  Request request = megabyte();
  request.algorithm = "switch";
  const std::string text = explain(request, eight_h200(), TuningTable::empty(), kTestRows);
  EXPECT_THAT(text, HasSubstr("no plan: all_reduce/switch was asked for, but needs NVLink"));
  EXPECT_THAT(text, testing::Not(HasSubstr("*")));
}

TEST(Plans, AsText) {
  EXPECT_EQ(to_string(Plan{"all_reduce/lean", 64, 512, 256 * KiB, PlanSource::kShipped}),
            "all_reduce/lean, 64 x 512 threads, chunks of 256K (shipped)");
  EXPECT_EQ(to_string(Plan{"all_reduce/nccl", 0, 0, 0, PlanSource::kCall}),
            "all_reduce/nccl (call)");
}

}  // namespace
}  // namespace tutti
