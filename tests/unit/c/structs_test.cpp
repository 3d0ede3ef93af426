// Every struct of the C API that has a size, as programs of other versions and as mistaken ones
// pass it, and every handle that is null, closed or of another kind.
#include "c/structs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <ostream>
#include <string>
#include <type_traits>

#include "tutti/tutti.h"
#include "unit/c/c_groups.hpp"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kMore = 40;  // bytes of fields that this library does not know

// A struct of a later version.
template <class T>
struct Later {
  T known;
  std::array<unsigned char, kMore> more = {};
};

struct Said {
  tutti_status_t code;
  std::string text;
  friend bool operator==(const Said&, const Said&) = default;
};
void PrintTo(const Said& said, std::ostream* out) { *out << said.code << ": " << said.text; }

class Structs : public testing::Test {
 protected:
  tutti_communicator_t* group() { return group_[0]; }

  // `call` takes the struct, which may be as its _init() function makes it.
  template <class T, class Call>
  void takes(const Call& call) {
    const auto say = [&](Later<T> argument) {
      const tutti_status_t code = call(&argument.known);
      return Said{code, code == TUTTI_OK ? "" : tutti_last_error()};
    };
    const Later<T> usual{c::Versioned<T>::defaults()};
    const Said answer = say(usual);
    const std::string name = c::Versioned<T>::kInfo.name;
    SCOPED_TRACE(name);
    const auto expect_refused = [&](const Later<T>& argument, const std::string& word) {
      const Said said = say(argument);
      EXPECT_EQ(said.code, TUTTI_INVALID_ARGUMENT) << argument.known.size;
      EXPECT_THAT(said.text,
                  testing::AllOf(StartsWith("tutti_"), HasSubstr(name), HasSubstr(word)));
    };

    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{8}, sizeof(T) - 1,
                                   std::size_t{1} << 32, std::numeric_limits<std::size_t>::max()}) {
      Later<T> argument = usual;
      argument.known.size = size;
      expect_refused(argument, "size is " + std::to_string(size));
    }
    Later<T> later = usual;
    later.known.size = sizeof(T) + kMore;
    EXPECT_EQ(say(later), answer) << "fields that are not set do not matter";
    for (const std::size_t byte : {std::size_t{0}, std::size_t{7}, kMore - 1}) {
      Later<T> set = later;
      set.more[byte] = 1;
      expect_refused(set, "byte " + std::to_string(sizeof(T) + byte) + " is set");
    }
    if constexpr (requires { later.known.reserved; }) {
      Later<T> reserved = usual;
      reserved.known.reserved = 1;
      EXPECT_EQ(say(reserved).code, TUTTI_INVALID_ARGUMENT);
      EXPECT_THAT(say(reserved).text, HasSubstr("`reserved`"));
    }
  }

  template <class T>
  void is_taken_by(tutti_status_t (*function)(tutti_communicator_t*, T*)) {
    takes<std::remove_const_t<T>>([&](auto* argument) { return function(group(), argument); });
  }

 private:
  CGroup group_{1};
};

TEST_F(Structs, OfCollectives) {
  is_taken_by(tutti_all_reduce);
  is_taken_by(tutti_all_gather);
  is_taken_by(tutti_reduce_scatter);
  is_taken_by(tutti_all_to_all);
  is_taken_by(tutti_broadcast);
  is_taken_by(tutti_reduce);
  is_taken_by(tutti_gather);
  is_taken_by(tutti_scatter);
  is_taken_by(tutti_all_gather_v);
  is_taken_by(tutti_reduce_scatter_v);
  is_taken_by(tutti_all_to_all_v);
  is_taken_by(tutti_barrier);
  is_taken_by(tutti_all_reduce_residual_rms_norm);
  require_c(tutti_group_start());  // a rank's message to itself needs a group
  is_taken_by(tutti_send);
  is_taken_by(tutti_recv);
  require_c(tutti_group_end());
}

TEST_F(Structs, OfOneSidedCalls) {
  is_taken_by(tutti_put);
  is_taken_by(tutti_put_signal);
  is_taken_by(tutti_get);
  is_taken_by(tutti_signal);
  takes<tutti_wait_signal_t>([&](tutti_wait_signal_t* call) {
    call->times = 0;
    return tutti_wait_signal(group(), call);
  });
}

