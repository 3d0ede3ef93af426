// Layers that are gathered, given up and reduced as a training step does it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "group/recorder/find_pages.hpp"
#include "group/recorder/snapshot.hpp"
#include "support/check.hpp"
#include "support/fake_gpus.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr int kLayers = 5;

std::size_t count_of(int layer) { return layer == 0 ? 1001 : 300; }  // one of another size
int parameter(int iteration, int layer, std::size_t element) {
  return 1000000 * iteration + 10000 * layer + static_cast<int>(element);
}
int contribution(int rank, int layer, std::size_t element) {
  return (rank + 1) * (layer + 1) + static_cast<int>(element % 7);
}

// One rank's shards and gradients, and a step over them.
class Step {
 public:
  explicit Step(Rank& rank) : rank_(rank) {
    std::vector<ShardedLayer> layers;
    for (int k = 0; k < kLayers; ++k) {
      shards_.emplace_back(count_of(k));
      gradients_.emplace_back(count_of(k));
      layers.push_back({shards_.back().data(), count_of(k), DataType::kInt32});
    }
    parameters_.emplace(take(ShardedParameters::create(rank.group, std::move(layers))));
    require(parameters_->layers() == kLayers, "as many as were given");
  }

  void run(int iteration) {
    for (int k = 0; k < kLayers; ++k) {
      const std::size_t first = static_cast<std::size_t>(rank_.number()) * count_of(k);
      auto& shard = shards_[static_cast<std::size_t>(k)];
      for (std::size_t i = 0; i < shard.size(); ++i) shard[i] = parameter(iteration, k, first + i);
    }
    require_ok(parameters_->updated(nullptr));
    for (int k = 0; k < kLayers; ++k) forward(iteration, k);
    for (int k = kLayers - 1; k >= 0; --k) backward(iteration, k);
    require_ok(parameters_->finish(nullptr));
    for (int k = 0; k < kLayers; ++k) check_gradient(k);
  }

 private:
  void forward(int iteration, int k) {
    if (k + 1 < kLayers) require_ok(parameters_->prefetch(k + 1));
    check_layer(iteration, k);
    if (k + 1 < kLayers) require_ok(parameters_->release(k, nullptr));
  }

  void backward(int iteration, int k) {
    if (k > 0) require_ok(parameters_->prefetch(k - 1));
    check_layer(iteration, k);
    auto* const gradient = static_cast<int*>(take(parameters_->gradient(k, nullptr)));
    for (std::size_t i = 0; i < static_cast<std::size_t>(rank_.size()) * count_of(k); ++i) {
      gradient[i] = contribution(rank_.number(), k, i);
    }
    require(take(parameters_->gradient(k, nullptr)) == gradient, "the same until it is reduced");
    require_ok(
        parameters_->reduce_gradient(k, gradients_[static_cast<std::size_t>(k)].data(), nullptr));
    require_ok(parameters_->release(k, nullptr));
  }

  void check_layer(int iteration, int k) {
    const auto* const whole = static_cast<const int*>(take(parameters_->gathered(k, nullptr)));
    for (std::size_t i = 0; i < static_cast<std::size_t>(rank_.size()) * count_of(k); ++i) {
      require(whole[i] == parameter(iteration, k, i), "the whole layer");
    }
  }

  void check_gradient(int k) {
    const std::size_t first = static_cast<std::size_t>(rank_.number()) * count_of(k);
    for (std::size_t i = 0; i < count_of(k); ++i) {
      int sum = 0;
      for (int r = 0; r < rank_.size(); ++r) sum += contribution(r, k, first + i);
      require(gradients_[static_cast<std::size_t>(k)][i] == sum, "the sum over all ranks");
    }
  }

  Rank& rank_;
  std::vector<std::vector<int>> shards_, gradients_;
  std::optional<ShardedParameters> parameters_;
};

class ShardedParametersLoop : public ::testing::TestWithParam<RankKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ShardedParametersLoop,
                         ::testing::Values(RankKind::kThreads, RankKind::kProcesses),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(ShardedParametersLoop, GathersAndReducesWithoutAskingForAnything) {
  EXPECT_EQ(run_group({.kind = GetParam(), .ranks = 3},
                      [](Rank& rank) {
                        Step step(rank);
                        step.run(0);
                        const auto first = rank.group.counters();
                        for (int iteration = 1; iteration < 4; ++iteration) step.run(iteration);
                        require(rank.group.counters() == first, "of nothing there is more");
                      }),
            "");
}

class ShardedParametersTest : public ::testing::Test {
 protected:
  ShardedParametersTest() {
    for (int k = 0; k < 3; ++k) {
      shards_.emplace_back(100, static_cast<float>(k));
      layers_.push_back({.shard = shards_.back().data(), .count = 100});
    }
  }
  Communicator& group() { return groups_[0]; }
  ShardedParameters parameters(int depth = 2) {
    return take(ShardedParameters::create(group(), layers_, {.depth = depth}));
  }
  void expect_refused(const Status& status, std::string_view text) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok());
  }

  std::vector<Communicator> groups_ =
      take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  std::vector<std::vector<float>> shards_;
  std::vector<ShardedLayer> layers_;
};

