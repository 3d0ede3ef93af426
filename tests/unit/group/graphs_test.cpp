// What captured operations use of a communicator's memory, and how they are ordered, on the fake
// driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "device/kernel_args.hpp"
#include "memory/symmetric_heap.hpp"
#include "support/cuda_graph.hpp"
#include "support/fake_gpus.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

// What one captured kernel was given.
struct Captured {
  std::uint64_t* epochs = nullptr;  // of its channel
  std::size_t staging_bytes = 0;
  std::uint32_t signature = 0;
};

class GraphsTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kCount = 1000;

  GraphsTest() {
    gpus_.cuda.on_captured_launch = [this](const CudaLaunch& launch) {
      const auto* const work = static_cast<const KernelArgs*>(launch.arguments[0]);
      latest_ = {work->epochs, work->staging_bytes, work->signature};
      return [] { return Status::ok(); };
    };
    gpus_.cuda.on_launch = [this](const CudaLaunch& launch) {
      eager_staging_ = static_cast<const KernelArgs*>(launch.arguments[0])->staging_bytes;
      return Status::ok();
    };
  }

  Communicator& group() { return gpus_.groups.front(); }
  Status reduce(Stream stream) {
    return all_reduce(group(), {.input = plain_.data(),
                                .output = plain_.data(),
                                .count = kCount,
                                .stream = stream,
                                .options = {.algorithm = "two_shot"}});
  }
  CapturedGraph capture(Stream stream) {
    return CapturedGraph(gpus_.cuda, stream, [&] { require_ok(reduce(stream)); });
  }
  std::uint64_t* channel_of_capture(Stream stream) {
    const CapturedGraph graph = capture(stream);
    return latest_.epochs;
  }
  std::size_t own_bytes() { return group().impl().heap()->use().allocated_bytes; }

  FakeGpus gpus_{1};
  std::vector<float> plain_ = std::vector<float>(kCount);
  Captured latest_;
  std::size_t eager_staging_ = 0;
};

TEST_F(GraphsTest, ThousandsLiveInTheMemoryOfOneCommunicator) {
  constexpr std::size_t kGraphs = 4200;
  const std::size_t bytes = own_bytes();
  EXPECT_LT(bytes, 64 * MiB);
  const Stream stream = gpus_.make_stream(0);
  std::uint64_t* const first = channel_of_capture(stream);
  const std::size_t events = gpus_.cuda.open().events;
  std::vector<CapturedGraph> graphs;
  std::set<std::uint32_t> signatures;
  for (std::size_t k = 0; k < kGraphs; ++k) {
    graphs.push_back(capture(stream));
    EXPECT_EQ(latest_.epochs, first);
    signatures.insert(latest_.signature);
  }
  EXPECT_EQ(own_bytes(), bytes);
  EXPECT_EQ(gpus_.cuda.open().events, events);
  EXPECT_GT(signatures.size(), kGraphs - 10) << "replays of two graphs that overlap would match";
  graphs.front().launch(stream);
  graphs.back().launch(stream);

  const Stream other = gpus_.make_stream(0);
  EXPECT_NE(channel_of_capture(other), first);
  graphs.clear();
  EXPECT_EQ(channel_of_capture(other), first) << "graphs that are gone use nothing";
}

TEST_F(GraphsTest, PlainBuffersHaveTheStagingOfEagerCalls) {
  const Stream stream = gpus_.make_stream(0), other = gpus_.make_stream(0);
  require_ok(reduce(stream));
  EXPECT_EQ(eager_staging_, 8 * MiB);
  const CapturedGraph graph = capture(stream);
  EXPECT_EQ(latest_.staging_bytes, eager_staging_);
  const CapturedGraph second = capture(other);
  EXPECT_EQ(latest_.staging_bytes, 512 * KiB) << "what another stream's graphs have";
}

TEST_F(GraphsTest, GraphsOfDifferentStreamsHaveDifferentChannels) {
  constexpr std::size_t kChannels = 8;
  std::vector<CapturedGraph> graphs;
  std::vector<std::uint64_t*> channels;
  for (std::size_t k = 0; k < kChannels; ++k) {
    graphs.push_back(capture(gpus_.make_stream(0)));
    channels.push_back(latest_.epochs);
  }
  EXPECT_EQ(std::set(channels.begin(), channels.end()).size(), kChannels);
  graphs.push_back(capture(gpus_.make_stream(0)));
  EXPECT_EQ(latest_.epochs, channels.front()) << "a ninth stream shares";
  graphs.push_back(capture(gpus_.make_stream(0)));
  EXPECT_EQ(latest_.epochs, channels[1]);
}

