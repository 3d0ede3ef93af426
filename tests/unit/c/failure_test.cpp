// The failure of a thread: what it holds for programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "tutti/tutti.h"
#include "unit/c/c_groups.hpp"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

tutti_status_t reduce_some(tutti_communicator_t* group, std::size_t count,
                           std::int64_t timeout_ms = 0) {
  static thread_local float data[16];
  tutti_call_options_t options = tutti_call_options_init();
  options.timeout_ms = timeout_ms;
  tutti_all_reduce_t call = tutti_all_reduce_init();
  call.input = call.output = data;
  call.count = count;
  call.options = &options;
  return tutti_all_reduce(group, &call);
}

TEST(CFailure, ATimeoutHasTheRanksAndTheValues) {
  const CGroup group(2);
  group.run([](int, tutti_communicator_t* of) { require_c(tutti_communicator_prepare(of)); });
  EXPECT_EQ(reduce_some(group[0], 4, 50), TUTTI_TIMEOUT);
  const tutti_failure_t failure = last_c_failure();
  EXPECT_EQ(failure.code, TUTTI_TIMEOUT);
  EXPECT_EQ(failure.waiting_rank, 0);
  EXPECT_EQ(failure.missing_rank, 1);
  EXPECT_EQ(failure.failed_rank, -1);
  EXPECT_EQ(failure.sequence, 1u);
  EXPECT_LT(failure.seen, failure.expected);
  EXPECT_THAT(failure.operation, StartsWith("all_reduce/"));
  EXPECT_THAT(failure.operation, HasSubstr("#1 (4 x fp32, sum)"));
  EXPECT_THAT(failure.text, HasSubstr("rank 0 waited"));
  EXPECT_STREQ(tutti_last_error(), failure.text);

  // The other rank was told, and waits for nothing itself.
  while (tutti_communicator_status(group[1]) == TUTTI_OK) std::this_thread::yield();
  tutti_failure_t told = tutti_failure_init();
  require_c(tutti_communicator_failure(group[1], &told));
  EXPECT_EQ(told.code, TUTTI_TIMEOUT);
  EXPECT_EQ(told.failed_rank, 0);
  EXPECT_EQ(told.waiting_rank, -1);
  EXPECT_EQ(told.missing_rank, -1);
}

// At least one rank finds it; the other one may be told before it looks.
TEST(CFailure, AMismatchHasBothSignatures) {
  const CGroup group(2);
  std::atomic<int> found = 0;
  group.run([&](int rank, tutti_communicator_t* of) {
    EXPECT_EQ(reduce_some(of, rank == 0 ? 4 : 8), TUTTI_MISMATCH);
    const tutti_failure_t failure = last_c_failure();
    EXPECT_EQ(failure.code, TUTTI_MISMATCH);
    if (failure.failed_rank != -1) {
      EXPECT_EQ(failure.failed_rank, 1 - rank);
      return;
    }
    ++found;
    EXPECT_EQ(failure.waiting_rank, rank);
    EXPECT_EQ(failure.missing_rank, 1 - rank);
    EXPECT_NE(failure.expected, failure.seen);
  });
  EXPECT_GE(found.load(), 1);
}

TEST(CFailure, IsOfAThread) {
  const CGroup group(1);
  EXPECT_EQ(tutti_all_reduce(nullptr, nullptr), TUTTI_INVALID_ARGUMENT);
  std::thread([&] {
    EXPECT_EQ(last_c_failure().code, TUTTI_OK);
    EXPECT_STREQ(tutti_last_error(), "");
    EXPECT_EQ(tutti_communicator_abort(nullptr, ""), TUTTI_INVALID_ARGUMENT);
  }).join();
  EXPECT_THAT(last_c_failure().text, StartsWith("tutti_all_reduce: "));
  EXPECT_EQ(reduce_some(group[0], 1), TUTTI_OK);
  EXPECT_THAT(last_c_failure().text, StartsWith("tutti_all_reduce: "));  // still the latest
}

// A mistake in a call says nothing of the group.
TEST(CFailure, OfAnArgumentNamesNoRank) {
  const CGroup group(1);
  tutti_broadcast_t call = tutti_broadcast_init();
  call.root = 7;
  EXPECT_EQ(tutti_broadcast(group[0], &call), TUTTI_INVALID_ARGUMENT);
  EXPECT_EQ(last_c_failure().waiting_rank, -1);
  EXPECT_STREQ(last_c_failure().operation, "");
  tutti_failure_t failure = tutti_failure_init();
  require_c(tutti_communicator_failure(group[0], &failure));
  EXPECT_EQ(failure.code, TUTTI_OK);
}

TEST(CFailure, AnAbortHasItsReason) {
  const CGroup group(1);
  require_c(tutti_communicator_abort(group[0], "enough"));
  EXPECT_EQ(reduce_some(group[0], 1), TUTTI_ABORTED);
  EXPECT_THAT(last_c_failure().text, HasSubstr("enough"));
}

}  // namespace
}  // namespace tutti::test