TEST_F(ShardedParametersTest, WhatCannotBeShardedIsRefused) {
  const auto refused = [this](std::vector<ShardedLayer> layers, int depth = 2) {
    return ShardedParameters::create(group(), std::move(layers), {.depth = depth}).status();
  };
  expect_refused(refused({}), "without a layer");
  expect_refused(refused(layers_, 0), "depth 0");
  std::vector<ShardedLayer> wrong = layers_;
  wrong[1].shard = nullptr;
  expect_refused(refused(wrong), "layer 1: its shard is null");
  wrong[1] = {.shard = shards_[1].data(), .count = 0};
  expect_refused(refused(wrong), "layer 1: its shard has no elements");
  wrong[1].count = ~std::size_t{0} / 4;
  expect_refused(refused(wrong), "overflows");
  wrong[1].dtype = static_cast<DataType>(99);
  expect_refused(refused(wrong), "dtype");
}

TEST_F(ShardedParametersTest, AnotherOrderIsRefused) {
  ShardedParameters sharded = parameters();
  for (const int none : {-1, 3}) {
    expect_refused(sharded.prefetch(none), "there are 3 layers");
    expect_refused(sharded.gathered(none, nullptr).status(), "there are 3 layers");
    expect_refused(sharded.release(none, nullptr), "there are 3 layers");
    expect_refused(sharded.gradient(none, nullptr).status(), "there are 3 layers");
  }
  expect_refused(sharded.release(0, nullptr), "release(0): it is not gathered");
  float out = 0;
  expect_refused(sharded.reduce_gradient(0, &out, nullptr), "gradient() comes before it");
  take(sharded.gradient(0, nullptr));
  expect_refused(sharded.reduce_gradient(0, nullptr, nullptr), "null");
  expect_refused(sharded.reduce_gradient(0, &out, nullptr, {.kind = static_cast<OpKind>(99)}),
                 "unknown op");
  require_ok(sharded.prefetch(0));
  require_ok(sharded.prefetch(0));
  require_ok(sharded.prefetch(1));
  expect_refused(sharded.prefetch(2), "2 are already (0, 1), and depth is 2");
  require_ok(sharded.release(0, nullptr));
  require_ok(sharded.prefetch(2));
}

TEST_F(ShardedParametersTest, AnAlgorithmThatIsNotThereLeavesTheLayerUngathered) {
  std::string name = "nonesuch";
  ShardedParameters sharded = take(
      ShardedParameters::create(group(), layers_, {.depth = 1, .gather = {.algorithm = name}}));
  name = "gone with";  // it was copied
  for (int k = 0; k < 3; ++k) expect_refused(sharded.prefetch(k), "nonesuch");
}

// Whoever reads on after release() reads another layer.
TEST_F(ShardedParametersTest, NegativeControlALayerIsOverwrittenBehindItsRelease) {
  ShardedParameters sharded = parameters(1);
  const auto* const early = static_cast<const float*>(take(sharded.gathered(1, nullptr)));
  EXPECT_EQ(early[99], 1.0F);
  require_ok(sharded.release(1, nullptr));
  require_ok(sharded.prefetch(2));
  EXPECT_EQ(early[99], 2.0F);
}

// On GPUs that are none, with one layer gathered at a time: the block of layer 0 becomes layer 1's.
class ShardedParametersStreams : public ::testing::Test {
 protected:
  ShardedParametersStreams() {
    for (int k = 0; k < 2; ++k) {
      shards_.push_back(reinterpret_cast<float*>(take(gpus_.cuda.allocate(0, 400))));
    }
    std::vector<ShardedLayer> layers{{shards_[0], 100}, {shards_[1], 100}};
    on_all_ranks(2, [&](int rank) {
      all_[static_cast<std::size_t>(rank)].emplace(take(ShardedParameters::create(
          gpus_.groups[static_cast<std::size_t>(rank)], layers, {.depth = 1})));
    });
  }
  ~ShardedParametersStreams() override {
    for (auto& one : all_) one.reset();
    for (float* shard : shards_) EXPECT_TRUE(gpus_.cuda.free(reinterpret_cast<std::byte*>(shard)));
  }
  ShardedParameters& sharded() { return *all_[0]; }

  // Whether layer 1 is gathered without waiting for what still reads layer 0.
  bool gathered_at_once(Stream released_on) {
    take(sharded().gathered(0, compute_));
    const auto gate = gpus_.occupy(compute_);
    require_ok(sharded().release(0, released_on));
    take(sharded().gathered(1, probe_));
    const bool at_once = gpus_.idle(probe_);
    *gate = true;
    EXPECT_TRUE(gpus_.idle(probe_));
    return at_once;
  }

  FakeGpus gpus_{2};
  std::vector<float*> shards_;
  std::array<std::optional<ShardedParameters>, 2> all_;
  Stream compute_ = gpus_.make_stream(0), probe_ = gpus_.make_stream(0);
};

TEST_F(ShardedParametersStreams, ABlockIsWrittenAgainBehindItsRelease) {
  EXPECT_FALSE(gathered_at_once(compute_));
}

