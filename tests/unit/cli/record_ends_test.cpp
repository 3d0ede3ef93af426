// Results whose numbers are at the ends of their types: each is refused by name, or can be shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/matmul/print.hpp"
#include "bench/overlap/print.hpp"
#include "bench/printers/printers.hpp"
#include "report/pages.hpp"
#include "some_record.hpp"
#include "support/ends.hpp"

namespace tutti::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// With everything that a file may hold.
Record full_record() {
  Record record = some_record();
  record.environment.calibration.copy_gbps = 48;
  record.environment.calibration.copy_bytes = 1 << 20;
  record.rows.resize(2);
  record.rows[1].bytes = 1 << 20;
  for (Row& row : record.rows) {
    row.hidden = 8192;
    row.root = 2;
    row.chunk_bytes = 1 << 16;
    row.per_rank_p50_us.resize(2);
  }
  Row overlap = some_overlap_row(Phase::kOverlap, 2000);
  overlap.overlap->pause_ms = 5;
  overlap.overlap->megahertz = 1980;
  overlap.overlap->efficiency = overlap.overlap->matmul_slowdown = 0.9;
  overlap.overlap->per_rank.resize(1);
  overlap.per_rank_p50_us.resize(1);
  record.rows.push_back(overlap);
  return record;
}

void show(const Record& record) {
  EXPECT_FALSE(print_table(record).empty());
  EXPECT_FALSE(print_markdown(record).empty());
  EXPECT_FALSE(print_csv(record).empty());
  Record overlaps = record;
  std::erase_if(overlaps.rows, [](const Row& row) { return !row.overlap; });
  EXPECT_FALSE(print_overlap_markdown(overlaps).empty());
  EXPECT_FALSE(print_overlap_table(overlaps).empty());
  for (const char* what : {"all_reduce", "overlap"}) {
    const ResultFile file{
        .path = "results/m/x.json", .machine = "m", .what = what, .record = record};
    const auto headline = render_headline({file}, file.path);
    EXPECT_EQ(headline.is_ok() ? StatusCode::kOk : StatusCode::kInvalidArgument,
              headline.status().code());
    EXPECT_LT(render_html({file}).size(), 1u << 20);
    for (const Page& page : render_docs({file}, "docs/x.md")) EXPECT_LT(page.text.size(), 1u << 20);
  }
  const auto again = record_from_json_text(to_json_text(record), "again.json");
  EXPECT_TRUE(again.is_ok()) << again.status().to_string();
}

TEST(RecordEnds, AreRefusedOrShown) {
  int refused = 0, shown = 0;
  const auto look = [&](const nlohmann::json& document, const std::string& what) {
    SCOPED_TRACE(what);
    const auto read = record_from_json_text(document.dump(), "x.json");
    if (read.is_ok()) {
      ++shown;
      return show(*read);
    }
    ++refused;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(read.status().message(), HasSubstr("x.json"));
  };
  const Record full = full_record();
  const auto document = nlohmann::json::parse(to_json_text(full));
  EXPECT_GT(test::at_all_ends(document, look), 80);
  EXPECT_GT(refused, 500);
  EXPECT_GT(shown, 300);
}

// What only rows of matmuls have; the rest is as above.
TEST(RecordEnds, OfMatmulsAreRefusedOrShown) {
  Record full = some_record();
  full.rows = {some_matmul_row("cublaslt_matmul", 4096, 1)};
  full.rows.front().matmul->tile = "128x128";
  full.rows.front().matmul->fill = 0.5;
  auto document = nlohmann::json::parse(to_json_text(full));
  const auto matmul = document["rows"][0]["matmul"];
  int refused = 0, shown = 0;
  const auto look = [&](const nlohmann::json& changed, const std::string& what) {
    SCOPED_TRACE(what);
    document["rows"][0]["matmul"] = changed;
    const auto read = record_from_json_text(document.dump(), "x.json");
    if (!read.is_ok()) {
      ++refused;
      EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
      return;
    }
    ++shown;
    const std::string text = to_json_text(*read);
    EXPECT_EQ(to_json_text(*record_from_json_text(text, "again.json")), text);
    EXPECT_FALSE(print_matmul_markdown(*read).empty());
    EXPECT_FALSE(make_matmul_table_printer({})->whole(*read).empty());
    const ResultFile file{.path = "r/m/x.json", .machine = "m", .what = "matmul", .record = *read};
    for (const Page& page : render_docs({file}, "docs/x.md")) EXPECT_LT(page.text.size(), 1u << 20);
  };
  EXPECT_GT(test::at_all_ends(matmul, look), 12);
  EXPECT_GT(refused, 100);
  EXPECT_GT(shown, 50);
}

TEST(RecordEnds, RefusalsNameTheField) {
  auto document = nlohmann::json::parse(to_json_text(full_record()));
  const auto refusal = [&](const char* pointer, const nlohmann::json& value) {
    auto changed = document;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    return record_from_json_text(changed.dump(), "x.json").status().message();
  };
  EXPECT_THAT(refusal("/rows/0/ranks", 0), AllOf(HasSubstr("ranks is 0"), HasSubstr("least 1")));
  EXPECT_THAT(refusal("/rows/0/blocks", -1), HasSubstr("blocks is -1"));
  EXPECT_THAT(refusal("/rows/0/time_us/p50", 1.7e308), HasSubstr("p50 is beyond 1e+15"));
  EXPECT_THAT(refusal("/rows/0/time_us/p99", true), HasSubstr("p99 must be a number"));
  EXPECT_THAT(refusal("/rows/0/time_us/n", -1), HasSubstr("n must be an integer that fits"));
}

}  // namespace
}  // namespace tutti::cli
