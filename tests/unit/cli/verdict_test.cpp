// Who is to blame, and how it is told. Each case has its negative: a group that is well blames
// nobody.
#include "status/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "status/print.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kSecond = 1'000'000'000, kNow = 1000 * kSecond;
constexpr Jury kLive{.now_ns = kNow}, kPast{.now_ns = {}, .patience = std::chrono::seconds(0)};

RecordedOperation operation(std::uint64_t sequence, OperationState state) {
  const bool ended = state == OperationState::kDone || state == OperationState::kFailed;
  return {.sequence = sequence,
          .row = "all_reduce/one_shot",
          .count = 1000,
          .bytes = 4000,
          .dtype = DataType::kFloat32,
          .op = OpKind::kSum,
          .signature = 0xabc,
          .state = state,
          .started_ns = kNow - 12 * kSecond,
          .ended_ns = ended ? kNow - 12 * kSecond + 1500 : 0};
}

// Rank `rank` has done all operations before `sequence`, and is in that one.
FoundPage rank_in(int rank, std::uint64_t sequence, std::vector<int> waits_for = {}) {
  FoundPage found;
  found.writer = WriterState::kRunning;
  Snapshot& page = found.page;
  page.group = 0xfeed;
  page.rank = rank;
  page.ranks = 3;
  page.host = "node1";
  page.process_id = 1000 + rank;
  page.opened_ns = kNow - 100 * kSecond;
  page.opened_unix_ns = 1'800'000'000 * static_cast<std::int64_t>(kSecond);
  page.last_ns = kNow - 10 * kSecond;
  page.waits_for = std::move(waits_for);
  for (std::uint64_t s = 1; s < sequence; ++s) {
    page.operations.push_back(operation(s, OperationState::kDone));
  }
  page.operations.push_back(operation(sequence, OperationState::kRunning));
  return found;
}

FoundPage rank_after(int rank, std::uint64_t sequence) {
  FoundPage found = rank_in(rank, sequence);
  found.page.operations.back() = operation(sequence, OperationState::kDone);
  return found;
}

FoundPage failed(FoundPage found, StatusCode code = StatusCode::kTimeout) {
  found.page.operations.back().state = OperationState::kFailed;
  found.page.failure = RecordedFailure{
      .code = code, .text = "what happened", .at_ns = kNow - 2 * kSecond + found.page.rank};
  return found;
}

Verdict judge_one(const std::vector<FoundPage>& pages, const Jury& jury = kLive) {
  const auto verdicts = judge(pages, jury);
  EXPECT_EQ(verdicts.size(), 1u);
  return verdicts.front();
}

std::vector<int> culprits(const Verdict& verdict) {
  std::vector<int> ranks;
  for (const Culprit& culprit : verdict.culprits) ranks.push_back(culprit.rank);
  return ranks;
}

std::string why(const Verdict& verdict) {
  std::string text;
  for (const Culprit& culprit : verdict.culprits) {
    for (const std::string& each : culprit.why) text += each + "; ";
  }
  return text;
}

TEST(Verdict, AGroupThatIsWellBlamesNobody) {
  for (const auto& pages :
       {std::vector{rank_after(0, 4), rank_after(1, 4), rank_after(2, 4)},
        std::vector{rank_after(0, 4), rank_after(1, 3), rank_after(2, 4)},  // one is a bit behind
        std::vector{rank_after(0, 4), rank_after(2, 4)}}) {                 // one is elsewhere
    const Verdict verdict = judge_one(pages);
    EXPECT_EQ(verdict.health, Health::kHealthy);
    EXPECT_THAT(verdict.culprits, IsEmpty());
  }
  EXPECT_THAT(judge({}, kLive), IsEmpty());
}

FoundPage stopped(FoundPage found) {
  found.writer = WriterState::kStopped;
  return found;
}

// The others gave up on it at the deadline and ended; their records went with them.
TEST(Verdict, AStoppedProcessIsSuspectedBeforeRanksThatAreGone) {
  for (const FoundPage& survivor : {stopped(rank_after(1, 3)), stopped(rank_in(1, 4, {0}))}) {
    const Verdict verdict = judge_one({survivor});
    EXPECT_NE(verdict.health, Health::kHealthy);
    EXPECT_THAT(culprits(verdict), ElementsAre(1));
    EXPECT_THAT(why(verdict), HasSubstr("process (1001) is stopped"));
  }
  // Also where one of the others is there still, and was told of an end.
  const FoundPage told = failed(rank_after(0, 3), StatusCode::kPeerFailed);
  EXPECT_THAT(culprits(judge_one({told, stopped(rank_after(1, 3))})), ElementsAre(1));
  // Negative controls: what runs is not suspected for that, nor what is stopped where the rank that
  // the others wait for is there.
  EXPECT_THAT(culprits(judge_one({rank_in(1, 4, {0})})), ElementsAre(0));
  EXPECT_THAT(culprits(judge_one({stopped(rank_in(0, 4, {1})), rank_after(1, 3)})), ElementsAre(1));
}

