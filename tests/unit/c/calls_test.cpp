// That the fields of the C API's structs reach the calls that they are made for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/check.hpp"
#include "tutti/tutti.h"
#include "tutti/tutti.hpp"
#include "unit/c/c_groups.hpp"

namespace tutti::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kRanks = 3;

class CCalls : public testing::Test {
 protected:
  const CGroup group_{kRanks};
};

// Rank r has r * 10 + 1, r * 10 + 2, ...
std::vector<std::int32_t> values_of(int rank, std::size_t count) {
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = rank * 10 + 1 + static_cast<int>(i);
  return values;
}

// What a collective whose struct has `input`, `output`, `count` and `dtype` gives this rank.
template <class Struct, class Change>
std::vector<std::int32_t> result_of(tutti_status_t (*function)(tutti_communicator_t*,
                                                               const Struct*),
                                    tutti_communicator_t* group, std::size_t outputs,
                                    std::vector<std::int32_t> input, const Change& change) {
  std::vector<std::int32_t> output(outputs, -1);
  Struct call;
  std::memset(&call, 0, sizeof call);
  call.size = sizeof call;
  call.input = input.data();
  call.output = output.data();
  call.dtype = TUTTI_INT32;
  change(call);
  require_c(function(group, &call));
  return output;
}

TEST_F(CCalls, Reductions) {
  group_.run([](int rank, tutti_communicator_t* group) {
    const auto two = values_of(rank, 2), six = values_of(rank, 6);
    EXPECT_THAT(result_of(tutti_all_reduce, group, 2, two, [](auto& call) { call.count = 2; }),
                ElementsAre(33, 36));
    EXPECT_THAT(result_of(tutti_all_reduce, group, 2, two,
                          [](auto& call) {
                            call.count = 2;
                            call.op = tutti_op(TUTTI_MAX);
                          }),
                ElementsAre(21, 22));
    const auto part = result_of(tutti_reduce_scatter, group, 2, six, [](auto& call) {
      call.count = 2;
      call.rows = 1;
      call.op = tutti_op(TUTTI_MIN);
    });
    EXPECT_THAT(part, ElementsAre(1 + 2 * rank, 2 + 2 * rank));
    const auto column = result_of(tutti_reduce_scatter, group, 2, six, [](auto& call) {
      call.count = 2;
      call.rows = 2;
      call.op = tutti_op(TUTTI_MIN);
    });
    EXPECT_THAT(column, ElementsAre(1 + rank, 4 + rank));
    const auto one = result_of(tutti_reduce, group, 2, two, [](auto& call) {
      call.count = 2;
      call.root = 1;
    });
    if (rank == 1) {
      EXPECT_THAT(one, ElementsAre(33, 36));
    }
    if (rank != 1) {
      EXPECT_THAT(one, ElementsAre(-1, -1));
    }
  });
}

TEST_F(CCalls, MultipliersAreNumbersOfThreeTypes) {
  group_.run([](int rank, tutti_communicator_t* group) {
    const auto sum_with = [&](const tutti_reduce_op_t& op) {
      return result_of(tutti_all_reduce, group, 1, values_of(rank, 1), [&](auto& call) {
        call.count = 1;
        call.op = op;
      });
    };
    tutti_reduce_op_t op = tutti_pre_mul_sum(rank + 1);
    EXPECT_THAT(sum_with(op), ElementsAre(1 + 22 + 63));
    op.scalar.dtype = TUTTI_INT64;
    op.scalar.value.i64 = -rank;
    EXPECT_THAT(sum_with(op), ElementsAre(-11 - 42));
    op.scalar.dtype = TUTTI_UINT64;
    op.scalar.value.u64 = 2;
    EXPECT_THAT(sum_with(op), ElementsAre(66));
  });
}

