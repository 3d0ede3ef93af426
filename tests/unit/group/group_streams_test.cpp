// Groups of calls on several streams of a GPU: the operations are behind all of these, and before
// what follows on any of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "device/kernel_args.hpp"
#include "support/cuda_graph.hpp"
#include "support/fake_gpus.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

// One rank alone, whose operations copy: the fake does that in stream order.
class GroupStreamsTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kCount = 16;

  GroupStreamsTest() : memory_(take(group().allocate(4 * kCount * sizeof(int)))) {
    for (std::size_t place = 0; place < 4; ++place) std::fill_n(at(place), kCount, -1);
    std::fill_n(at(0), kCount, 5);
  }

  Communicator& group() { return gpus_.groups.front(); }
  int* at(std::size_t place) { return static_cast<int*>(memory_.data()) + place * kCount; }
  Status move(Communicator& communicator, std::size_t from, std::size_t to, Stream stream) {
    return all_reduce(communicator, {.input = at(from),
                                     .output = at(to),
                                     .count = kCount,
                                     .dtype = DataType::kInt32,
                                     .stream = stream});
  }
  // What is at `place` when the stream comes to it.
  void look(Stream stream, std::size_t place, std::atomic<int>& seen) {
    require_ok(gpus_.cuda.enqueue(stream, [this, place, &seen] {
      seen = *at(place);
      return Status::ok();
    }));
  }
  // Until the word is set.
  void hold(Stream stream) {
    const std::array<CudaMemoryOperation, 1> wait = {
        {{.kind = CudaMemoryOperation::Kind::kWaitAtLeast, .word = &word_, .value = 1}}};
    require_ok(gpus_.cuda.memory_operations(wait, stream));
  }
  void let_go() { std::atomic_ref(word_).store(1); }

  FakeGpus gpus_{1};
  SymmetricMemory memory_;
  std::uint64_t word_ = 0;
  const Stream one_ = gpus_.make_stream(0), two_ = gpus_.make_stream(0);
};

TEST_F(GroupStreamsTest, EveryStreamWaitsForAll) {
  hold(two_);
  group_start();
  require_ok(move(group(), 0, 1, one_));
  require_ok(move(group(), 1, 2, two_));
  require_ok(group_end());
  std::atomic<int> seen = 0;
  look(one_, 2, seen);
  EXPECT_FALSE(gpus_.idle(one_));
  EXPECT_EQ(*at(1), -1) << "an operation began before the other stream had come to the group";
  let_go();
  require_ok(gpus_.cuda.synchronize(one_));
  EXPECT_EQ(*at(1), 5);
  EXPECT_EQ(seen, 5) << "the first stream went on before the second one's operation";
}

TEST_F(GroupStreamsTest, OneStreamNeedsNoEvents) {
  require_ok(move(group(), 0, 1, one_));
  const int waits = gpus_.cuda.calls("wait_event");
  group_start();
  require_ok(move(group(), 0, 1, one_));
  require_ok(move(group(), 1, 2, one_));
  require_ok(group_end());
  EXPECT_EQ(gpus_.cuda.calls("wait_event"), waits);
}

// Captured events order them, and leave both streams joined.
TEST_F(GroupStreamsTest, InACaptureToo) {
  const CapturedGraph graph(gpus_.cuda, one_, [&] {
    const CudaEvent fork = take(gpus_.cuda.create_event(false));
    require_ok(gpus_.cuda.record_event(fork, one_));
    require_ok(gpus_.cuda.wait_event(two_, fork));
    group_start();
    require_ok(move(group(), 0, 1, two_));
    require_ok(move(group(), 1, 2, one_));
    require_ok(group_end());
    require_ok(gpus_.cuda.destroy_event(fork));
  });
  EXPECT_EQ(*at(1), -1);
  graph.launch(one_);
  EXPECT_EQ(*at(2), 5);
}

TEST_F(GroupStreamsTest, StreamsOfDifferentCapturesAreRefused) {
  require_ok(gpus_.cuda.begin_capture(one_));
  group_start();
  require_ok(move(group(), 0, 1, one_));
  require_ok(move(group(), 1, 2, two_));
  const Status status = group_end();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("some are captured and others are not"));
  require_ok(gpus_.cuda.destroy_graph(take(gpus_.cuda.end_capture(one_))));
  require_ok(move(group(), 0, 1, one_));
  EXPECT_EQ(*at(1), 5);
  EXPECT_EQ(*at(2), -1);
}

// In one order, whatever order they are listed in; the second begins behind the first.
TEST_F(GroupStreamsTest, CommunicatorsOfAGpuRunOneAfterTheOther) {
  const auto other = take(group().split(0, 0));
  std::vector<std::vector<Stream>> orders;
  for (const bool swapped : {false, true}) {
    std::vector<Stream> order;
    gpus_.cuda.before_copy = [&](std::size_t, Stream stream) { order.push_back(stream); };
    group_start();
    if (swapped) require_ok(move(*other, 0, 2, two_));
    require_ok(move(group(), 0, 1, one_));
    if (!swapped) require_ok(move(*other, 0, 2, two_));
    require_ok(group_end());
    gpus_.cuda.before_copy = {};
    orders.push_back(order);
  }
  ASSERT_EQ(orders[0].size(), 2U);
  EXPECT_EQ(orders[0], orders[1]);

  const Stream first = orders[0].front();
  hold(first);
  std::fill_n(at(1), kCount, -1);
  std::fill_n(at(2), kCount, -1);
  group_start();
  require_ok(move(group(), 0, 1, one_));
  require_ok(move(*other, 0, 2, two_));
  require_ok(group_end());
  EXPECT_EQ(*at(first == one_ ? 2 : 1), -1);
  let_go();
  require_ok(gpus_.cuda.synchronize(one_));
  require_ok(gpus_.cuda.synchronize(two_));
  EXPECT_EQ(*at(1), 5);
  EXPECT_EQ(*at(2), 5);
}

// One thread for two ranks, which list what they have in different orders.
TEST(GroupOfRanksTest, CollectivesAreLaunchedBeforeMessages) {
  FakeGpus gpus(2);
  std::vector<SymmetricMemory> memory(2);
  on_all_ranks(2, [&](int r) {
    const auto k = static_cast<std::size_t>(r);
    memory[k] = take(gpus.groups[k].allocate(1024));
  });
  std::vector<std::uint64_t> launched;
  gpus.cuda.on_launch = [&](const CudaLaunch& launch) {
    launched.push_back(static_cast<const KernelArgs*>(launch.arguments[0])->count);
    return Status::ok();
  };
  const auto reduce = [&](std::size_t r, Stream stream) {
    return all_reduce(gpus.groups[r], {.input = memory[r].data(),
                                       .output = memory[r].data(),
                                       .count = 10,
                                       .stream = stream,
                                       .options = {.algorithm = "two_shot"}});
  };
  const Stream first = gpus.make_stream(0), second = gpus.make_stream(1);
  group_start();
  require_ok(
      send(gpus.groups[0], {.buffer = memory[0].data(), .count = 4, .peer = 1, .stream = first}));
  require_ok(reduce(0, first));
  require_ok(reduce(1, second));
  require_ok(
      recv(gpus.groups[1], {.buffer = memory[1].data(), .count = 4, .peer = 0, .stream = second}));
  require_ok(group_end());
  ASSERT_EQ(launched.size(), 4U);
  EXPECT_EQ(launched[0], 10U);
  EXPECT_EQ(launched[1], 10U);
  EXPECT_NE(launched[2], 10U);
  EXPECT_NE(launched[3], 10U);
}

}  // namespace
}  // namespace tutti::test
