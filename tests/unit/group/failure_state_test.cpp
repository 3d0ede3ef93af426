// What a failure says: rule by rule, the words a person needs.
#include "group/failure_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "group/recorder/find_pages.hpp"

namespace tutti {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Algorithm& row() { return **find_algorithm(Collective::kAllReduce, "two_shot"); }

class FailureStateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t k = 1; k <= 42; ++k) {
      state_.note({.sequence = k, .row = &row(), .count = 1000 + k, .dtype = DataType::kBfloat16});
    }
  }
  void write(FailureReason reason, std::uint64_t sequence = 42) {
    record_ = {.sequence = sequence,
               .expected_epoch = 83,
               .seen_epoch = 82,
               .expected_signature = 0xabcd,
               .seen_signature = 0x1234,
               .waiting_rank = 3,
               .missing_rank = 5,
               .block = 7,
               .reason = static_cast<std::uint32_t>(reason),
               .waited_ns = 2'500'000'000,
               .state = 1};
  }

  FailureRecord record_{};
  std::uint32_t notices_ = 0;
  FailureState state_{record_, notices_};
};

// Every sentence with a rank in it.
TEST_F(FailureStateTest, RanksAreNamedAsTheirGroupNamesThem) {
  RankNames names = RankNames().split({10, 11, 12, 13, 14, 15});
  names.found();
  for (const FailureReason reason :
       {FailureReason::kTimeout, FailureReason::kMismatch, FailureReason::kOverlap,
        FailureReason::kNotRegistered, FailureReason::kOtherCount, FailureReason::kTooMany}) {
    write(reason);
    std::uint32_t abort_word = 0;
    FailureState state(record_, abort_word, nullptr, names);
    EXPECT_TRUE(state.collect());
    const bool is_missing_named =
        reason != FailureReason::kOverlap && reason != FailureReason::kNotRegistered;
    EXPECT_THAT(state.status().message(),
                HasSubstr(is_missing_named ? "world rank 15 (rank 5 of the split group)"
                                           : "world rank 13 (rank 3 of the split group)"));
  }
}

TEST_F(FailureStateTest, NothingHasFailed) {
  EXPECT_FALSE(state_.collect());
  EXPECT_TRUE(state_.status().is_ok());
  EXPECT_FALSE(state_.failed());
}

TEST_F(FailureStateTest, ATimeoutNamesTheOperationBothRanksAndTheValues) {
  state_.set_timeout({std::chrono::milliseconds(2500), TimeoutSource::kSetting});
  write(FailureReason::kTimeout);
  EXPECT_TRUE(state_.collect());
  EXPECT_EQ(state_.status().code(), StatusCode::kTimeout);
  EXPECT_EQ(
      state_.status().message(),
      "all_reduce/two_shot #42 (1042 x bf16, sum): rank 3 waited 2.500 s for rank 5: expected "
      "flag 83, seen 82 (block 7); timeout 2500 ms from TUTTI_TIMEOUT_MS");
  EXPECT_EQ(notices_, Notice::kAbort);
}

TEST_F(FailureStateTest, ATimeoutSaysWhoHasSetIt) {
  using std::chrono::milliseconds;
  state_.set_timeout({milliseconds(600000), TimeoutSource::kDefault});
  const auto told = [&](const Operation& operation) {
    return to_string(state_.timeout_of(operation));
  };
  EXPECT_EQ(told({}), "timeout 600000 ms, the default of TUTTI_TIMEOUT_MS");
  EXPECT_EQ(told({.timeout = milliseconds(7)}), "timeout 7 ms from this call's own timeout");
  state_.set_timeout({milliseconds(8), TimeoutSource::kCreation});
  EXPECT_EQ(told({}), "timeout 8 ms from CommunicatorOptions::timeout");
  state_.set_timeout({milliseconds(9), TimeoutSource::kSetTimeout});
  EXPECT_EQ(told({}), "timeout 9 ms from Communicator::set_timeout()");
}

TEST_F(FailureStateTest, TheRecorderIsToldOfTheFirstFailureAndOfWhoIsMissing) {
  auto recorder = FlightRecorder::open({.rank = 3, .ranks = 8}, {});
  ASSERT_TRUE(recorder.is_ok());
  FlightRecorder& told = **recorder;
  FailureState state(record_, notices_, &told);
  write(FailureReason::kOverlap);
  EXPECT_TRUE(state.collect());
  EXPECT_EQ(*told.waits_for(), 0u);  // nobody waited
  write(FailureReason::kAborted);
  EXPECT_FALSE(state.collect());
  EXPECT_EQ(*told.waits_for(), 1u << 5);
  const auto page = parse_page(*read_page(told.descriptor()));
  EXPECT_EQ(page->failure->code, StatusCode::kInvalidArgument);
  EXPECT_THAT(page->failure->text, HasSubstr("ran at the same time"));
}