// Sums of numbers that a double does not have.
TEST_F(CCalls, IntegerMultipliersAreExact) {
  constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;
  constexpr std::array<std::int64_t, kRanks> kMultipliers = {
      kOdd, -4 * kOdd, std::numeric_limits<std::int64_t>::max()};
  group_.run([&](int rank, tutti_communicator_t* group) {
    const std::int64_t one = 1;
    std::int64_t sum = 0;
    tutti_all_reduce_t call = tutti_all_reduce_init();
    call.input = &one;
    call.output = &sum;
    call.count = 1;
    call.dtype = TUTTI_INT64;
    call.op = tutti_op(TUTTI_PRE_MUL_SUM);
    call.op.scalar.dtype = TUTTI_INT64;
    call.op.scalar.value.i64 = kMultipliers[static_cast<std::size_t>(rank)];
    require_c(tutti_all_reduce(group, &call));
    EXPECT_EQ(sum, kMultipliers[2] - 3 * kOdd);

    std::uint64_t unsigned_sum = 0;
    call.output = &unsigned_sum;
    call.dtype = TUTTI_UINT64;
    call.op.scalar.dtype = TUTTI_UINT64;
    call.op.scalar.value.u64 = rank == 0 ? std::numeric_limits<std::uint64_t>::max() - 2 : 1;
    require_c(tutti_all_reduce(group, &call));
    EXPECT_EQ(unsigned_sum, std::numeric_limits<std::uint64_t>::max());
  });
}

TEST_F(CCalls, MultipliersLieInMemory) {
  group_.run([](int rank, tutti_communicator_t* group) {
    const std::int32_t multiplier = rank + 1;
    EXPECT_THAT(result_of(tutti_all_reduce, group, 1, values_of(rank, 1),
                          [&](auto& call) {
                            call.count = 1;
                            call.op = rank == 0 ? tutti_pre_mul_sum(1)
                                                : tutti_pre_mul_sum_at(&multiplier);
                          }),
                ElementsAre(1 + 22 + 63));
  });
}

TEST_F(CCalls, MultipliersThatCannotBe) {
  const auto refused = [&](const tutti_reduce_op_t& op) {
    tutti_all_reduce_t call = tutti_all_reduce_init();
    call.op = op;
    EXPECT_EQ(tutti_all_reduce(group_[0], &call), TUTTI_INVALID_ARGUMENT);
    return std::string(tutti_last_error());
  };
  tutti_reduce_op_t op = tutti_op(TUTTI_PRE_MUL_SUM);
  op.scalar.dtype = TUTTI_INT8;
  EXPECT_THAT(refused(op), HasSubstr("op.scalar.dtype"));
  op = tutti_op(TUTTI_SUM);
  op.device_scalar = &op;
  EXPECT_THAT(refused(op), HasSubstr("device_scalar"));
}

TEST_F(CCalls, Movements) {
  group_.run([](int rank, tutti_communicator_t* group) {
    const auto one = values_of(rank, 1), three = values_of(rank, 3);
    const auto count_1 = [](auto& call) { call.count = 1; };
    const auto root_2 = [](auto& call) {
      call.count = 1;
      call.root = 2;
    };
    EXPECT_THAT(result_of(tutti_all_gather, group, 3, one, count_1), ElementsAre(1, 11, 21));
    EXPECT_THAT(result_of(tutti_all_to_all, group, 3, three, count_1),
                ElementsAre(1 + rank, 11 + rank, 21 + rank));
    EXPECT_THAT(result_of(tutti_broadcast, group, 1, one, root_2), ElementsAre(21));
    EXPECT_THAT(result_of(tutti_scatter, group, 1, three, root_2), ElementsAre(21 + rank));
    const auto gathered = result_of(tutti_gather, group, 3, one, root_2);
    if (rank == 2) {
      EXPECT_THAT(gathered, ElementsAre(1, 11, 21));
    }
    if (rank != 2) {
      EXPECT_THAT(gathered, ElementsAre(-1, -1, -1));
    }
  });
}

