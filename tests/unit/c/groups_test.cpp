// Groups of the C API that are created on named devices, prepared, or made of the ranks that are
// left; and memory of one rank that is registered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <latch>
#include <string>

#include "support/check.hpp"
#include "tutti/tutti.h"
#include "unit/c/c_groups.hpp"

namespace tutti::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::int64_t c_sum_over(tutti_communicator_t* group, std::int64_t mine) {
  std::int64_t sum = 0;
  tutti_all_reduce_t call = tutti_all_reduce_init();
  call.input = &mine;
  call.output = &sum;
  call.count = 1;
  call.dtype = TUTTI_INT64;
  require_c(tutti_all_reduce(group, &call));
  return sum;
}

tutti_counters_t c_counters_of(tutti_communicator_t* group) {
  tutti_counters_t counters = tutti_counters_init();
  require_c(tutti_communicator_counters(group, &counters));
  return counters;
}

TEST(CGroups, DevicesOfRanksArrive) {
  tutti_communicator_options_t options = tutti_communicator_options_init();
  options.backend = TUTTI_BACKEND_HOST;
  std::array<tutti_communicator_t*, 2> made = {};
  std::array<int, 2> devices = {-1, -1};
  const auto create = [&](int ranks) {
    return tutti_communicator_create_in_process(devices.data(), ranks, &options, made.data());
  };
  require_c(create(2));
  for (tutti_communicator_t* const group : made) require_c(tutti_communicator_destroy(group));
  devices = {-1, 0};
  EXPECT_EQ(create(2), TUTTI_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_last_error(), HasSubstr("device 0 of rank 1"));
  for (const int none : {0, -1}) EXPECT_EQ(create(none), TUTTI_INVALID_ARGUMENT) << none;
}

TEST(CGroups, PrepareAllocatesWhatTheFirstOperationWould) {
  CGroup(2).run([](int rank, tutti_communicator_t* group) {
    const tutti_counters_t before = c_counters_of(group);
    require_c(tutti_communicator_prepare(group));
    const tutti_counters_t after = c_counters_of(group);
    EXPECT_EQ(after.allocations, before.allocations + 1);
    EXPECT_EQ(c_sum_over(group, rank), 1);
    EXPECT_EQ(c_counters_of(group).allocations, after.allocations);
  });
}

TEST(CGroups, LocalMemoryIsHeldByItsRegistrations) {
  CGroup(2).run([](int rank, tutti_communicator_t* group) {
    tutti_local_memory_t* local = nullptr;
    EXPECT_EQ(tutti_local_memory_allocate(group, 0, &local), TUTTI_INVALID_ARGUMENT);
    EXPECT_EQ(tutti_local_memory_allocate(group, 100, nullptr), TUTTI_INVALID_ARGUMENT);
    require_c(tutti_local_memory_allocate(group, 100, &local));
    tutti_local_memory_info_t info = tutti_local_memory_info_init();
    require_c(tutti_local_memory_info(local, &info));
    EXPECT_EQ(info.bytes, 100u);

    tutti_memory_t* registered = nullptr;
    require_c(tutti_memory_register(group, info.data, info.bytes, &registered));
    require_c(tutti_local_memory_free(local));
    std::memset(info.data, rank + 1, info.bytes);
    require_c(tutti_barrier(group, nullptr));
    void* other = nullptr;
    require_c(tutti_memory_peer(registered, 1 - rank, &other));
    EXPECT_EQ(static_cast<const char*>(other)[99], 2 - rank);
    require_c(tutti_barrier(group, nullptr));
    require_c(tutti_memory_free(registered));
  });
}

// Of four ranks one has left, and one is late.
TEST(CGroups, ShrinkSaysWhoIsMissing) {
  constexpr int kLeaves = 0, kLate = 2;
  const CGroup of_four(4);
  std::latch start(2), over(2);
  of_four.run([&](int rank, tutti_communicator_t* group) {
    tutti_communicator_t* survivors = nullptr;
    std::array<int, 4> missing = {-1, -1, -1, -1};
    int count = -1;
    if (rank == kLeaves) return require_c(tutti_communicator_destroy(group));
    if (rank == kLate) {
      over.wait();
      EXPECT_EQ(tutti_communicator_shrink(group, 0, &survivors, nullptr, nullptr),
                TUTTI_PEER_FAILED);
      EXPECT_THAT(tutti_last_error(), HasSubstr("went on without rank 2"));
      EXPECT_EQ(survivors, nullptr);
      // The communicator failed before, of something else with the same code.
      const tutti_failure_t why = last_c_failure();
      tutti_failure_t first = tutti_failure_init();
      require_c(tutti_communicator_failure(group, &first));
      EXPECT_EQ(first.code, TUTTI_PEER_FAILED);
      EXPECT_NE(first.failed_rank, -1);
      EXPECT_EQ(why.failed_rank, -1);
      return;
    }
    start.arrive_and_wait();
    require_c(tutti_communicator_shrink(group, 200, &survivors, missing.data(), &count));
    EXPECT_EQ(count, 2);
    EXPECT_THAT(missing, ElementsAre(kLeaves, kLate, -1, -1));
    EXPECT_EQ(c_sum_over(survivors, rank), 4);
    require_c(tutti_communicator_destroy(survivors));
    over.count_down();
  });
}

TEST(CGroups, ShrinkRefusesWhatItCannotAnswer) {
  const CGroup group(1);
  tutti_communicator_t* survivors = nullptr;
  int missing = -1, count = -1;
  const auto refused = [&](int within_ms, tutti_communicator_t** out, int* numbers) {
    EXPECT_EQ(tutti_communicator_shrink(group[0], within_ms, out, numbers, nullptr),
              TUTTI_INVALID_ARGUMENT);
    return std::string(tutti_last_error());
  };
  EXPECT_THAT(refused(0, nullptr, nullptr), HasSubstr("`survivors` is null"));
  EXPECT_THAT(refused(0, &survivors, &missing), HasSubstr("`missing_count` is null"));
  EXPECT_THAT(refused(-1, &survivors, nullptr), HasSubstr("negative"));
  require_c(tutti_communicator_shrink(group[0], 0, &survivors, nullptr, &count));
  EXPECT_EQ(count, 0);
  require_c(tutti_communicator_destroy(survivors));
}

}  // namespace
}  // namespace tutti::test