TEST_F(Structs, OfOptions) {
  takes<tutti_call_options_t>([&](tutti_call_options_t* options) {
    tutti_all_reduce_t call = tutti_all_reduce_init();
    call.options = options;
    return tutti_all_reduce(group(), &call);
  });
  takes<tutti_communicator_options_t>([&](tutti_communicator_options_t* options) {
    options->backend = TUTTI_BACKEND_HOST;
    tutti_communicator_t* made = nullptr;
    const tutti_status_t status = tutti_communicator_create_in_process(nullptr, 1, options, &made);
    if (status == TUTTI_OK) require_c(tutti_communicator_destroy(made));
    return status;
  });
  takes<tutti_sharded_options_t>([&](tutti_sharded_options_t* options) {
    tutti_sharded_parameters_t* made = nullptr;  // without layers: refused, but read
    return tutti_sharded_parameters_create(group(), nullptr, 0, options, &made);
  });
  takes<tutti_pipeline_options_t>([&](tutti_pipeline_options_t* options) {
    tutti_all_gather_matmul_t call = tutti_all_gather_matmul_init();
    call.pipeline = options;
    return tutti_all_gather_matmul(group(), &call);
  });
  takes<tutti_query_t>([&](tutti_query_t* query) {
    tutti_plan_t plan = tutti_plan_init();
    query->count = 1;
    const tutti_status_t status = tutti_plan(group(), "all_reduce", query, &plan);
    tutti_string_free(plan.algorithm);
    tutti_string_free(plan.text);
    return status;
  });
}

TEST_F(Structs, OfMatmuls) {
  is_taken_by(tutti_all_gather_matmul);
  takes<tutti_matmul_t>([](tutti_matmul_t* call) {
    call->backend = TUTTI_BACKEND_HOST;
    return tutti_matmul(nullptr, call);
  });
}

TEST_F(Structs, OfResults) {
  is_taken_by(tutti_communicator_info);
  is_taken_by(tutti_communicator_counters);
  is_taken_by(tutti_communicator_failure);
  takes<tutti_failure_t>(tutti_last_failure);
  takes<tutti_plan_t>([&](tutti_plan_t* plan) {
    tutti_query_t query = tutti_query_init();
    query.count = 1;
    const tutti_status_t status = tutti_plan(group(), "all_reduce", &query, plan);
    tutti_string_free(plan->algorithm);
    tutti_string_free(plan->text);
    return status;
  });
  takes<tutti_matmul_plan_t>([&](tutti_matmul_plan_t* plan) {
    tutti_matmul_t call = tutti_matmul_init();
    call.backend = TUTTI_BACKEND_HOST;
    const tutti_status_t status = tutti_matmul_plan(&call, plan);
    for (char* const text : {plan->algorithm, plan->config, plan->why}) tutti_string_free(text);
    return status;
  });
}

TEST_F(Structs, OfResultsOnMemory) {
  tutti_memory_t* memory = nullptr;
  tutti_pool_t* pool = nullptr;
  tutti_block_t* block = nullptr;
  tutti_local_memory_t* local = nullptr;
  require_c(tutti_memory_allocate(group(), 64, &memory));
  require_c(tutti_local_memory_allocate(group(), 64, &local));
  require_c(tutti_pool_create(group(), &pool));
  require_c(tutti_pool_take(pool, 64, nullptr, &block));
  takes<tutti_memory_info_t>([&](auto* info) { return tutti_memory_info(memory, info); });
  takes<tutti_local_memory_info_t>([&](auto* of) { return tutti_local_memory_info(local, of); });
  takes<tutti_pool_use_t>([&](auto* use) { return tutti_pool_use(pool, use); });
  takes<tutti_block_info_t>([&](auto* info) { return tutti_block_info(block, info); });
  require_c(tutti_block_free(block));
  require_c(tutti_pool_destroy(pool));
  require_c(tutti_local_memory_free(local));
  require_c(tutti_memory_free(memory));
}

