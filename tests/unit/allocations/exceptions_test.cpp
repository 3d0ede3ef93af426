// No exception leaves the library: of each public function the first, second, ... allocation fails.
// What comes back is kResourceExhausted, and where ranks do something together all hear of it.
// A binary of its own, since operator new is the whole program's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "tutti/collectives.hpp"
#include "tutti/communicator.hpp"
#include "tutti/matmul.hpp"
#include "tutti/one_sided.hpp"
#include "tutti/sharded_parameters.hpp"
#include "tutti/symmetric_pool.hpp"

namespace {

// Of this thread: counts down, and the allocation that reaches 0 fails.
thread_local int fail_allocation_at = -1;

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (fail_allocation_at >= 0 && fail_allocation_at-- == 0) throw std::bad_alloc();
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, 16); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace tutti::test {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr int kMostAllocations = 20'000;

// What a call says while its n-th allocation fails; `failed`: whether it had so many.
template <class F>
Status with_failing_allocation(int n, bool& failed, F&& f) {
  struct Reset {
    ~Reset() { fail_allocation_at = -1; }
  } const reset;
  fail_allocation_at = n;
  Status status = f();
  failed = fail_allocation_at < 0;
  return status;
}

// The first ones each, later ones here and there: the same code is behind most of them.
int next_after(int n) { return n < 12 ? n + 1 : n + 1 + n / 4; }

// Repeats `call` on `subject` until none of its allocations fails. A subject that is broken, or
// null, is made anew.
template <class Subject>
void with_every_allocation(std::string_view name, const std::function<Subject()>& make,
                           const std::function<Status(Subject&)>& call) {
  std::optional<Subject> subject;
  int n = 0, failures = 0;
  for (bool failed = true; failed && n < kMostAllocations; n = next_after(n)) {
    if (!subject) subject.emplace(make());
    const Status status = with_failing_allocation(n, failed, [&] { return call(*subject); });
    if (!failed) {
      EXPECT_TRUE(status.is_ok()) << name << ": " << status.to_string();
    } else if (!status.is_ok()) {
      ++failures;
      EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << name << status.to_string();
      EXPECT_THAT(status.message(), HasSubstr("out of memory")) << name << " " << n;
    }
    subject.reset();
  }
  EXPECT_LT(n, kMostAllocations) << name;
  EXPECT_GT(failures, 0) << name << " asks for no memory: leave it out";
}

Communicator alone() {
  return std::move(take(Communicator::create_in_process(1, kOnHost)).front());
}

struct Case {
  const char* name;
  std::function<Status(Communicator&)> call;
};

class Buffers {
 public:
  static constexpr std::size_t kCount = 64;
  float* input() { return input_.data(); }
  float* output() { return output_.data(); }

 private:
  std::array<float, kCount> input_{}, output_{};
};

Buffers& buffers() {
  thread_local Buffers of_this_thread;
  return of_this_thread;
}

template <class Kind, class Function>
Case collective(const char* name, Function function) {
  return {name, [function](Communicator& group) {
            Kind call{};
            call.input = buffers().input();
            call.output = buffers().output();
            call.count = Buffers::kCount / static_cast<std::size_t>(group.size());
            call.dtype = DataType::kFloat32;
            return function(group, call);
          }};
}

template <class ResultType>
Status status_of(const ResultType& result) {
  return result.is_ok() ? Status::ok() : result.status();
}

// Success, where the call was refused as it should be. Copies no text: that would ask for memory.
Status refused(const Status& status) {
  if (status.code() == StatusCode::kInvalidArgument) return Status::ok();
  return {status.code(), "out of memory"};
}

Status send_around(Communicator& group) {
  const int size = group.size(), rank = group.rank();
  group_start();
  const Status sent =
      send(group, {.buffer = buffers().input(), .count = 8, .peer = (rank + 1) % size});
  const Status taken =
      recv(group, {.buffer = buffers().output(), .count = 8, .peer = (rank + size - 1) % size});
  const Status ended = group_end();
  for (const Status& status : {sent, taken}) {
    if (!status.is_ok()) return status;
  }
  return ended;
}

Status gather_uneven(Communicator& group) {
  constexpr std::array<std::size_t, 2> counts = {8, 8};
  return all_gather_v(group, {.input = buffers().input(),
                              .output = buffers().output(),
                              .counts = counts.data(),
                              .dtype = DataType::kFloat32});
}

// Made before any allocation fails.
const std::array<float, 4> kShard{};
const std::vector<ShardedLayer> kLayers = {{.shard = kShard.data(), .count = 4}};

Status shard(Communicator& group) {
  auto sharded = ShardedParameters::create(group, kLayers);
  if (!sharded.is_ok()) return sharded.status();
  Status status = sharded->prefetch(0);
  if (status.is_ok()) status = status_of(sharded->gathered(0, nullptr));
  return status;
}

Matmul small_matmul() {
  return {.a = buffers().input(),
          .b = buffers().input(),
          .c = buffers().output(),
          .m = 2,
          .n = 3,
          .k = 4,
          .dtype = DataType::kFloat32,
          .backend = Backend::kHost};
}

// Collective: what all ranks do together. Not split() and creation, which read tuning tables: the
// JSON library asks for memory in a destructor, which nobody can catch.
std::vector<Case> together() {
  return {
      {"allocate", [](Communicator& g) { return status_of(g.allocate(5000)); }},
      {"register_memory",
       [](Communicator& g) { return status_of(g.register_memory(buffers().input(), 64)); }},
      collective<AllReduce>("all_reduce", all_reduce),
      collective<AllGather>("all_gather", all_gather),
      collective<ReduceScatter>("reduce_scatter", reduce_scatter),
      collective<AllToAll>("all_to_all", all_to_all),
      collective<Broadcast>("broadcast", broadcast),
      collective<Gather>("gather", gather),
      {"barrier", [](Communicator& g) { return barrier(g); }},
      {"all_gather_v", gather_uneven},
      {"send and recv", send_around},
      {"pool", [](Communicator& g) { return status_of(SymmetricPool(g).take(100)); }},
      {"sharded parameters", shard},
  };
}

// In a try block, since what is thrown in a noexcept function ends the program: a test that fails.
TEST(ExceptionsTest, OneRankAloneHearsOfAllOfThem) {
  for (const Case& one : together()) {
    with_every_allocation<Communicator>(one.name, alone, one.call);
  }
}

TEST(ExceptionsTest, WhatAsksNoOtherRankHarmsNothing) {
  Communicator group = alone();
  const std::vector<Case> cases = {
      {"plan", [](Communicator& g) { return status_of(g.plan("all_reduce", {.count = 1000})); }},
      {"an unknown collective",
       [](Communicator& g) { return refused(g.plan("reduce_all", {.count = 1000}).status()); }},
      {"unique ids",
       [](Communicator&) {
         const auto id = UniqueId::create();
         return id.is_ok() ? status_of(UniqueId::from_text(id->text())) : id.status();
       }},
      {"matmul", [](Communicator&) { return matmul(nullptr, small_matmul()); }},
      {"plan of a matmul", [](Communicator&) { return status_of(plan(small_matmul())); }},
      {"tune a matmul", [](Communicator&) { return status_of(tune(nullptr, small_matmul())); }},
      {"explain a matmul", [](Communicator&) { return status_of(explain(small_matmul())); }},
      {"layouts", [](Communicator&) { return refused(parse_matrix_layout("none").status()); }},
      {"data types",
       [](Communicator&) { return refused(parse_data_type("no such type").status()); }},
  };
  for (const Case& one : cases) {
    int failures = 0;
    bool failed = true;
    for (int n = 0; failed && n < kMostAllocations; n = next_after(n)) {
      const Status status = with_failing_allocation(n, failed, [&] { return one.call(group); });
      if (!failed) {
        EXPECT_TRUE(status.is_ok()) << one.name << status.to_string();
      }
      if (status.is_ok()) continue;
      ++failures;
      EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << one.name << status.to_string();
    }
    EXPECT_GT(failures, 0) << one.name;
    EXPECT_TRUE(group.status().is_ok()) << one.name;
  }
  const Status short_one(StatusCode::kCuda, "x");
  bool failed = true;
  for (int n = 0; failed; n = next_after(n)) {
    static_cast<void>(with_failing_allocation(n, failed, [&] {
      static_cast<void>(explain(group, "all_reduce", {.count = 1000}));
      static_cast<void>(short_one.with_context("a longer text than fits into a string itself"));
      return Status::ok();
    }));
  }
}

// The calling thread's part of it: each rank is made on a thread of its own.
TEST(ExceptionsTest, CreationInProcess) {
  int failures = 0;
  bool failed = true;
  for (int n = 0; failed && n < kMostAllocations; n = next_after(n)) {
    const Status status = with_failing_allocation(
        n, failed, [] { return status_of(Communicator::create_in_process(3, kOnHost)); });
    if (status.is_ok()) continue;
    ++failures;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.to_string();
  }
  EXPECT_GT(failures, 0);
}

// One of two ranks fails at its n-th allocation: the other hears it, and does not wait.
TEST(ExceptionsTest, TheOthersAreTold) {
  for (const Case& one : together()) {
    int told = 0;
    bool failed = true;
    for (int n = 0; failed && n < kMostAllocations; n = n < 4 ? n + 1 : 2 * n) {
      auto groups = take(Communicator::create_in_process(2, kOnHost));
      std::array<Status, 2> answers;
      on_all_ranks(2, [&](int rank) {
        Communicator& group = groups[static_cast<std::size_t>(rank)];
        const auto call = [&] { return one.call(group); };
        answers[static_cast<std::size_t>(rank)] =
            rank == 0 ? with_failing_allocation(n, failed, call) : call();
      });
      if (answers[0].is_ok()) {
        EXPECT_TRUE(answers[1].is_ok()) << one.name << n << answers[1].to_string();
        continue;
      }
      EXPECT_EQ(answers[0].code(), StatusCode::kResourceExhausted) << answers[0].to_string();
      if (answers[1].is_ok()) continue;  // it was through before
      ++told;
      EXPECT_EQ(answers[1].code(), StatusCode::kResourceExhausted)
          << one.name << " " << n << ": " << answers[1].to_string();
      EXPECT_THAT(answers[1].message(), HasSubstr("rank 0: out of memory")) << one.name;
    }
    EXPECT_GT(told, 0) << one.name;
  }
}

}  // namespace
}  // namespace tutti::test
