// Whatever the bytes are, the reader survives them, and shows nothing that is not whole.
#include "group/recorder/snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "unit/group/recorder/pages.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Bytes good_page() {
  const auto recorder = open_recorder();
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) run_operation(*recorder, sequence);
  return take(read_page(recorder->descriptor()));
}

PageHeader& header_of(Bytes& page) { return *reinterpret_cast<PageHeader*>(page.data()); }
PageRecord& record_of(Bytes& page, std::size_t slot) {
  return reinterpret_cast<PageRecord*>(page.data() + sizeof(PageHeader))[slot];
}

TEST(PageParser, TakesAGoodPage) { EXPECT_EQ(take(parse_page(good_page())).operations.size(), 3u); }

struct BadHeader {
  const char* name;
  std::function<void(PageHeader&)> spoil;
  const char* text;

  friend void PrintTo(const BadHeader& of, std::ostream* out) { *out << of.name; }
};

class PageHeaderTest : public testing::TestWithParam<BadHeader> {};

TEST_P(PageHeaderTest, IsRefusedWithTheReason) {
  Bytes page = good_page();
  GetParam().spoil(header_of(page));
  const auto parsed = parse_page(page);
  ASSERT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(parsed.status().message(), HasSubstr(GetParam().text));
}

const BadHeader kBadHeaders[] = {
    {"magic", [](PageHeader& h) { h.magic += 1; }, "does not begin like one"},
    {"version", [](PageHeader& h) { h.page_version = 9; }, "its version is 9"},
    {"header_bytes", [](PageHeader& h) { h.header_bytes = 0xffffffff; }, "records of"},
    {"record_bytes", [](PageHeader& h) { h.record_bytes = 0; }, "records of 0 bytes"},
    {"records", [](PageHeader& h) { h.records = 0x80000000; }, "2147483648 records"},
    {"negative_rank", [](PageHeader& h) { h.rank = -1; }, "rank -1 of 3"},
    {"rank_too_high", [](PageHeader& h) { h.rank = 3; }, "rank 3 of 3"},
    {"no_ranks", [](PageHeader& h) { h.ranks = 0; }, "of 0"},
    {"too_many_ranks", [](PageHeader& h) { h.ranks = 0x7fffffff; }, "of 2147483647"},
    {"backend", [](PageHeader& h) { h.backend = 99; }, "backend 99"},
};
INSTANTIATE_TEST_SUITE_P(Spoiled, PageHeaderTest, testing::ValuesIn(kBadHeaders),
                         [](const auto& of) { return of.param.name; });

TEST(PageParser, MoreRanksOnAHostThanInTheGroupAreUnknown) {
  Bytes page = good_page();
  header_of(page).ranks_here = 2;
  EXPECT_EQ(take(parse_page(page)).ranks_here, 2);
  for (const std::uint32_t many : {4U, 0xffffffffU}) {
    header_of(page).ranks_here = many;
    EXPECT_EQ(take(parse_page(page)).ranks_here, 0);
  }
}

TEST(PageParser, RefusesEveryOtherLength) {
  Bytes page = good_page();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, sizeof(PageHeader) - 1,
                                  sizeof(PageHeader), kPageBytes - 1}) {
    EXPECT_FALSE(parse_page(ByteView(page).first(bytes)).is_ok()) << bytes;
  }
  page.push_back(std::byte{0});
  EXPECT_FALSE(parse_page(page).is_ok());
}

struct BadRecord {
  const char* name;
  std::function<void(PageRecord&)> spoil;

  friend void PrintTo(const BadRecord& of, std::ostream* out) { *out << of.name; }
};

class PageRecordTest : public testing::TestWithParam<BadRecord> {};

TEST_P(PageRecordTest, IsNotShown) {
  Bytes page = good_page();
  GetParam().spoil(record_of(page, 2));
  const Snapshot snapshot = take(parse_page(page));
  ASSERT_EQ(snapshot.operations.size(), 2u);
  EXPECT_EQ(snapshot.operations[0].sequence, 1u);
  EXPECT_EQ(snapshot.operations[1].sequence, 3u);
  EXPECT_EQ(snapshot.unreadable, 1);
}