TEST_F(FailureStateTest, ValuesAreThoseOfTheWait) {
  EXPECT_EQ(state_.values().code, StatusCode::kOk);
  write(FailureReason::kTimeout);
  EXPECT_TRUE(state_.collect());
  const Communicator::Failure failure = state_.values();
  EXPECT_EQ(failure.code, StatusCode::kTimeout);
  EXPECT_EQ(failure.text, state_.status().message());
  EXPECT_EQ(failure.operation, "all_reduce/two_shot #42 (1042 x bf16, sum)");
  EXPECT_EQ(failure.sequence, 42u);
  EXPECT_EQ(failure.waiting_rank, 3);
  EXPECT_EQ(failure.missing_rank, 5);
  EXPECT_EQ(failure.failed_rank, -1);
  EXPECT_EQ(failure.expected, 83u);
  EXPECT_EQ(failure.seen, 82u);
}

TEST_F(FailureStateTest, ValuesOfAMismatchAreTheSignatures) {
  write(FailureReason::kMismatch);
  EXPECT_TRUE(state_.collect());
  EXPECT_EQ(state_.values().expected, 0xabcdu);
  EXPECT_EQ(state_.values().seen, 0x1234u);
}

// Where nobody waited for a rank, or for a numbered operation.
TEST_F(FailureStateTest, ValuesThatAreNotKnown) {
  write(FailureReason::kOverlap);
  EXPECT_TRUE(state_.collect());
  EXPECT_EQ(state_.values().waiting_rank, 3);
  EXPECT_EQ(state_.values().missing_rank, -1);
  EXPECT_EQ(state_.values().expected, 0u);
  record_.signal = 8;
  EXPECT_EQ(state_.values().operation, "wait_signal on channel 7");
  EXPECT_EQ(state_.values().sequence, 0u);
}

TEST_F(FailureStateTest, ValuesNameTheRankThatTold) {
  state_.hear(6, {StatusCode::kPeerFailed, "rank 6: its process ended"});
  EXPECT_EQ(state_.values().failed_rank, 6);
  EXPECT_EQ(state_.values().waiting_rank, -1);
  write(FailureReason::kAborted);  // a wait that this ended
  EXPECT_EQ(state_.values().failed_rank, 6);
  EXPECT_EQ(state_.values().missing_rank, 5);
}

// Executors whose waits cannot tell for whom they wait.
TEST_F(FailureStateTest, ValuesOfAWaitForNobodyKnown) {
  EXPECT_TRUE(state_.fail_waiting({StatusCode::kTimeout, "late"},
                                  "all_reduce/two_shot #41 (1041 x bf16, sum)", 2, 4));
  EXPECT_EQ(state_.values().waiting_rank, 2);
  EXPECT_EQ(state_.values().missing_rank, -1);
  EXPECT_EQ(state_.values().sequence, 41u);
}

TEST_F(FailureStateTest, ValuesOfAWaitThatNoRecordTellsOf) {
  EXPECT_TRUE(state_.fail_in({StatusCode::kTimeout, "late"},
                             {"all_reduce/two_shot #41 (1041 x bf16, sum)", 2, 3}));
  EXPECT_EQ(state_.values().waiting_rank, 2);
  EXPECT_EQ(state_.values().missing_rank, 3);
  EXPECT_EQ(state_.values().sequence, 41u);
  EXPECT_EQ(state_.values().failed_rank, -1);
  EXPECT_FALSE(state_.awaits_accounts());
}