// A result of a later version has the fields that this library knows, and keeps its size.
TEST_F(Structs, AResultOfALaterVersionIsFilledAsFarAsItIsKnown) {
  Later<tutti_communicator_info_t> later{tutti_communicator_info_init()};
  later.known.size = sizeof later;
  later.known.ranks = 0;
  require_c(tutti_communicator_info(group(), &later.known));
  EXPECT_EQ(later.known.ranks, 1);
  EXPECT_EQ(later.known.size, sizeof later);
}

TEST_F(Structs, NullIsNoStruct) {
  EXPECT_EQ(tutti_all_reduce(group(), nullptr), TUTTI_INVALID_ARGUMENT);
  EXPECT_STREQ(tutti_last_error(), "tutti_all_reduce: the tutti_all_reduce_t is null");
  EXPECT_EQ(tutti_communicator_info(group(), nullptr), TUTTI_INVALID_ARGUMENT);
  EXPECT_STREQ(tutti_last_error(), "tutti_communicator_info: `info` is null");
  EXPECT_EQ(tutti_barrier(group(), nullptr), TUTTI_OK);
}

// Null, closed, and of another kind.
template <class Handle, class Call>
void refuses_handles(Handle* closed, void* other, const Call& call) {
  EXPECT_EQ(call(static_cast<Handle*>(nullptr)), TUTTI_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_last_error(), HasSubstr("is null"));
  for (Handle* const handle : {closed, static_cast<Handle*>(other)}) {
    EXPECT_EQ(call(handle), TUTTI_INVALID_ARGUMENT);
    EXPECT_THAT(tutti_last_error(), HasSubstr("is closed, or none of this library"));
  }
}

TEST_F(Structs, ClosedHandlesAreFoundOut) {
  tutti_communicator_t* closed = nullptr;
  require_c(tutti_communicator_split(group(), 0, 0, &closed));
  tutti_memory_t* memory = nullptr;
  tutti_pool_t* pool = nullptr;
  tutti_block_t* block = nullptr;
  tutti_local_memory_t* local = nullptr;
  tutti_sharded_parameters_t* sharded = nullptr;
  const float shard = 1;
  const tutti_sharded_layer_t layer = {&shard, 1, TUTTI_FLOAT32};
  require_c(tutti_memory_allocate(closed, 64, &memory));
  require_c(tutti_local_memory_allocate(closed, 64, &local));
  require_c(tutti_pool_create(closed, &pool));
  require_c(tutti_pool_take(pool, 64, nullptr, &block));
  require_c(tutti_sharded_parameters_create(closed, &layer, 1, nullptr, &sharded));
  EXPECT_EQ(tutti_communicator_destroy(closed), TUTTI_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_last_error(), HasSubstr("destroy them first"));
  require_c(tutti_sharded_parameters_destroy(sharded));
  require_c(tutti_communicator_destroy(closed));
  tutti_block_t* another = nullptr;
  EXPECT_EQ(tutti_pool_take(pool, 64, nullptr, &another), TUTTI_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_last_error(), HasSubstr("the communicator of this pool is closed"));
  require_c(tutti_block_free(block));
  require_c(tutti_pool_destroy(pool));
  require_c(tutti_local_memory_free(local));
  require_c(tutti_memory_free(memory));

  tutti_all_reduce_t call = tutti_all_reduce_init();
  refuses_handles(closed, memory, [&](auto* handle) { return tutti_all_reduce(handle, &call); });
  refuses_handles(closed, memory, tutti_communicator_status);
  refuses_handles(memory, group(), tutti_memory_free);
  refuses_handles(local, group(), tutti_local_memory_free);
  tutti_communicator_t* survivors = nullptr;
  refuses_handles(closed, memory, [&](auto* of) {
    return tutti_communicator_shrink(of, 0, &survivors, nullptr, nullptr);
  });
  refuses_handles(pool, group(), tutti_pool_trim);
  refuses_handles(block, group(), tutti_block_free);
  refuses_handles(block, group(), [](auto* of) { return tutti_block_give_back(of, nullptr); });
  refuses_handles(sharded, group(),
                  [](auto* of) { return tutti_sharded_parameters_finish(of, nullptr); });
  tutti_device_peers_t peers;
  refuses_handles(memory, group(),
                  [&](auto* of) { return tutti_device_peers(group(), of, &peers); });
}

}  // namespace
}  // namespace tutti::test