const BadRecord kBadRecords[] = {
    {"being_written", [](PageRecord& r) { ++r.version; }},
    {"of_another_slot", [](PageRecord& r) { r.sequence += 1; }},
    {"of_no_operation", [](PageRecord& r) { r.sequence = 0; }},
    {"unknown_state", [](PageRecord& r) { r.state = 6; }},
    {"no_state", [](PageRecord& r) { r.state = 0; }},
    {"unknown_dtype", [](PageRecord& r) { r.dtype = 200; }},
    {"unknown_op", [](PageRecord& r) { r.op = 0xffffffff; }},
};
INSTANTIATE_TEST_SUITE_P(Spoiled, PageRecordTest, testing::ValuesIn(kBadRecords),
                         [](const auto& of) { return of.param.name; });

TEST(PageParser, AnOperationThatComputesNothingHasNoOp) {
  const auto recorder = open_recorder();
  OperationNote note = note_of(1);
  note.row = "all_gather/push";
  note.op = std::nullopt;
  recorder->begin(note);
  const RecordedOperation shown = look_at(*recorder).operations.back();
  EXPECT_FALSE(shown.op.has_value());
  EXPECT_EQ(to_string(shown), "all_gather/push #1 (10 x bf16)");
  EXPECT_EQ(op_text(shown), "none");
}

// Negative control: half of another operation in a record whose version says that it is whole.
TEST(PageParser, WithoutAnOddVersionHalfARecordWouldBeShown) {
  Bytes page = good_page();
  record_of(page, 2).sequence += kPageRecords;
  const RecordedOperation shown = take(parse_page(page)).operations.back();
  EXPECT_EQ(shown.sequence, 2u + kPageRecords);
  EXPECT_NE(shown.count, 10 * shown.sequence);
  ++record_of(page, 2).version;
  EXPECT_EQ(take(parse_page(page)).operations.back().sequence, 3u);
}

TEST(PageParser, ReadsTextsWithoutAnEnd) {
  Bytes page = good_page();
  header_of(page).host.fill('h');
  header_of(page).failed_text.fill('\x1b');
  header_of(page).failed_ns = 1;
  header_of(page).failed_code = 0xffff;
  record_of(page, 1).row.fill('r');
  const Snapshot snapshot = take(parse_page(page));
  EXPECT_EQ(snapshot.host, std::string(64, 'h'));
  EXPECT_EQ(snapshot.failure->text, std::string(1024, '?'));
  EXPECT_EQ(snapshot.failure->code, StatusCode::kInternal);
  EXPECT_EQ(snapshot.operations[0].row, std::string(sizeof(PageRecord::row), 'r'));
}

TEST(PageParser, IgnoresRanksThatAreNotOfTheGroup) {
  Bytes page = good_page();
  header_of(page).waits_for = ~std::uint64_t{0};
  EXPECT_EQ(take(parse_page(page)).waits_for, (std::vector<int>{0, 1, 2}));
}

TEST(PageParser, SurvivesNoise) {
  std::mt19937_64 random(11);
  const Bytes good = good_page();
  int taken = 0;
  for (int round = 0; round < 300; ++round) {
    Bytes page = good;
    // Noise in the operations, in a few words, or in all but the words that are checked first.
    const std::size_t from = round % 3 == 0 ? sizeof(PageHeader) : round % 3 == 1 ? 24 : 64;
    const std::size_t step = round % 3 == 1 ? 8 * (1 + random() % 100) : 8;
    for (std::size_t at = from; at + 8 <= page.size(); at += step) {
      const std::uint64_t word = random();
      std::memcpy(page.data() + at, &word, sizeof word);
    }
    const auto parsed = parse_page(page);
    if (!parsed.is_ok()) continue;
    ++taken;
    EXPECT_LE(parsed->operations.size(), kPageRecords);
    (void)parsed->current();
  }
  EXPECT_GT(taken, 0);
}

TEST(PageParser, ShowsNothingOfAnEmptyRing) {
  Bytes page = good_page();
  std::fill(page.begin() + sizeof(PageHeader), page.end(), std::byte{0});
  const Snapshot snapshot = take(parse_page(page));
  EXPECT_THAT(snapshot.operations, IsEmpty());
  EXPECT_EQ(snapshot.unreadable, 0);
}

}  // namespace
}  // namespace tutti::test
