#include "bench/printers/printers.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "golden.hpp"
#include "some_record.hpp"

namespace tutti::cli {
namespace {

// Tables are wider than source text is.
Record in_place_record() {
  Record record = some_record();
  record.rows.resize(3);
  Row row = record.rows[0];
  row.in_place = true;
  row.time_us.p50 = 3.5;
  row.algbw_gbps = 0.29;
  row.busbw_gbps = 0.51;
  row.wrong = 2;
  record.rows.push_back(row);
  record.rows[1].wrong = std::nullopt;
  record.rows[1].chosen = true;
  record.rows[0].chosen = false;
  record.rows[1].copy_us = 1.5;
  record.environment.calibration = {};
  return record;
}

TEST(Table, HasNcclTestsColumnsThenOnePerAlgorithm) {
  EXPECT_EQ(print_table(some_record()), golden("table.txt"));
}

TEST(Table, ShowsBothSidesUncheckedResultsAndCopies) {
  EXPECT_EQ(print_table(in_place_record()), golden("table_in_place.txt"));
}

// What auto takes, and NCCL: one table says it all.
TEST(Table, OfTheDefaultHasNoSecondOne) {
  Record record = some_record();
  std::erase_if(record.rows, [](const Row& row) { return !row.chosen && row.algorithm != "nccl"; });
  const std::string table = print_table(record);
  EXPECT_EQ(table.find("time of each algorithm"), std::string::npos) << table;
  EXPECT_NE(table.find("  one_shot               16.00    4.00x\n"), std::string::npos) << table;
}

// Lines below the table say why.
TEST(Table, HasNoColumnForWhatWasAskedAndCouldNotRun) {
  const std::string table = print_table(some_record(), {"auto", "two_shot", "ring"});
  EXPECT_NE(table.find("best (speed-up over NCCL)  two_shot   one_shot      nccl\n"),
            std::string::npos)
      << table;
}

// Rows appear as they are measured, and all of them together are the whole table.
TEST(Table, GrowsBySizes) {
  const Record record = in_place_record();
  BenchOptions options;
  options.bytes = {1024};
  options.algorithms = {"one_shot", "two_shot", "nccl"};
  const auto whole = make_table_printer(options, {}), parts = make_table_printer(options, {});
  std::string text = parts->begin(record);
  const std::span<const Row> rows(record.rows);
  const std::string first = parts->add(rows.first(3)), second = parts->add(rows.last(1));
  EXPECT_NE(first.find("\n      1024        512 bf16   sum    6.00"), std::string::npos) << first;
  EXPECT_NE(second.find("in-place"), std::string::npos) << second;
  text += first + second + parts->end(record);
  EXPECT_EQ(text, whole->whole(record));
}

// The longest name of every collective, with the longest type and reduction.
TEST(Table, FitsForEveryCollective) {
  for (const Collective collective : kAllCollectives) {
    Record record = some_record();
    record.environment.gpu = "NVIDIA H200 NVL";
    for (const Algorithm& algorithm : rows_of(collective)) {
      Row row = some_row(std::string(algorithm.name()), 1 << 28, 99999, true);
      row.collective = to_string(collective);
      row.dtype = "fp8_e4m3";
      row.op = reduces(collective) ? "premulsum" : kNoOp;
      record.rows = {row, some_row("nccl", 1 << 28, 99999)};
      record.rows[1] = row;
      record.rows[1].algorithm = "nccl";
      record.rows[1].chosen = false;
      std::istringstream lines(print_table(record));
      const bool long_names = (algorithm.needs & kNeedsNetwork) != 0;
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), long_names ? 116u : 110u) << line;
      }
    }
  }
}

TEST(Table, OfAllAlgorithmsIsSplitWhereItDoesNotFit) {
  Record record = some_record();
  record.rows.clear();
  for (const Algorithm& algorithm : rows_of(Collective::kAllReduce)) {
    record.rows.push_back(some_row(std::string(algorithm.name()), 1024, 4, record.rows.empty()));
  }
  const auto longest = [&](std::size_t width) {
    std::size_t most = 0;
    std::istringstream lines(print_table(record, {}, {.width = width}));
    for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
    return most;
  };
  EXPECT_LE(longest(110), 110u);
  EXPECT_GT(longest(400), 200u);
}

TEST(Table, HasColoursWhereItIsTold) {
  Record record = some_record();
  EXPECT_EQ(print_table(record).find('\x1b'), std::string::npos);
  record.rows[0].wrong = 3;
  const std::string table = print_table(record, {}, {.colours = true});
  EXPECT_NE(table.find("\x1b[31m      3\x1b[0m  \x1b[1mone_shot\x1b[0m  "), std::string::npos)
      << table;
  EXPECT_NE(table.find("\x1b[31m# Out of bounds values : 3 FAILED\x1b[0m\n"), std::string::npos);
}

