// How puts, gets and signals are enqueued on GPUs, and how blocks share a copy.
#include "executors/peer/one_sided.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"

namespace tutti {
namespace {

using test::require_ok;
using test::take;
using ::testing::ElementsAre;

struct Launched {
  OneSided kind;
  int blocks;
  friend bool operator==(const Launched&, const Launched&) = default;
};

class OneSidedLaunch : public ::testing::Test {
 protected:
  OneSidedLaunch() {
    cuda_.on_launch = [this](const CudaLaunch& launch) {
      launched_.push_back({static_cast<OneSidedWork*>(launch.arguments[0])->kind, launch.blocks});
      return Status::ok();
    };
    from_ = take(cuda_.allocate(0, 2 * MiB));
    to_ = take(cuda_.allocate(0, 2 * MiB));
    stream_ = take(cuda_.create_stream(0));
  }
  ~OneSidedLaunch() override {
    (void)cuda_.free(from_);
    (void)cuda_.free(to_);
    (void)cuda_.destroy_stream(stream_);
  }

  std::vector<Launched> run(OneSided kind, std::size_t bytes, Mover mover = Mover::kAuto) {
    launched_.clear();
    OneSidedWork work{};
    work.kind = kind;
    work.bytes = bytes;
    work.from = from_;
    work.to = to_;
    work.peers.at[0] = kind == OneSided::kGet ? from_ : to_;
    EXPECT_TRUE(one_sided_.run(work, mover, stream_).is_ok());
    return launched_;
  }

  FakeCuda cuda_{std::make_shared<FakeCudaWorld>(1)};
  CudaOneSided one_sided_{cuda_};
  CudaAddress from_ = nullptr, to_ = nullptr;
  Stream stream_ = nullptr;
  std::vector<Launched> launched_;
};

TEST_F(OneSidedLaunch, ASignalGoesWithSmallDataAndBehindLargeData) {
  EXPECT_THAT(run(OneSided::kPutSignal, 0), ElementsAre(Launched{OneSided::kPutSignal, 1}));
  EXPECT_THAT(run(OneSided::kPutSignal, 32 * KiB), ElementsAre(Launched{OneSided::kPutSignal, 1}));
  EXPECT_THAT(run(OneSided::kPutSignal, 32 * KiB + 1),
              ElementsAre(Launched{OneSided::kPut, 2}, Launched{OneSided::kSignal, 1}));
  EXPECT_THAT(run(OneSided::kPut, 2 * MiB), ElementsAre(Launched{OneSided::kPut, 64}));
  EXPECT_THAT(run(OneSided::kSignal, 0), ElementsAre(Launched{OneSided::kSignal, 1}));
  EXPECT_THAT(run(OneSided::kWaitSignal, 0), ElementsAre(Launched{OneSided::kWaitSignal, 1}));
}

TEST_F(OneSidedLaunch, CopyEnginesTakeLargeGetsAndWhatIsSaid) {
  EXPECT_THAT(run(OneSided::kGet, 64 * KiB), ElementsAre(Launched{OneSided::kGet, 2}));
  EXPECT_TRUE(run(OneSided::kGet, 64 * KiB + 1).empty());
  const std::uint8_t mark = 7;
  require_ok(cuda_.copy(from_ + 2 * MiB - 1, &mark, 1));
  EXPECT_TRUE(run(OneSided::kGet, 2 * MiB).empty());
  std::uint8_t seen = 0;
  require_ok(cuda_.copy(&seen, to_ + 2 * MiB - 1, 1));
  EXPECT_EQ(seen, mark) << "a copy engine moved it";
  EXPECT_THAT(run(OneSided::kPutSignal, 100, Mover::kCopyEngine),
              ElementsAre(Launched{OneSided::kSignal, 1}));
  EXPECT_THAT(run(OneSided::kPutSignal, 0, Mover::kCopyEngine),
              ElementsAre(Launched{OneSided::kSignal, 1}));
  EXPECT_THAT(run(OneSided::kGet, 2 * MiB, Mover::kKernel),
              ElementsAre(Launched{OneSided::kGet, 64}));
}

TEST_F(OneSidedLaunch, IsCaughtUpOnceEveryStreamIs) {
  EXPECT_TRUE(one_sided_.caught_up()) << "nothing was started";
  const auto gate = std::make_shared<std::atomic<bool>>(false);
  Stream const slow = take(cuda_.create_stream(0));
  cuda_.add_gate(slow, gate);
  Stream const fast = std::exchange(stream_, slow);
  run(OneSided::kSignal, 0);
  stream_ = fast;
  run(OneSided::kSignal, 0);
  EXPECT_FALSE(one_sided_.caught_up());
  gate->store(true);
  EXPECT_TRUE(one_sided_.caught_up());
  (void)cuda_.destroy_stream(slow);
}

TEST_F(OneSidedLaunch, EventsAreReusedWhereStreamsComeAndGo) {
  std::vector<Stream> streams = {stream_};
  for (int k = 0; k < 100; ++k) {
    stream_ = take(cuda_.create_stream(0));
    streams.push_back(stream_);
    run(OneSided::kSignal, 0);
  }
  EXPECT_EQ(cuda_.open().events, 16u);
  stream_ = streams.front();
  for (std::size_t k = 1; k < streams.size(); ++k) (void)cuda_.destroy_stream(streams[k]);
}

TEST_F(OneSidedLaunch, CapturesLeaveNoEvent) {
  require_ok(cuda_.begin_capture(stream_));
  run(OneSided::kGet, 2 * MiB);
  const CudaGraph graph = take(cuda_.end_capture(stream_));
  EXPECT_EQ(cuda_.open().events, 0u);
  (void)cuda_.destroy_graph(graph);
}

// Whatever the size: each byte is one block's.
TEST(OneSidedParts, BlocksCopyAllOfIt) {
  Control control{};
  for (const std::size_t bytes : {0u, 1u, 127u, 128u, 129u, 4096u, 100001u}) {
    for (const int blocks : {1, 2, 7, 64}) {
      std::vector<std::byte> from(bytes + 1), to(bytes + 1);
      for (std::size_t k = 0; k < bytes; ++k) from[k] = std::byte(k * 7 + 1);
      OneSidedWork work{};
      work.kind = OneSided::kPut;
      work.from = from.data();
      work.bytes = bytes;
      work.peers.bytes = bytes;
      work.peers.at[0] = to.data();
      work.peers.signals.control = &control;
      for (int b = 0; b < blocks; ++b) EXPECT_TRUE(run_one_sided(work, device::Block(b, blocks)));
      EXPECT_EQ(from, to) << bytes << " bytes, " << blocks << " blocks";
      std::size_t sum = 0;
      for (int b = 0; b < blocks; ++b) sum += part_of(bytes, device::Block(b, blocks)).bytes;
      EXPECT_EQ(sum, bytes) << "no byte is copied twice";
    }
  }
}

}  // namespace
}  // namespace tutti