TEST(Verdict, AGroupWithAStoppedOrDeadRankIsNotHealthy) {
  const std::vector well = {rank_after(0, 4), rank_after(1, 4), rank_after(2, 4)};
  for (const WriterState state : {WriterState::kStopped, WriterState::kEnded}) {
    auto pages = well;
    pages[2].writer = state;
    const Verdict verdict = judge_one(pages);
    EXPECT_EQ(verdict.health, Health::kIncomplete);
    EXPECT_THAT(culprits(verdict), ElementsAre(2));
  }
  auto pages = well;
  pages[2].writer = WriterState::kEnded;
  pages[2].page.closed = true;
  EXPECT_EQ(judge_one(pages).health, Health::kHealthy) << "it has said goodbye";
}

TEST(Verdict, AGroupThatLacksARankOfThisHostIsNotHealthy) {
  std::vector pages = {rank_after(0, 4), rank_after(2, 4)};
  for (FoundPage& found : pages) found.page.ranks_here = 3;
  const Verdict verdict = judge_one(pages);
  EXPECT_EQ(verdict.health, Health::kIncomplete);
  EXPECT_THAT(culprits(verdict), ElementsAre(1));
  // One that is on another host is not missed, before or after its pages are brought here, too.
  for (FoundPage& found : pages) found.page.ranks_here = 2;
  EXPECT_EQ(judge_one(pages).health, Health::kHealthy);
  pages.insert(pages.begin() + 1, rank_after(1, 4));
  pages[1].page.host_id = 77;
  pages[1].page.ranks_here = 1;
  EXPECT_EQ(judge_one(pages).health, Health::kHealthy);
  pages.erase(pages.begin());
  EXPECT_EQ(judge_one(pages).health, Health::kIncomplete);
}

// The first pages of a group are there before the last ones.
TEST(Verdict, AGroupThatIsBeingMadeLacksNobody) {
  FoundPage first = rank_after(0, 1);
  first.page.ranks_here = 3;
  first.page.operations.clear();
  first.page.opened_ns = kNow - kSecond / 2;
  EXPECT_EQ(judge_one({first}).health, Health::kHealthy);
  first.page.opened_ns = kNow - 60 * kSecond;
  EXPECT_EQ(judge_one({first}).health, Health::kIncomplete);
}

TEST(Verdict, AShortWaitIsNoWait) {
  const std::vector pages = {rank_in(0, 4, {1}), rank_after(1, 3), rank_in(2, 4, {1})};
  Jury patient = kLive;
  patient.patience = std::chrono::seconds(13);
  EXPECT_EQ(judge_one(pages, patient).health, Health::kHealthy);
  EXPECT_EQ(judge_one(pages).health, Health::kWaiting);
}

TEST(Verdict, BlamesTheRankThatHasNotCome) {
  const Verdict verdict = judge_one({rank_in(0, 4, {1}), rank_after(1, 3), rank_in(2, 4, {1})});
  EXPECT_THAT(culprits(verdict), ElementsAre(1));
  EXPECT_THAT(why(verdict), HasSubstr("it has not begun #4, others have come to #4"));
  EXPECT_THAT(why(verdict), HasSubstr("waited for by 0, 2"));
}

TEST(Verdict, BlamesAStoppedProcessWhateverItsLastWordsWere) {
  // It was stopped inside the operation, while it waited for a rank that has come since.
  FoundPage stopped = rank_in(1, 4, {2});
  stopped.writer = WriterState::kStopped;
  const Verdict verdict = judge_one({rank_in(0, 4, {1}), stopped, rank_in(2, 4, {1})});
  EXPECT_THAT(culprits(verdict), ElementsAre(1));
  EXPECT_THAT(why(verdict), HasSubstr("process (1001) is stopped"));
  // Without that knowledge it is the one for whom most wait.
  stopped.writer = WriterState::kUnknown;
  EXPECT_THAT(culprits(judge_one({rank_in(0, 4, {1}), stopped, rank_in(2, 4, {1})})),
              ElementsAre(1));
}

TEST(Verdict, FollowsAChainToItsEnd) {
  const Verdict verdict = judge_one({rank_in(0, 4, {1}), rank_in(1, 4, {2}), rank_in(2, 4)});
  EXPECT_THAT(culprits(verdict), ElementsAre(2));
  EXPECT_THAT(why(verdict), HasSubstr("it is in #4 and waits for nobody"));
}

TEST(Verdict, BlamesARankWithoutAPage) {
  const Verdict waiting = judge_one({rank_in(0, 4, {1, 2}), rank_in(2, 3, {1})});
  EXPECT_THAT(culprits(waiting), ElementsAre(1));
  EXPECT_THAT(why(waiting), HasSubstr("no record of it"));
  // Nobody was waiting when the others were told of its end.
  FoundPage told = rank_after(0, 4);
  told.page.failure = RecordedFailure{StatusCode::kPeerFailed, "rank 1 ended", kNow};
  EXPECT_THAT(culprits(judge_one({told, rank_after(2, 4)})), ElementsAre(1));
}