TEST_F(CCalls, VariableCounts) {
  group_.run([](int rank, tutti_communicator_t* group) {
    const std::array<std::size_t, kRanks> counts = {1, 0, 2};
    const auto r = static_cast<std::size_t>(rank);
    EXPECT_THAT(result_of(tutti_all_gather_v, group, 3, values_of(rank, counts[r]),
                          [&](auto& call) { call.counts = counts.data(); }),
                ElementsAre(1, 21, 22));
    const auto part = result_of(tutti_reduce_scatter_v, group, 2, values_of(rank, 3),
                                [&](auto& call) { call.counts = counts.data(); });
    if (rank == 0) {
      EXPECT_THAT(part, ElementsAre(33, -1));
    }
    if (rank == 2) {
      EXPECT_THAT(part, ElementsAre(36, 39));
    }
    // Every rank sends one element to rank 0, and none to the others; then by counts of the device.
    const std::array<std::size_t, kRanks> to_0 = {1, 0, 0}, none = {0, 0, 0}, one = {1, 1, 1};
    const auto by_host = [&](auto& call) {
      call.send_counts = to_0.data();
      call.recv_counts = rank == 0 ? one.data() : none.data();
      call.max_count = 1;
    };
    std::array<std::size_t, kRanks> found = {9, 9, 9};
    const auto by_device = [&](auto& call) { call.device_counts = {to_0.data(), found.data(), 1}; };
    const auto first = result_of(tutti_all_to_all_v, group, 3, values_of(rank, 1), by_host);
    const auto second = result_of(tutti_all_to_all_v, group, 3, values_of(rank, 1), by_device);
    EXPECT_EQ(first, second);
    EXPECT_EQ(found, rank == 0 ? one : none);
    if (rank == 0) {
      EXPECT_THAT(first, ElementsAre(1, 11, 21));
    }
  });
}

TEST_F(CCalls, MessagesAndOneSidedCalls) {
  group_.run([](int rank, tutti_communicator_t* group) {
    const int next = (rank + 1) % kRanks, last = (rank + kRanks - 1) % kRanks;
    const auto own = values_of(rank, 2);
    std::vector<std::int32_t> came(2);
    tutti_send_t send = tutti_send_init();
    tutti_recv_t recv = tutti_recv_init();
    send.buffer = own.data();
    recv.buffer = came.data();
    send.count = recv.count = 2;
    send.dtype = recv.dtype = TUTTI_INT32;
    send.peer = next;
    recv.peer = last;
    require_c(tutti_group_start());
    require_c(tutti_send(group, &send));
    require_c(tutti_recv(group, &recv));
    require_c(tutti_group_end());
    EXPECT_EQ(came, values_of(last, 2));

    tutti_memory_t* memory = nullptr;
    tutti_memory_info_t info = tutti_memory_info_init();
    require_c(tutti_memory_allocate(group, 2 * sizeof(std::int32_t), &memory));
    require_c(tutti_memory_info(memory, &info));
    tutti_put_t put = tutti_put_init();
    put.from = own.data();
    put.to = info.data;
    put.count = 2;
    put.dtype = TUTTI_INT32;
    put.peer = next;
    put.channel = 5;
    require_c(tutti_put_signal(group, &put));
    tutti_wait_signal_t wait = tutti_wait_signal_init();
    wait.peer = last;
    wait.channel = 5;
    require_c(tutti_wait_signal(group, &wait));
    const auto* const put_there = static_cast<const std::int32_t*>(info.data);
    EXPECT_EQ(put_there[0], last * 10 + 1);
    require_c(tutti_barrier(group, nullptr));
    tutti_get_t get = tutti_get_init();
    get.from = info.data;
    get.to = came.data();
    get.count = 1;
    get.dtype = TUTTI_INT32;
    get.peer = next;
    require_c(tutti_get(group, &get));
    EXPECT_EQ(came[0], own[0]);
    require_c(tutti_barrier(group, nullptr));
    require_c(tutti_memory_free(memory));
  });
}

// Values that the C++ API refuses by the name of the field: had they not arrived, nobody would.
TEST_F(CCalls, OptionsArrive) {
  const auto refused = [&](const auto& change) {
    tutti_call_options_t options = tutti_call_options_init();
    tutti_all_reduce_t call = tutti_all_reduce_init();
    call.options = &options;
    change(options);
    EXPECT_EQ(tutti_all_reduce(group_[0], &call), TUTTI_INVALID_ARGUMENT);
    return std::string(tutti_last_error());
  };
  EXPECT_THAT(refused([](auto& of) { of.algorithm = "by_magic"; }), HasSubstr("by_magic"));
  EXPECT_THAT(refused([](auto& of) { of.timeout_ms = -1; }), HasSubstr("timeout"));
  EXPECT_THAT(refused([](auto& of) { of.blocks = -1; }), HasSubstr("blocks"));
  EXPECT_THAT(refused([](auto& of) { of.threads = -1; }), HasSubstr("threads"));
  EXPECT_THAT(refused([](auto& of) { of.chunk_bytes = SIZE_MAX; }), HasSubstr("chunk_bytes"));
  EXPECT_THAT(refused([](auto& of) { of.sm_budget = -2; }), HasSubstr("sm_budget"));
}

