// Plain buffers between start_capture() and finish_capture(), on the fake driver: pieces of
// different lengths, and copies, whose addresses are captured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "device/kernel_args.hpp"
#include "support/cuda_graph.hpp"
#include "support/fake_gpus.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kRoomForInts = 1000;

class LateRegistrationTest : public ::testing::Test {
 protected:
  explicit LateRegistrationTest(int devices = 2)
      : gpus_(2, {}, std::make_shared<FakeCudaWorld>(devices)) {
    gpus_.cuda.on_captured_launch = [this](const CudaLaunch& launch) {
      const auto* const work = static_cast<const KernelArgs*>(launch.arguments[0]);
      late_[at(work->rank)] = work->late;
      staged_ = staged_ || work->stage_input || work->stage_output;
      return [] { return Status::ok(); };
    };
    for (int r = 0; r < 2; ++r) {
      streams_.push_back(gpus_.make_stream(r));
      for (auto* buffers : {&inputs_, &outputs_}) {
        buffers->push_back(reinterpret_cast<int*>(
            take(gpus_.cuda.allocate(gpus_.device_of(r), kRoomForInts * sizeof(int)))));
      }
    }
  }
  ~LateRegistrationTest() override {
    for (const auto* buffers : {&inputs_, &outputs_}) {
      for (int* const each : *buffers) (void)gpus_.cuda.free(reinterpret_cast<std::byte*>(each));
    }
  }
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  Communicator& group(int rank) { return gpus_.groups[at(rank)]; }

  static constexpr std::size_t kCount = 400;
  using Graphs = std::array<std::optional<CapturedGraph>, 2>;
  // Of all_gather by copy engines.
  void capture_copies(Graphs& graphs) {
    on_all_ranks(2, [&](int r) {
      require_ok(group(r).start_capture());
      graphs[at(r)].emplace(gpus_.cuda, streams_[at(r)], [&] {
        require_ok(all_gather(group(r), {.input = inputs_[at(r)],
                                         .output = outputs_[at(r)],
                                         .count = kCount,
                                         .dtype = DataType::kInt32,
                                         .stream = streams_[at(r)],
                                         .options = {.algorithm = "copy_engine"}}));
      });
      require_ok(group(r).finish_capture());
    });
  }

  FakeGpus gpus_;
  std::vector<Stream> streams_;
  std::vector<int*> inputs_, outputs_;
  std::array<const DeferredBuffers*, 2> late_{};
  std::atomic<bool> staged_ = false;
};

// Rank 1 receives nothing, so its output is no memory at all.
TEST_F(LateRegistrationTest, PiecesOfDifferentLengthsAreRegistered) {
  const std::array<std::array<std::size_t, 2>, 2> sent = {{{3, 0}, {5, 0}}};
  const std::array<std::array<std::size_t, 2>, 2> taken = {{{3, 5}, {0, 0}}};
  std::array<std::optional<CapturedGraph>, 2> graphs;
  on_all_ranks(2, [&](int r) {
    require_ok(group(r).start_capture());
    graphs[at(r)].emplace(gpus_.cuda, streams_[at(r)], [&] {
      require_ok(all_to_all_v(group(r), {.input = inputs_[at(r)],
                                         .output = r == 0 ? outputs_[0] : nullptr,
                                         .send_counts = sent[at(r)].data(),
                                         .recv_counts = taken[at(r)].data(),
                                         .max_count = 5,
                                         .dtype = DataType::kInt32,
                                         .stream = streams_[at(r)],
                                         .options = {.algorithm = "push"}}));
    });
    require_ok(group(r).finish_capture());
  });
  EXPECT_FALSE(staged_);
  for (const int r : {0, 1}) {
    ASSERT_NE(late_[at(r)], nullptr) << "finish_capture() has nothing to register";
    EXPECT_EQ(late_[at(r)]->ready, 1u);
    // Starting with the next rank's.
    EXPECT_EQ(late_[at(r)]->outputs.at[r == 0 ? 1 : 0], reinterpret_cast<std::byte*>(outputs_[0]));
  }
}

// Of threads with GPUs of their own copies may queue, so they are staged.
TEST_F(LateRegistrationTest, CopiesOfThreadsAreNotRegistered) {
  const std::size_t registered = group(0).counters().registrations;
  Graphs graphs;
  capture_copies(graphs);
  EXPECT_EQ(group(0).counters().registrations, registered);
}

struct MayShareGpus {
  MayShareGpus() { ::setenv("TUTTI_SHARE_GPUS", "1", 1); }
  ~MayShareGpus() { ::unsetenv("TUTTI_SHARE_GPUS"); }
};
class LateRegistrationOnOneGpu : MayShareGpus, public LateRegistrationTest {
 protected:
  LateRegistrationOnOneGpu() : LateRegistrationTest(1) {}
};

// What is captured is copied by the replay, from where the other rank's input is.
TEST_F(LateRegistrationOnOneGpu, CopiesReachPlainBuffersOfPeers) {
  const std::size_t registered = group(0).counters().registrations;
  Graphs graphs;
  capture_copies(graphs);
  EXPECT_FALSE(staged_);
  EXPECT_EQ(group(0).counters().registrations, registered + 1) << "of the input, which peers read";
  for (int round = 1; round <= 3; ++round) {
    for (const int r : {0, 1}) std::fill_n(inputs_[at(r)], kCount, 10 * round + r);
    for (const int r : {0, 1}) graphs[at(r)]->launch(streams_[at(r)]);
    for (const int r : {0, 1}) {
      EXPECT_EQ(outputs_[at(r)][0], 10 * round);
      EXPECT_EQ(outputs_[at(r)][2 * kCount - 1], 10 * round + 1);
    }
  }
}

// Memory that no peer can reach is named, and nothing is captured with a wrong address.
TEST_F(LateRegistrationOnOneGpu, CopiesOfMemoryThatCannotBeRegisteredAreRefused) {
  const CudaAddress pool =
      take(gpus_.cuda.allocate_kind(CudaMemoryKind::kPool, 0, kRoomForInts * sizeof(int)));
  on_all_ranks(2, [&](int r) {
    require_ok(group(r).start_capture());
    const CapturedGraph graph(gpus_.cuda, streams_[at(r)], [&] {
      const void* const input = r == 0 ? static_cast<const void*>(pool) : inputs_[1];
      const Status refused = all_gather(group(r), {.input = input,
                                                   .output = outputs_[at(r)],
                                                   .count = 10,
                                                   .dtype = DataType::kInt32,
                                                   .stream = streams_[at(r)],
                                                   .options = {.algorithm = "copy_engine"}});
      EXPECT_EQ(refused.code(), StatusCode::kUnsupported) << refused.to_string();
      EXPECT_THAT(refused.message(), HasSubstr("cannot be registered"));
    });
    require_ok(group(r).finish_capture());
    EXPECT_TRUE(group(r).status().is_ok());
  });
  require_ok(gpus_.cuda.free(pool));
}

}  // namespace
}  // namespace tutti::test