TEST_F(FailureStateTest, AMismatchNamesBothSides) {
  write(FailureReason::kMismatch);
  EXPECT_TRUE(state_.collect());
  EXPECT_EQ(state_.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(state_.status().message(),
              AllOf(HasSubstr("#42"), HasSubstr("rank 5"), HasSubstr("rank 3"),
                    HasSubstr("0000abcd here, 00001234 there")));
}

TEST_F(FailureStateTest, OtherReasonsSayWhatToDo) {
  write(FailureReason::kOverlap);
  EXPECT_TRUE(state_.collect());
  EXPECT_EQ(state_.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(state_.status().message(), HasSubstr("order the streams"));
}

TEST_F(FailureStateTest, ABufferThatWasNeverRegistered) {
  write(FailureReason::kNotRegistered);
  EXPECT_TRUE(state_.collect());
  EXPECT_EQ(state_.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(state_.status().message(), HasSubstr("finish_capture()"));
}

TEST_F(FailureStateTest, CountsThatAreWrongAreTold) {
  write(FailureReason::kOtherCount);
  EXPECT_TRUE(state_.collect());
  EXPECT_EQ(state_.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(state_.status().message(),
              HasSubstr("rank 5 has a piece of 82 elements where rank 3 was told of 83"));
}

TEST_F(FailureStateTest, ACountBeyondTheLimitIsTold) {
  write(FailureReason::kTooMany);
  EXPECT_TRUE(state_.collect());
  EXPECT_EQ(state_.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(state_.status().message(),
              HasSubstr("rank 5 has a count of 82 on its device, and max_count is 83"));
}

TEST_F(FailureStateTest, ARankThatHasLeftIsNamedWithItsLastWords) {
  EXPECT_EQ(state_.last_words(), "after all_reduce/two_shot #42 (1042 x bf16, sum)");
  state_.hear_of_leaving(5, "after all_reduce/two_shot #41 (1041 x bf16, sum)");
  EXPECT_FALSE(state_.failed());
  EXPECT_EQ(notices_, Notice::left(5));
  write(FailureReason::kLeft);
  EXPECT_TRUE(state_.collect());
  EXPECT_EQ(state_.status().code(), StatusCode::kPeerFailed);
  EXPECT_EQ(state_.status().message(),
            "all_reduce/two_shot #42 (1042 x bf16, sum): rank 3 waits for rank 5, which left the "
            "group after all_reduce/two_shot #41 (1041 x bf16, sum): every rank must make the same "
            "calls before it destroys its communicator");
  EXPECT_EQ(state_.last_words(), "") << "who has failed does not say that it is done";
}

// The word of notices has bits for as many ranks as share memory.
TEST_F(FailureStateTest, NoWaitHearsOfRanksBeyondThoseThatShareMemory) {
  for (const int rank : {kMaxRanks, 31, 40, 63}) state_.hear_of_leaving(rank, "at once");
  EXPECT_EQ(notices_, 0U);
  state_.hear_of_leaving(kMaxRanks - 1, "at once");
  EXPECT_EQ(notices_, Notice::left(kMaxRanks - 1));
}

TEST_F(FailureStateTest, ARankThatLeftBeforeASignalIsNamedToo) {
  EXPECT_EQ(FailureState(record_, notices_).last_words(), "before its first operation");
  state_.hear_of_leaving(5, "before its first operation");
  write(FailureReason::kLeft, 0);
  record_.signal = 4;
  EXPECT_TRUE(state_.collect());
  EXPECT_THAT(state_.status().message(),
              ::testing::StartsWith("wait_signal on channel 3 (signal 83, 82 came): rank 3 waits "
                                    "for rank 5, which left the group before its first operation"));
}

TEST_F(FailureStateTest, TheCauseComesBeforeTheWaitItEnded) {
  EXPECT_TRUE(state_.fail({StatusCode::kPeerFailed, "rank 5's process ended"}));
  write(FailureReason::kAborted);
  EXPECT_FALSE(state_.collect());
  EXPECT_EQ(state_.status().code(), StatusCode::kPeerFailed);
  EXPECT_THAT(state_.status().message(),
              AllOf(::testing::StartsWith("rank 5's process ended; all_reduce/two_shot #42"),
                    HasSubstr("rank 3 waited")));
}

TEST_F(FailureStateTest, AWaitThatTheHostWatchesIsToldLikeAKernels) {
  write(FailureReason::kTimeout);
  FailureRecord watched = record_;
  record_ = {};
  watched.missing_rank = 1;
  EXPECT_TRUE(state_.collect(watched));
  EXPECT_FALSE(state_.collect(watched));
  EXPECT_EQ(state_.status().code(), StatusCode::kTimeout);
  EXPECT_THAT(state_.status().message(), HasSubstr("rank 3 waited 2.500 s for rank 1"));
}

TEST_F(FailureStateTest, TheFirstOfTwoRecordsIsTold) {
  EXPECT_TRUE(state_.fail({StatusCode::kAborted, "enough"}));
  write(FailureReason::kAborted);
  FailureRecord watched = record_;
  watched.missing_rank = 1;
  EXPECT_FALSE(state_.collect(watched));
  EXPECT_THAT(state_.status().message(), AllOf(HasSubstr("enough"), HasSubstr("for rank 5")));
}

TEST_F(FailureStateTest, TheFirstFailureStays) {
  EXPECT_TRUE(state_.fail({StatusCode::kAborted, "first"}));
  EXPECT_FALSE(state_.fail({StatusCode::kTimeout, "second"}));
  write(FailureReason::kTimeout);
  EXPECT_FALSE(state_.collect());
  EXPECT_EQ(state_.status().code(), StatusCode::kAborted);
  EXPECT_EQ(state_.status().message(), "first");
}

TEST_F(FailureStateTest, AnOperationLongForgottenKeepsItsNumber) {
  for (std::uint64_t k = 43; k <= 400; ++k) state_.note({.sequence = k, .row = &row()});
  write(FailureReason::kTimeout);
  EXPECT_TRUE(state_.collect());
  EXPECT_THAT(state_.status().message(), HasSubstr("operation #42: rank 3"));
}

// ---- Waits that leave no record of who is missing

constexpr std::chrono::milliseconds kPatient{60000};
constexpr const char* kWhere = "all_reduce/nccl #42 (7 x fp32, sum)";
const Status kLate{StatusCode::kTimeout,
                   "all_reduce/nccl #42 (7 x fp32, sum): rank 1 waited 2.000 s in NCCL"};

TEST_F(FailureStateTest, AWaitForNobodyKnowsWhomAsksTheOthers) {
  EXPECT_TRUE(state_.fail_waiting(kLate, kWhere, 1, 4, kPatient));
  EXPECT_FALSE(state_.fail_waiting(kLate, kWhere, 1, 4, kPatient));
  EXPECT_TRUE(state_.awaits_accounts());
  EXPECT_THAT(state_.status().message(), HasSubstr("are being asked"));
  state_.hear(2, kLate);  // it waits there as well
  state_.hear(0,
              {StatusCode::kTimeout, "all_reduce/nccl #41 (7 x fp32, sum), which has ended: so"});
  EXPECT_TRUE(state_.awaits_accounts());
  state_.hear(3, {StatusCode::kTimeout, "no operation yet: told"});
  state_.hear(9, {StatusCode::kTimeout, "a rank that is none"});
  EXPECT_FALSE(state_.awaits_accounts());
  EXPECT_EQ(state_.status().message(),
            kLate.message() +
                "; rank 0 is at all_reduce/nccl #41 (7 x fp32, sum), which has ended, "
                "rank 3 is at no operation yet");
}

TEST_F(FailureStateTest, WhoDoesNotAnswerIsNamed) {
  auto recorder = FlightRecorder::open({.rank = 1, .ranks = 3}, {});
  ASSERT_TRUE(recorder.is_ok());
  FailureState state(record_, notices_, recorder->get());
  EXPECT_TRUE(state.fail_waiting(kLate, kWhere, 1, 3));
  state.hear(0, kLate);
  while (state.awaits_accounts()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(state.status().message(), kLate.message() + "; rank 2 does not answer");
  EXPECT_EQ(*(*recorder)->waits_for(), 1U << 2);
}

TEST_F(FailureStateTest, WhereEveryRankIsInItThatIsSaid) {
  EXPECT_TRUE(state_.fail_waiting(kLate, kWhere, 1, 2));
  state_.hear(0, kLate);
  EXPECT_THAT(state_.status().message(), HasSubstr("every other rank is in it, too"));
}

TEST_F(FailureStateTest, WhoIsToldOfAWaitAnswersOnce) {
  EXPECT_FALSE(state_.account_due({.to_waits = true}));
  state_.hear(1, kLate);
  EXPECT_TRUE(state_.awaits_accounts());
  EXPECT_FALSE(state_.account_due({}));
  EXPECT_TRUE(state_.account_due({.to_waits = true}));
  EXPECT_FALSE(state_.account_due({.to_waits = true}));
  EXPECT_FALSE(state_.awaits_accounts());
  EXPECT_EQ(state_.latest().sequence, 42U);
  EXPECT_EQ(state_.account("here").message(), "here: " + kLate.message());
  EXPECT_EQ(state_.account("here").code(), StatusCode::kTimeout);
}

}  // namespace
}  // namespace tutti