TEST_F(CCalls, NumbersThatAreNoTypeAreRefused) {
  for (const int number : {-1, 12, 255, 256, 257, std::numeric_limits<int>::max()}) {
    tutti_all_reduce_t call = tutti_all_reduce_init();
    call.dtype = number;
    EXPECT_EQ(tutti_all_reduce(group_[0], &call), TUTTI_INVALID_ARGUMENT) << number;
    EXPECT_THAT(tutti_last_error(), HasSubstr("`dtype` has no value")) << number;
    EXPECT_STREQ(tutti_data_type_name(number), "?");
    EXPECT_EQ(tutti_data_type_size(number), 0u);
    EXPECT_STREQ(tutti_op_name(number), "?");
    EXPECT_STREQ(tutti_plan_source_name(number), "?");
  }
}

TEST_F(CCalls, NamesAreThoseOfTheCppApi) {
  for (const DataType dtype : kAllDataTypes) {
    EXPECT_EQ(tutti_data_type_name(static_cast<int>(dtype)), to_string(dtype));
    EXPECT_EQ(tutti_data_type_size(static_cast<int>(dtype)), size_of(dtype));
  }
  for (const OpKind op : kAllOps) EXPECT_EQ(tutti_op_name(static_cast<int>(op)), to_string(op));
  for (int code = 0; code <= TUTTI_INTERNAL; ++code) {
    EXPECT_EQ(tutti_status_name(code), to_string(static_cast<StatusCode>(code)));
  }
  for (const Backend backend : {Backend::kAuto, Backend::kHost, Backend::kCuda}) {
    EXPECT_EQ(tutti_backend_name(static_cast<int>(backend)), to_string(backend));
  }
  for (int source = 0; source <= TUTTI_PLAN_MODEL; ++source) {
    EXPECT_EQ(tutti_plan_source_name(source), to_string(static_cast<PlanSource>(source)));
  }
  EXPECT_EQ(static_cast<int>(StatusCode::kInternal), TUTTI_INTERNAL);
  EXPECT_EQ(static_cast<int>(PlanSource::kModel), TUTTI_PLAN_MODEL);
  EXPECT_EQ(static_cast<int>(Mover::kCopyEngine), TUTTI_MOVER_COPY_ENGINE);
}

TEST_F(CCalls, UnknownCollectivesAreErrors) {
  tutti_query_t query = tutti_query_init();
  tutti_plan_t plan = tutti_plan_init();
  char* text = nullptr;
  EXPECT_EQ(tutti_plan(group_[0], "all_dance", &query, &plan), TUTTI_INVALID_ARGUMENT);
  EXPECT_EQ(tutti_plan(group_[0], nullptr, &query, &plan), TUTTI_INVALID_ARGUMENT);
  EXPECT_EQ(tutti_explain(group_[0], "all_dance", &query, &text), TUTTI_INVALID_ARGUMENT);
  EXPECT_EQ(text, nullptr);
}

TEST_F(CCalls, TooManyProductsAreRefusedWithoutReadingThem) {
  const std::vector<tutti_matmul_product_t> products(TUTTI_MAX_MATMUL_PRODUCTS);
  tutti_matmul_t call = tutti_matmul_init();
  call.more = products.data();
  call.more_count = SIZE_MAX;
  EXPECT_EQ(tutti_matmul(nullptr, &call), TUTTI_INVALID_ARGUMENT);
  call.more = nullptr;
  EXPECT_EQ(tutti_matmul(nullptr, &call), TUTTI_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_last_error(), HasSubstr("`more` is null"));
}

TEST_F(CCalls, ASplitWithANegativeColorGivesNull) {
  group_.run([](int rank, tutti_communicator_t* group) {
    auto* part = group;
    require_c(tutti_communicator_split(group, rank == 0 ? -1 : 0, -rank, &part));
    EXPECT_EQ(part == nullptr, rank == 0);
    if (part == nullptr) return;
    tutti_communicator_info_t info = tutti_communicator_info_init();
    require_c(tutti_communicator_info(part, &info));
    EXPECT_EQ(info.ranks, 2);
    EXPECT_EQ(info.rank, 2 - rank);
    require_c(tutti_communicator_destroy(part));
  });
}

}  // namespace
}  // namespace tutti::test