TEST_F(ShardedParametersStreams, NegativeControlAReleaseOnAnotherStreamOrdersNothing) {
  EXPECT_TRUE(gathered_at_once(probe_));
}

TEST_F(ShardedParametersStreams, AComputationWaitsForItsLayerAlone) {
  const auto gate = gpus_.occupy(compute_);
  require_ok(sharded().updated(compute_));
  take(sharded().gathered(0, probe_));
  EXPECT_FALSE(gpus_.idle(probe_)) << "the shard is being written";
  *gate = true;
  EXPECT_TRUE(gpus_.idle(probe_));
}

TEST_F(ShardedParametersStreams, GradientsAreReducedBehindTheirComputation) {
  take(sharded().gradient(0, compute_));
  const auto gate = gpus_.occupy(compute_);
  require_ok(sharded().reduce_gradient(0, shards_[0], compute_));
  require_ok(sharded().finish(probe_));
  EXPECT_FALSE(gpus_.idle(probe_));
  *gate = true;
  EXPECT_TRUE(gpus_.idle(probe_));
}

TEST_F(ShardedParametersStreams, AGradientsBlockIsTakenAgainBehindItsReduction) {
  take(sharded().gradient(0, compute_));
  const auto gate = gpus_.occupy(compute_);
  require_ok(sharded().reduce_gradient(0, shards_[0], compute_));
  take(sharded().gradient(1, probe_));
  EXPECT_FALSE(gpus_.idle(probe_));
  *gate = true;
  EXPECT_TRUE(gpus_.idle(probe_));
}

// The rows of what ran, in order: by `options`, a layer gathered and its gradient reduced.
std::vector<std::string> rows_that_ran(int ranks, const ShardedOptions& options) {
  constexpr std::size_t kLarge = std::size_t{1} << 22;  // beyond what packets carry
  FakeGpus gpus(ranks);
  std::mutex turns;  // the kernels that keep ranks apart do not run on fake GPUs
  on_all_ranks(ranks, [&](int rank) {
    const Stream compute = gpus.make_stream(rank);
    std::byte* const shard = take(gpus.cuda.allocate(rank, kLarge * sizeof(float)));
    {
      Communicator& group = gpus.groups[static_cast<std::size_t>(rank)];
      auto sharded = take(
          ShardedParameters::create(group, {{reinterpret_cast<float*>(shard), kLarge}}, options));
      const std::lock_guard lock(turns);
      take(sharded.gathered(0, compute));
      take(sharded.gradient(0, compute));
      require_ok(sharded.reduce_gradient(0, shard, compute));
      require_ok(sharded.finish(compute));
    }
    require_ok(gpus.cuda.free(shard));
  });
  std::vector<std::string> rows;
  const auto page =
      take(parse_page(take(read_page(gpus.groups[0].impl().recorder().descriptor()))));
  for (const RecordedOperation& operation : page.operations) rows.push_back(operation.row);
  return rows;
}

// What reduces takes multiprocessors whoever moves the bytes: the fastest, unless few are asked
// for.
TEST(ShardedParametersRows, GatherByCopyEnginesAndReduceByWhatIsChosen) {
  using Rows = std::vector<std::string>;
  EXPECT_EQ(rows_that_ran(2, {}), (Rows{"all_gather/copy_engine", "reduce_scatter/pull"}));
  ShardedOptions few;
  few.gather.sm_budget = few.reduce.sm_budget = 8;
  EXPECT_EQ(rows_that_ran(2, few), (Rows{"all_gather/push_per_peer", "reduce_scatter/pull_tma"}));
  ShardedOptions named;
  named.gather.algorithm = "push";
  named.reduce.algorithm = "copy_engine";
  EXPECT_EQ(rows_that_ran(2, named), (Rows{"all_gather/push", "reduce_scatter/copy_engine"}));
}

TEST(ShardedParametersAlone, OneGpuNeedsNoOther) {
  FakeGpus gpus(1);
  const Stream compute = gpus.make_stream(0);
  std::byte* const shard = take(gpus.cuda.allocate(0, 400));
  {
    auto sharded = take(ShardedParameters::create(gpus.groups[0], {{shard, 100}}));
    take(sharded.gathered(0, compute));
    require_ok(sharded.release(0, compute));
    take(sharded.gradient(0, compute));
    require_ok(sharded.reduce_gradient(0, shard, compute));
    require_ok(sharded.finish(compute));
  }
  require_ok(gpus.cuda.free(shard));
}

// Neither streams nor events are left behind.
TEST(ShardedParametersAlone, NothingLeaks) {
  FakeGpus gpus(1);
  std::byte* const shard = take(gpus.cuda.allocate(0, 400));
  const FakeCudaOpen before = gpus.cuda.open();
  { take(ShardedParameters::create(gpus.groups[0], {{shard, 100}})); }
  EXPECT_EQ(gpus.cuda.open().streams, before.streams);
  EXPECT_EQ(gpus.cuda.open().events, before.events);
  require_ok(gpus.cuda.free(shard));
}

}  // namespace
}  // namespace tutti::test