// Rank 0 waited for rank 2, which was only late, when both were told of the end of rank 1.
TEST(Verdict, AnEndIsTheCauseWhateverWasWaitedFor) {
  const FoundPage waits = failed(rank_in(0, 4, {2}), StatusCode::kPeerFailed);
  const FoundPage late = failed(rank_after(2, 3), StatusCode::kPeerFailed);
  EXPECT_THAT(culprits(judge_one({waits, late})), ElementsAre(1));
  FoundPage dead = rank_in(1, 4);
  dead.writer = WriterState::kEnded;
  EXPECT_THAT(culprits(judge_one({waits, dead, late}, kPast)), ElementsAre(1));
  // Negative control: where nobody ended, a rank without a page may well be on another host.
  EXPECT_THAT(culprits(judge_one({failed(rank_in(0, 4, {2})), failed(rank_after(2, 3))})),
              ElementsAre(2));
}

TEST(Verdict, BlamesTheRankThatRunsAnotherOperation) {
  FoundPage odd = failed(rank_in(1, 4, {0}), StatusCode::kMismatch);
  odd.page.operations.back().count = 999;
  odd.page.operations.back().signature = 0xdef;
  const Verdict verdict =
      judge_one({failed(rank_in(0, 4, {1})), odd, failed(rank_in(2, 4, {1}))}, kPast);
  EXPECT_EQ(verdict.health, Health::kFailed);
  EXPECT_THAT(culprits(verdict), ElementsAre(1));
  EXPECT_THAT(why(verdict),
              HasSubstr("it runs all_reduce/one_shot #4 (999 x fp32, sum) (00000def), others run "
                        "all_reduce/one_shot #4 (1000 x fp32, sum) (00000abc)"));
}

TEST(Verdict, OfTwoThatDifferNeitherIsRight) {
  FoundPage one = failed(rank_in(0, 4, {1})), other = failed(rank_in(1, 4, {0}));
  one.page.ranks = other.page.ranks = 2;
  other.page.operations.back().signature = 0xdef;
  EXPECT_THAT(culprits(judge_one({one, other}, kPast)), ElementsAre(0, 1));
}

TEST(Verdict, BlamesWhoIsBehindWhereWaitsTellNothing) {  // as on GPUs
  FoundPage behind = rank_in(1, 3);
  EXPECT_THAT(culprits(judge_one({rank_in(0, 4), behind, rank_in(2, 4)})), ElementsAre(1));
}

TEST(Verdict, AfterwardsNamesWhoDiedWithoutAWord) {
  FoundPage dead = rank_in(1, 4);
  dead.writer = WriterState::kEnded;
  FoundPage first = failed(rank_in(0, 4, {1})), last = failed(rank_in(2, 4, {1}));
  first.writer = last.writer = WriterState::kEnded;
  first.page.closed = true;
  const Verdict verdict = judge_one({first, dead, last}, kPast);
  EXPECT_THAT(culprits(verdict), ElementsAre(1));
  EXPECT_THAT(why(verdict), HasSubstr("process (1001) has ended without a word"));
  EXPECT_EQ(verdict.first_failed, 0);
}

TEST(Verdict, AnAbortIsNobodysFault) {
  std::vector<FoundPage> pages;
  for (int rank = 0; rank < 3; ++rank) {
    pages.push_back(rank_after(rank, 4));
    pages.back().page.failure = RecordedFailure{StatusCode::kAborted, "enough", kNow - rank};
  }
  const Verdict verdict = judge_one(pages, kPast);
  EXPECT_EQ(verdict.health, Health::kFailed);
  EXPECT_THAT(verdict.culprits, IsEmpty());
  EXPECT_EQ(verdict.first_failed, 2);
}

TEST(Verdict, JudgesEachGroupAlone) {
  FoundPage other = rank_after(0, 4);
  other.page.group = 0xffff;
  const auto verdicts = judge({rank_in(0, 4, {1}), rank_after(1, 3), other}, kLive);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].health, Health::kWaiting);
  EXPECT_EQ(verdicts[1].health, Health::kHealthy);
  EXPECT_EQ(worst_of(verdicts), Health::kWaiting);
}

// ---- how it is printed

std::vector<Verdict> shown() {
  FoundPage stopped = rank_after(1, 3);
  stopped.writer = WriterState::kStopped;
  FoundPage fails = failed(rank_in(0, 4, {1}));
  return judge({fails, stopped}, kLive);
}

TEST(StatusPrinter, PrintsText) { EXPECT_EQ(print_verdicts(shown(), 2), golden("status.txt")); }

TEST(StatusPrinter, PrintsJson) {
  const std::string text = print_verdicts_json(shown(), 1);
  EXPECT_EQ(text, golden("status.json"));
  const auto value = nlohmann::json::parse(text);
  EXPECT_EQ(value.at("schema"), "tutti.status/1");
  EXPECT_EQ(value.at("groups").at(0).at("culprits").at(0).at("rank"), 1);
}

TEST(StatusPrinter, PrintsNothingOfNothing) {
  EXPECT_EQ(print_verdicts({}, 0), "");
  EXPECT_EQ(nlohmann::json::parse(print_verdicts_json({}, 0)).at("health"), "healthy");
}

}  // namespace
}  // namespace tutti::cli
