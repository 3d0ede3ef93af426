// Plain buffers between start_capture() and finish_capture(), on the fake driver: pieces of
// different lengths, and copies, whose addresses are captured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/kernel_args.hpp"
#include "support/cuda_graph.hpp"
#include "support/fake_gpus.hpp"
#include "support/patience.hpp"
#include "support/run_ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kRoomForInts = 1000;

// Two ranks with plain buffers, and what their captures launch.
struct PlainRanks {
  explicit PlainRanks(int devices = 2) : gpus_(2, {}, std::make_shared<FakeCudaWorld>(devices)) {
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
  ~PlainRanks() {
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

class LateRegistrationTest : public ::testing::Test, protected PlainRanks {};

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

// In a process of its own, since settings are read once.
std::string on_one_gpu(const std::function<void(PlainRanks&)>& test) {
  const auto run = [&] {
    ::setenv("TUTTI_SHARE_GPUS", "1", 1);
    PlainRanks ranks(1);
    test(ranks);
  };
  return run_isolated(run, kPatience);
}

void copies_reach_plain_buffers(PlainRanks& ranks) {
  constexpr std::size_t kCount = PlainRanks::kCount;
  const std::size_t registered = ranks.group(0).counters().registrations;
  PlainRanks::Graphs graphs;
  ranks.capture_copies(graphs);
  require(!ranks.staged_, "it was staged");
  require(ranks.group(0).counters().registrations == registered + 1, "of what peers read, once");
  for (int round = 1; round <= 3; ++round) {
    for (const std::size_t r : {0, 1}) {
      std::fill_n(ranks.inputs_[r], kCount, 10 * round + static_cast<int>(r));
    }
    for (const std::size_t r : {0, 1}) graphs[r]->launch(ranks.streams_[r]);
    for (const int* output : ranks.outputs_) {
      require(output[0] == 10 * round && output[2 * kCount - 1] == 10 * round + 1, "wrong data");
    }
  }
}

// What is captured is copied by the replay, from where the other rank's input is.
TEST(LateRegistrationOnOneGpu, CopiesReachPlainBuffersOfPeers) {
  EXPECT_EQ(on_one_gpu(copies_reach_plain_buffers), "");
}

// Memory that no peer can reach is named, and nothing is captured with a wrong address.
void unregistered_copies_are_refused(PlainRanks& ranks) {
  const CudaAddress pool =
      take(ranks.gpus_.cuda.allocate_kind(CudaMemoryKind::kPool, 0, kRoomForInts * sizeof(int)));
  on_all_ranks(2, [&](int r) {
    const auto k = static_cast<std::size_t>(r);
    require_ok(ranks.group(r).start_capture());
    const CapturedGraph graph(ranks.gpus_.cuda, ranks.streams_[k], [&] {
      const void* const input = r == 0 ? static_cast<const void*>(pool) : ranks.inputs_[1];
      const Status refused = all_gather(ranks.group(r), {.input = input,
                                                         .output = ranks.outputs_[k],
                                                         .count = 10,
                                                         .dtype = DataType::kInt32,
                                                         .stream = ranks.streams_[k],
                                                         .options = {.algorithm = "copy_engine"}});
      const bool says = refused.message().find("cannot be registered") != std::string::npos;
      require(refused.code() == StatusCode::kUnsupported && says, refused.to_string());
    });
    require_ok(ranks.group(r).finish_capture());
    require_ok(ranks.group(r).status());
  });
  require_ok(ranks.gpus_.cuda.free(pool));
}

TEST(LateRegistrationOnOneGpu, CopiesOfMemoryThatCannotBeRegisteredAreRefused) {
  EXPECT_EQ(on_one_gpu(unregistered_copies_are_refused), "");
}

}  // namespace
}  // namespace tutti::test
