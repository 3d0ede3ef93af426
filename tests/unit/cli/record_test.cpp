#include "bench/record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "some_record.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

Result<std::vector<Row>> all_rows_of(const GroupOutcome& outcome, const BenchOptions& options) {
  return rows_of(outcome, options, {0, outcome.measurements.front().size()});
}

BenchOptions options_of_two_ranks() {
  BenchOptions options;
  options.ranks = {2};
  options.bytes = {1000};
  return options;
}

Measurement measured(std::vector<double> samples) {
  return {.algorithm = "one_shot", .samples_us = std::move(samples), .wrong = 0};
}

TEST(Rows, CountTheSlowestRank) {
  const GroupOutcome outcome{.ranks = 2,
                             .measurements = {{measured({1, 9, 2})}, {measured({5, 3, 4})}}};
  const auto rows = all_rows_of(outcome, options_of_two_ranks());
  ASSERT_TRUE(rows.is_ok()) << rows.status().to_string();
  const Row& row = rows->front();
  EXPECT_EQ(row.time_us, (Statistics{5, 9, 9, 4, 9, 3}));
  EXPECT_THAT(row.per_rank_p50_us, testing::ElementsAre(2, 4));
  EXPECT_DOUBLE_EQ(row.algbw_gbps, 1000 / 5.0 / 1e3);
  EXPECT_DOUBLE_EQ(row.busbw_gbps, row.algbw_gbps);
  EXPECT_EQ(row.count, 250u);
  EXPECT_EQ(row.graph_operations, 0);
  EXPECT_EQ(row.copy_us, 0);
}

TEST(Rows, AddWrongElementsOverRanks) {
  GroupOutcome outcome{.ranks = 2, .measurements = {{measured({1})}, {measured({1})}}};
  outcome.measurements[0][0].wrong = 3;
  outcome.measurements[1][0].wrong = 4;
  EXPECT_EQ(all_rows_of(outcome, options_of_two_ranks())->front().wrong, 7u);
}

TEST(Rows, ShowWhatCopiesCost) {
  GroupOutcome outcome{.ranks = 2, .measurements = {{measured({10})}, {measured({12})}}};
  outcome.measurements[0][0].unstaged_us = {4};
  outcome.measurements[1][0].unstaged_us = {7};
  EXPECT_DOUBLE_EQ(all_rows_of(outcome, options_of_two_ranks())->front().copy_us, 5);
}

TEST(Rows, TellOfTheBusiestHost) {
  GroupOutcome outcome{.ranks = 2, .measurements = {{measured({10})}, {measured({12})}}};
  outcome.measurements[0][0].sent_bytes = 5000;
  outcome.measurements[1][0].cpu_share = 0.5;
  const Row row = all_rows_of(outcome, options_of_two_ranks())->front();
  EXPECT_EQ(row.sent_bytes, 5000);
  EXPECT_EQ(row.cpu_share, 0.5);
  const Record record{.tutti = "0.1.0", .environment = {}, .rows = {row}};
  const auto back = record_from_json_text(to_json_text(record), "a.json");
  ASSERT_TRUE(back.is_ok()) << back.status().to_string();
  EXPECT_EQ(back->rows.front().sent_bytes, 5000);
  EXPECT_EQ(back->rows.front().cpu_share, 0.5);
}

TEST(Rows, NeedRanksThatMeasuredTheSame) {
  const GroupOutcome missing{.ranks = 2, .measurements = {{measured({1})}, {}}};
  EXPECT_EQ(all_rows_of(missing, options_of_two_ranks()).status().code(), StatusCode::kMismatch);
  Measurement other = measured({1});
  other.plan.blocks = 9;
  const GroupOutcome differing{.ranks = 2, .measurements = {{measured({1})}, {other}}};
  EXPECT_EQ(all_rows_of(differing, options_of_two_ranks()).status().code(), StatusCode::kMismatch);
}