// A rank's graphs may end earlier than another's.
TEST(GraphsOfRanksTest, AgreeOnTheirChannelEachTime) {
  FakeGpus gpus(2);
  std::vector<std::uint32_t> signatures(2);
  gpus.cuda.on_captured_launch = [&](const CudaLaunch& launch) {
    const auto* const work = static_cast<const KernelArgs*>(launch.arguments[0]);
    signatures[static_cast<std::size_t>(work->rank)] = work->signature;
    return [] { return Status::ok(); };
  };
  const std::vector<Stream> streams = {gpus.make_stream(0), gpus.make_stream(1)};
  std::vector<std::vector<CapturedGraph>> graphs(2);
  std::set<std::uint32_t> seen;
  std::vector<float> plain(2000);
  for (int round = 0; round < 12; ++round) {
    on_all_ranks(2, [&](int r) {
      const auto k = static_cast<std::size_t>(r);
      // Rank 1 captures on a new stream each time, and keeps nothing.
      const Stream stream = r == 0 ? streams[0] : gpus.make_stream(1);
      if (r == 1) graphs[k].clear();
      graphs[k].emplace_back(gpus.cuda, stream, [&] {
        require_ok(all_reduce(gpus.groups[k], {.input = plain.data() + 1000 * k,
                                               .output = plain.data() + 1000 * k,
                                               .count = 1000,
                                               .stream = stream,
                                               .options = {.algorithm = "two_shot"}}));
      });
    });
    EXPECT_EQ(signatures[0], signatures[1]) << round;
    seen.insert(signatures[0]);
  }
  EXPECT_EQ(seen.size(), 12U);
}

// Operations that copy, of a rank alone. Each is a node, done in the order of the graph; the events
// are those of the fork, and what orders the operations.
class ForkedCaptureTest : public ::testing::Test {
 protected:
  ForkedCaptureTest() {
    for (CudaEvent* event : {&fork_, &join_}) *event = take(gpus_.cuda.create_event(false));
  }
  ~ForkedCaptureTest() override {
    for (const CudaEvent event : {fork_, join_}) (void)gpus_.cuda.destroy_event(event);
  }
  Status move(Stream stream) {
    return all_reduce(
        gpus_.groups.front(),
        {.input = memory_.data(), .output = memory_.data() + 8, .count = 8, .stream = stream});
  }
  void order(CudaEvent event, Stream later, Stream earlier) {
    require_ok(gpus_.cuda.record_event(event, earlier));
    require_ok(gpus_.cuda.wait_event(later, event));
  }
  // How many waits for events these operations make.
  int waits(const std::vector<Stream>& streams) {
    const int before = gpus_.cuda.calls("wait_event");
    for (const Stream stream : streams) require_ok(move(stream));
    return gpus_.cuda.calls("wait_event") - before;
  }

  FakeGpus gpus_{1};
  std::vector<float> memory_ = std::vector<float>(16);
  CudaEvent fork_ = nullptr, join_ = nullptr;
  const Stream one_ = gpus_.make_stream(0), two_ = gpus_.make_stream(0);
};

TEST_F(ForkedCaptureTest, OrdersOperationsWhereTheStreamChanges) {
  require_ok(move(two_));  // an eager one: no capture may wait for it
  const CapturedGraph graph(gpus_.cuda, one_, [&] {
    order(fork_, two_, one_);
    EXPECT_EQ(waits({one_, one_}), 0);
    EXPECT_EQ(waits({two_}), 1);
    EXPECT_EQ(waits({two_}), 0);
    EXPECT_EQ(waits({one_, two_, one_}), 3);
    order(join_, one_, two_);
  });
  EXPECT_EQ(waits({two_}), 0) << "an eager one waits for none of a capture's";
  EXPECT_EQ(waits({one_}), 1);
}

// The fake refuses an event of another capture, as CUDA does.
TEST_F(ForkedCaptureTest, CapturesUnderWayAtOnceAreApart) {
  const Stream three = gpus_.make_stream(0);
  std::optional<CapturedGraph> inner;
  const CapturedGraph outer(gpus_.cuda, one_, [&] {
    order(fork_, two_, one_);
    EXPECT_EQ(waits({one_}), 0);
    inner.emplace(gpus_.cuda, three, [&] { EXPECT_EQ(waits({three}), 0); });
    EXPECT_EQ(waits({two_}), 1);
    order(join_, one_, two_);
  });
  std::size_t events = 0;
  for (int k = 0; k < 100; ++k) {
    const CapturedGraph again(gpus_.cuda, one_, [&] { EXPECT_EQ(waits({one_}), 0); });
    if (k == 0) events = gpus_.cuda.open().events;
  }
  EXPECT_EQ(gpus_.cuda.open().events, events) << "a stream's next capture uses its event";
}

}  // namespace
}  // namespace tutti::test
