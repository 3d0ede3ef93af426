// A group of one rank: what it gets is what it puts in, and nothing else happens. On the host, and
// on fakes of CUDA.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "group/recorder/find_pages.hpp"
#include "group/recorder/snapshot.hpp"
#include "support/fake_gpus.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kElements = 777;
constexpr std::size_t kBytes = kElements * sizeof(float);
constexpr std::size_t kOneCount[] = {kElements};

struct Sides2 {
  float* input;
  float* output;
  Stream stream = nullptr;
};
using Operate = Status (*)(Communicator&, const Sides2&);

template <class AnyCall>
AnyCall filled(const Sides2& sides) {
  AnyCall call{};
  call.input = sides.input;
  call.output = sides.output;
  if constexpr (requires { call.count; }) call.count = kElements;
  call.dtype = DataType::kFloat32;
  call.stream = sides.stream;
  return call;
}

struct NamedOperation {
  const char* name;
  Operate run;
};

// All that one rank alone does by a copy.
constexpr NamedOperation kOperations[] = {
    {"all_reduce",
     [](Communicator& g, const Sides2& s) { return all_reduce(g, filled<AllReduce>(s)); }},
    {"average",
     [](Communicator& g, const Sides2& s) {
       AllReduce call = filled<AllReduce>(s);
       call.op = ReduceOp::avg();
       return all_reduce(g, call);
     }},
    {"all_gather",
     [](Communicator& g, const Sides2& s) { return all_gather(g, filled<AllGather>(s)); }},
    {"reduce_scatter",
     [](Communicator& g, const Sides2& s) { return reduce_scatter(g, filled<ReduceScatter>(s)); }},
    {"all_to_all",
     [](Communicator& g, const Sides2& s) { return all_to_all(g, filled<AllToAll>(s)); }},
    {"broadcast",
     [](Communicator& g, const Sides2& s) { return broadcast(g, filled<Broadcast>(s)); }},
    {"reduce", [](Communicator& g, const Sides2& s) { return reduce(g, filled<Reduce>(s)); }},
    {"gather", [](Communicator& g, const Sides2& s) { return gather(g, filled<Gather>(s)); }},
    {"scatter", [](Communicator& g, const Sides2& s) { return scatter(g, filled<Scatter>(s)); }},
    {"all_gather_v",
     [](Communicator& g, const Sides2& s) {
       AllGatherV call = filled<AllGatherV>(s);
       call.counts = kOneCount;
       return all_gather_v(g, call);
     }},
    {"reduce_scatter_v",
     [](Communicator& g, const Sides2& s) {
       ReduceScatterV call = filled<ReduceScatterV>(s);
       call.counts = kOneCount;
       return reduce_scatter_v(g, call);
     }},
    {"all_to_all_v",
     [](Communicator& g, const Sides2& s) {
       AllToAllV call = filled<AllToAllV>(s);
       call.send_counts = call.recv_counts = kOneCount;
       call.max_count = kElements;
       return all_to_all_v(g, call);
     }},
};
// Of these the input may be the output.
constexpr std::string_view kInPlace[] = {"all_reduce",     "average",         "all_gather",
                                         "reduce_scatter", "broadcast",       "reduce",
                                         "all_gather_v",   "reduce_scatter_v"};

bool runs_in_place(std::string_view name) {
  return std::ranges::find(kInPlace, name) != std::end(kInPlace);
}

TEST(Alone, OnTheHostItsInputIsItsOutput) {
  auto groups = take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  for (const NamedOperation& operation : kOperations) {
    std::vector<float> input(kElements), output(kElements + 1, -1);
    std::iota(input.begin(), input.end(), 1.0f);
    require_ok(operation.run(groups[0], {input.data(), output.data()}));
    EXPECT_EQ(std::memcmp(input.data(), output.data(), kBytes), 0) << operation.name;
    EXPECT_EQ(output.back(), -1) << operation.name;
    if (!runs_in_place(operation.name)) continue;
    const std::vector<float> before = input;
    require_ok(operation.run(groups[0], {input.data(), input.data()}));
    EXPECT_EQ(input, before) << operation.name;
  }
  require_ok(barrier(groups[0], {}));
}

TEST(Alone, WhatIsMultipliedIsMultiplied) {
  auto groups = take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  std::vector<float> input(kElements, 3), output(kElements);
  AllReduce call = filled<AllReduce>({input.data(), output.data()});
  call.op = ReduceOp::pre_mul_sum(0.5);
  require_ok(all_reduce(groups[0], call));
  EXPECT_THAT(output, ::testing::Each(1.5f));
}

// What it has for itself and what it takes are not the same: as in any group, nobody copies.
TEST(Alone, CountsThatDifferAreFound) {
  auto groups = take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  std::vector<float> input(kElements), output(kElements, -1);
  AllToAllV call = filled<AllToAllV>({input.data(), output.data()});
  constexpr std::size_t kLess[] = {kElements - 1};
  call.send_counts = kOneCount;
  call.recv_counts = kLess;
  call.max_count = kElements;
  EXPECT_FALSE(all_to_all_v(groups[0], call).is_ok());
  EXPECT_THAT(output, ::testing::Each(-1.0f));
}

// One GPU, and how often the driver was asked for what.
class AloneOnCuda : public ::testing::Test {
 protected:
  AloneOnCuda() {
    gpus_.cuda.on_launch = [this](const CudaLaunch&) {
      ++launches_;
      return Status::ok();
    };
  }
  ~AloneOnCuda() override {
    for (Stream stream : streams_) EXPECT_TRUE(cuda_.destroy_stream(stream).is_ok());
  }

  float* input() { return static_cast<float*>(memory_.data()); }
  float* output() { return input() + kElements; }
  int copies() const { return cuda_.calls("copy_async"); }