TEST(Record, SurvivesJson) {
  Record record = some_record();
  record.rows[1].wrong = std::nullopt;
  record.rows[2].copy_us = 1.5;
  for (Row& row : record.rows) {  // what is written has three decimals
    row.algbw_gbps = 0.125;
    row.busbw_gbps = 0.25;
  }
  const auto read = record_from_json_text(to_json_text(record), "x.json");
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  EXPECT_EQ(*read, record);
}

TEST(Record, KeepsTheRateOfCopiesWhereItWasMeasured) {
  Record record = some_record();
  EXPECT_EQ(to_json_text(record).find("copy_gbps"), std::string::npos);
  record.environment.calibration = {.copy_gbps = 48.25, .copy_bytes = 1 << 20};
  const auto read = record_from_json_text(to_json_text(record), "x.json");
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  EXPECT_EQ(read->environment, record.environment);
}

TEST(Record, KeepsTheVersionOfAPeer) {
  Record peer = some_record();
  peer.environment.torch = "2.11.0+cu130";
  peer.environment.vllm = "0.33.0";
  const auto read = record_from_json_text(to_json_text(peer), "x.json");
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  EXPECT_EQ(read->environment, peer.environment);
  EXPECT_EQ(to_json_text(some_record()).find("torch"), std::string::npos);
  EXPECT_FALSE(check_same_machine(peer, some_record()));  // nothing of tutti goes into its file
}

TEST(Record, KeepsTheCommitAndWhyThereIsNoMulticast) {
  Record record = some_record();
  record.rows.clear();
  record.environment.why_no_multicast = "this build has none";
  const std::string text = to_json_text(record);
  EXPECT_THAT(text, testing::StartsWith("{\"schema\": \"tutti.bench/1\", \"tutti\": \"0.1.0\", "
                                        "\"commit\": \"be2dd1e4f3a2\",\n"));
  EXPECT_EQ(*record_from_json_text(text, "x.json"), record);
  Record older = record;
  older.commit = "";
  const std::string without = to_json_text(older);
  EXPECT_EQ(without.find("commit"), std::string::npos);
  EXPECT_EQ(*record_from_json_text(without, "x.json"), older);
}

TEST(Record, KeepsTheShapeOfTensorsAndTheRoot) {
  Record record = some_record();
  EXPECT_EQ(to_json_text(record).find("hidden"), std::string::npos) << "of messages";
  EXPECT_EQ(to_json_text(record).find("root"), std::string::npos) << "rank 0";
  for (Row& row : record.rows) {
    row.hidden = 8192;
    row.root = 2;
  }
  const auto read = record_from_json_text(to_json_text(record), "x.json");
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  for (const Row& row : read->rows) {
    EXPECT_EQ(row.hidden, 8192);
    EXPECT_EQ(row.root, 2);
  }
}