// What is emulated is measured, said to be, and never the best.
TEST(Table, SaysWhatIsEmulated) {
  Record record = some_record();
  const std::string note = "# two_shot is emulated by a loop over the peers\n";
  EXPECT_EQ(print_table(record).find(note), std::string::npos);
  EXPECT_NE(print_table(record).find("two_shot (2.00x)"), std::string::npos);
  for (Row& row : record.rows) {
    row.emulated = row.algorithm == "two_shot";
    row.chosen = false;
  }
  const std::string table = print_table(record);
  EXPECT_NE(table.find(note), std::string::npos) << table;
  EXPECT_EQ(table.find("two_shot (2.00x)"), std::string::npos) << table;
  EXPECT_NE(table.find("  nccl (1.00x) "), std::string::npos) << table;
  const auto read = record_from_json_text(to_json_text(record), "x.json");
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  for (std::size_t k = 0; k < record.rows.size(); ++k) {
    EXPECT_EQ(read->rows[k].emulated, record.rows[k].emulated);
  }
}

TEST(Table, OfTensorsShowsTheirShapes) {
  Record record = some_record();
  for (Row& row : record.rows) row.hidden = 64;
  const std::string shape = fmt::format("{}x64", record.rows.front().count / 64);
  const std::string table = print_table(record), markdown = print_markdown(record);
  EXPECT_NE(table.find("      shape type"), std::string::npos) << table;
  EXPECT_NE(table.find(shape), std::string::npos) << table;
  EXPECT_NE(markdown.find("(" + shape + ") |"), std::string::npos) << markdown;
  EXPECT_EQ(print_table(some_record()).find(shape), std::string::npos);
}

TEST(Table, OfTheHostNamesNoGpu) {
  Record record = some_record();
  record.environment.gpus = 0;
  record.rows.clear();
  record.environment.calibration = {};
  EXPECT_EQ(print_table(record), "# tutti 0.1.0 (be2dd1e4f3a2) on node1, 2026-11-21T01:02:03Z\n");
}

TEST(Table, OfTheHostHasTheRateOfCopies) {
  Record record = some_record();
  record.environment.calibration = {.copy_gbps = 48.25, .copy_bytes = 1 << 20};
  EXPECT_TRUE(
      print_table(record).ends_with("# calibration: 48.25 GB/s, memcpy of 1M by one thread\n"));
}

TEST(Markdown, MarksWhatAutoTakes) {
  EXPECT_EQ(print_markdown(some_record()),
            "**all_reduce, 8 ranks (processes), bf16 sum, backend cuda, symmetric buffers, graph "
            "of 10 operations, cache hot** (us, p50; bold: what auto used in this run; NVLink "
            "multicast: off "
            "for all libraries; with it: not measured)\n\n"
            "| bytes | speed-up | best other | busbw GB/s | one_shot | two_shot | nccl |\n"
            "|---:|---:|---|---:|---:|---:|---:|\n"
            "| 1K | 4.00x | nccl | 0.4 | **4.00** | 6.00 | 16.00 |\n"
            "| 1M | 2.00x | nccl | 146.8 | 128.0 | **12.50** | 25.00 |\n");
}

TEST(Csv, HasOneLinePerRow) {
  Record record = some_record();
  record.rows.resize(1);
  EXPECT_EQ(print_csv(record),
            "collective,algorithm,backend,ranks,dtype,op,bytes,count,in_place,buffers,mode,"
            "graph_operations,chained,cache,launch,blocks,threads,chunk_bytes,p50_us,p90_us,p99_us,"
            "min_us,max_us,n,copy_us,algbw_gbps,busbw_gbps,wrong,chosen\n"
            "all_reduce,one_shot,cuda,8,bf16,sum,1024,512,false,symmetric,graph,10,false,hot,"
            "processes,16,512,0,4.000,5.000,6.000,3.000,7.000,50,0.000,0.256,0.448,0,true\n");
}

TEST(Views, KeepGroupsApartAndSizesInOrder) {
  Record record = some_record();
  Row other = record.rows.front();
  other.ranks = 4;
  record.rows.push_back(other);
  record.rows.push_back(some_row("one_shot", 2048, 5));
  const auto groups = groups_of(record.rows);
  ASSERT_EQ(groups.size(), 2u);
  const auto sizes = sizes_of(groups[0]);
  ASSERT_EQ(sizes.size(), 3u);
  EXPECT_EQ(sizes[1].bytes, 2048u);
  EXPECT_EQ(best_text(sizes[1].out_of_place), "one_shot");  // NCCL was not measured
  EXPECT_EQ(best_text({}), "n/a");
}

TEST(Views, TakeTheFastestWhereAutosChoiceWasNotMeasured) {
  const Row slow = some_row("a", 8, 9), fast = some_row("b", 8, 3);
  EXPECT_EQ(chosen_or_fastest({&slow, &fast})->algorithm, "b");
  EXPECT_EQ(chosen_or_fastest({}), nullptr);
}

TEST(Views, WriteTimesWithAboutFourDigits) {
  EXPECT_EQ(time_text(3.14159), "3.14");
  EXPECT_EQ(time_text(123.456), "123.5");
  EXPECT_EQ(time_text(12345.6), "12346");
}

}  // namespace
}  // namespace tutti::cli