  FakeGpus gpus_{1};
  FakeCuda& cuda_ = gpus_.cuda;
  Communicator& group_ = gpus_.groups[0];
  SymmetricMemory memory_ = take(group_.allocate(2 * kBytes));
  std::array<Stream, 2> streams_{gpus_.make_stream(0), gpus_.make_stream(0)};
  int launches_ = 0;
};

TEST_F(AloneOnCuda, IsOneCopyOrNothing) {
  for (const NamedOperation& operation : kOperations) {
    std::iota(input(), input() + kElements, 1.0f);
    std::memset(output(), 0, kBytes);
    const int before = copies();
    require_ok(operation.run(group_, {input(), output(), streams_[0]}));
    EXPECT_EQ(copies(), before + 1) << operation.name;
    EXPECT_EQ(std::memcmp(input(), output(), kBytes), 0) << operation.name;
    if (!runs_in_place(operation.name)) continue;
    require_ok(operation.run(group_, {input(), input(), streams_[0]}));
    EXPECT_EQ(copies(), before + 1) << operation.name << ", in place";
  }
  require_ok(barrier(group_, {.stream = streams_[0]}));
  EXPECT_EQ(launches_, 0);
}

TEST_F(AloneOnCuda, PlainBuffersAreNotStaged) {
  std::vector<float> from(kElements, 2), to(kElements);
  const int before = copies();
  require_ok(all_reduce(group_, filled<AllReduce>({from.data(), to.data(), streams_[0]})));
  EXPECT_EQ(copies(), before + 1);
  EXPECT_EQ(from, to);
}

// In the order of the calls, as any two operations of a communicator, and within the stream.
TEST_F(AloneOnCuda, KeepsTheOrderOfStreams) {
  require_ok(all_reduce(group_, filled<AllReduce>({input(), output(), streams_[0]})));
  const int waits = cuda_.calls("wait_event"), records = cuda_.calls("record_event");
  require_ok(all_reduce(group_, filled<AllReduce>({output(), input(), streams_[1]})));
  EXPECT_EQ(cuda_.calls("wait_event"), waits + 1);
  EXPECT_EQ(cuda_.calls("record_event"), records + 1);
}

// A graph has a node of a copy, and takes no channel, for which hosts would exchange something.
TEST_F(AloneOnCuda, IsCaptured) {
  const auto exchanges = group_.impl().counters().exchanges;
  require_ok(cuda_.begin_capture(streams_[0]));
  const int before = copies();
  require_ok(all_reduce(group_, filled<AllReduce>({input(), output(), streams_[0]})));
  require_ok(all_reduce(group_, filled<AllReduce>({input(), input(), streams_[0]})));
  EXPECT_EQ(copies(), before + 1);
  const CudaGraph graph = take(cuda_.end_capture(streams_[0]));
  const CudaGraphExec exec = take(cuda_.instantiate(graph));
  for (const float value : {5.0f, 7.0f}) {
    std::fill(input(), input() + kElements, value);
    require_ok(cuda_.launch_graph(exec, streams_[0]));
    EXPECT_EQ(output()[kElements - 1], value);
  }
  EXPECT_EQ(group_.impl().counters().exchanges, exchanges);
  EXPECT_EQ(launches_, 0);
  require_ok(cuda_.destroy_graph_exec(exec));
  require_ok(cuda_.destroy_graph(graph));
}

// What could not be captured is the caller's to know: nothing has run.
TEST_F(AloneOnCuda, ACopyThatIsNotCapturedLeavesTheGroupUsable) {
  require_ok(cuda_.begin_capture(streams_[0]));
  cuda_.fail("copy_async", 0);
  EXPECT_FALSE(all_reduce(group_, filled<AllReduce>({input(), output(), streams_[0]})).is_ok());
  EXPECT_TRUE(group_.status().is_ok()) << group_.status().message();
  require_ok(all_reduce(group_, filled<AllReduce>({input(), output(), streams_[1]})));
}

TEST_F(AloneOnCuda, RowsThatAreNamedRun) {
  AllReduce call = filled<AllReduce>({input(), output(), streams_[0]});
  call.options.algorithm = "one_shot";
  require_ok(all_reduce(group_, call));
  EXPECT_EQ(launches_, 1);
  call.options.algorithm = "";
  call.op = ReduceOp::pre_mul_sum(2);
  require_ok(all_reduce(group_, call));
  EXPECT_EQ(launches_, 2);
}

TEST_F(AloneOnCuda, ArgumentsAndFailuresAreLookedAt) {
  AllReduce call = filled<AllReduce>({input(), output(), streams_[0]});
  call.input = nullptr;
  EXPECT_EQ(all_reduce(group_, call).code(), StatusCode::kInvalidArgument);
  call = filled<AllReduce>({input(), output(), streams_[0]});
  cuda_.fail("copy_async", 0);
  EXPECT_FALSE(all_reduce(group_, call).is_ok());
  EXPECT_FALSE(all_reduce(group_, call).is_ok()) << "a failed group stays failed";
}

// What `tutti status` shows of it.
TEST_F(AloneOnCuda, IsRecorded) {
  require_ok(all_reduce(group_, filled<AllReduce>({input(), output(), streams_[0]})));
  require_ok(all_reduce(group_, filled<AllReduce>({input(), input(), streams_[0]})));
  const Snapshot page = take(parse_page(take(read_page(group_.impl().recorder().descriptor()))));
  ASSERT_EQ(page.operations.size(), 2u);
  for (const RecordedOperation& operation : page.operations) {
    EXPECT_EQ(operation.count, kElements);
    EXPECT_THAT(operation.row, ::testing::StartsWith("all_reduce/"));
  }
}

}  // namespace
}  // namespace tutti::test