TEST(Record, HasTheFieldsOfItsSchema) {
  const auto json = nlohmann::json::parse(to_json_text(some_record()));
  EXPECT_EQ(json.at("schema"), "tutti.bench/1");
  for (const char* key :
       {"host", "gpu", "gpus", "driver", "cuda", "nccl", "multicast", "date", "command"}) {
    EXPECT_TRUE(json.at("environment").contains(key)) << key;
  }
  const auto& row = json.at("rows").at(0);
  for (const char* key : {"collective",      "algorithm",   "backend",
                          "ranks",           "dtype",       "op",
                          "bytes",           "count",       "in_place",
                          "buffers",         "mode",        "graph_operations",
                          "chained",         "cache",       "blocks",
                          "threads",         "chunk_bytes", "time_us",
                          "per_rank_p50_us", "copy_us",     "algbw_gbps",
                          "busbw_gbps",      "wrong",       "chosen"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  for (const char* key : {"p50", "p90", "p99", "min", "max", "n"}) {
    EXPECT_TRUE(row.at("time_us").contains(key)) << key;
  }
}

TEST(Record, ThatIsNoneIsRefusedByName) {
  for (const char* text :
       {"", "[]", "{\"schema\":\"other/1\"}", "{\"schema\":\"tutti.bench/1\"}",
        "{\"schema\":\"tutti.bench/1\",\"tutti\":7,\"environment\":{},\"rows\":[]}"}) {
    const auto read = record_from_json_text(text, "x.json");
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(read.status().message(), HasSubstr("x.json"));
  }
}

TEST(Merge, ReplacesEqualKeysInPlaceAndAddsOthers) {
  const Record old_record = some_record();
  Record added = old_record;
  added.environment.date = "later";
  added.rows = {some_row("two_shot", 1024, 5.0), some_row("two_shot", 4096, 7.0)};
  const Record merged = merge(old_record, added);
  ASSERT_EQ(merged.rows.size(), old_record.rows.size() + 1);
  EXPECT_EQ(merged.rows[0], old_record.rows[0]);
  EXPECT_EQ(merged.rows[1], added.rows[0]);
  EXPECT_EQ(merged.rows.back(), added.rows[1]);
  EXPECT_EQ(merged.environment.date, "later");
}

TEST(Merge, KeepsTheCommandsThatMadeTheRows) {
  const Record old_record = some_record();
  Record added = old_record;
  EXPECT_EQ(merge(old_record, added).environment.command, "tutti bench all_reduce");
  added.environment.command = "tutti bench all_reduce --ranks 4";
  const Record merged = merge(old_record, added);
  EXPECT_EQ(merged.environment.command, "tutti bench all_reduce; tutti bench all_reduce --ranks 4");
  EXPECT_EQ(merge(merged, added).environment.command, merged.environment.command);
  EXPECT_EQ(merge({}, added).environment.command, added.environment.command);
}

TEST(Merge, KeepsTheCommitsThatMadeTheRows) {
  Record old_record = some_record(), added = some_record();
  EXPECT_EQ(merge(old_record, added).commit, "be2dd1e4f3a2");
  added.commit = "0123456789ab";
  EXPECT_EQ(merge(old_record, added).commit, "be2dd1e4f3a2; 0123456789ab");
  old_record.commit = "";
  EXPECT_EQ(merge(old_record, added).commit, "unknown; 0123456789ab");
  EXPECT_EQ(merge({}, added).commit, "0123456789ab");
}

TEST(Merge, EveryFieldOfTheKeyCounts) {
  const Row row = some_row("one_shot", 1024, 4);
  EXPECT_TRUE(same_key(row, some_row("one_shot", 1024, 99, true)));
  std::vector<Row> others(14, row);
  others[0].collective = "x";
  others[1].algorithm = "x";
  others[2].backend = "x";
  others[3].ranks = 2;
  others[4].dtype = "x";
  others[5].op = "x";
  others[6].bytes = 2;
  others[7].in_place = true;
  others[8].buffers = "x";
  others[9].mode = "x";
  others[10].graph_operations = 1;
  others[11].chained = true;
  others[12].cache = "x";
  others[13].launch = "x";
  for (const Row& other : others) EXPECT_FALSE(same_key(row, other));
}

TEST(Merge, IsRefusedForAnotherMachineDriverOrBuild) {
  const Record ours = some_record();
  std::vector<Record> others(6, ours);
  others[0].tutti = "0.0.9";
  others[1].environment.gpu = "NVIDIA H100";
  others[2].environment.gpus = 4;
  others[3].environment.driver = "1";
  others[4].environment.cuda = "1";
  others[5].environment.nccl = "1";
  for (const Record& other : others) {
    const Status status = check_same_machine(other, ours);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("write to another file"));
  }
  EXPECT_TRUE(check_same_machine(ours, ours));
}

TEST(Merge, KnowsMachinesWithoutGpusByTheirName) {
  Record here = some_record(), there = some_record();
  there.environment.host = "node2";
  EXPECT_TRUE(check_same_machine(here, there));  // of one kind
  here.environment.gpus = there.environment.gpus = 0;
  EXPECT_FALSE(check_same_machine(here, there));
}

}  // namespace
}  // namespace tutti::cli
