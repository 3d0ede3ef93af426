// How the host ends a rank's operations, and leaves known what one of their blocks has found.
#include <gtest/gtest.h>

#include "executors/peer/engine.hpp"
#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"

namespace tutti {

static void PrintTo(Backend backend, std::ostream* out) { *out << to_string(backend); }

}  // namespace tutti

namespace tutti::test {
namespace {

constexpr auto kMismatch = static_cast<std::uint32_t>(FailureReason::kMismatch);
constexpr EngineSizes kSizes{.channels = 1, .timeout_ns = 77};

class PoisonTest : public ::testing::TestWithParam<Backend> {
 protected:
  PoisonTest()
      : engine_(GetParam() == Backend::kHost ? make_host_engine(kSizes)
                                             : take(make_cuda_engine(cuda_, 0, *streams_, kSizes))),
        control_(*engine_->memory().control) {}

  FakeCuda cuda_{std::make_shared<FakeCudaWorld>(1)};
  std::unique_ptr<Streams> streams_ = make_host_streams();
  std::unique_ptr<Engine> engine_;
  Control& control_;
};

TEST_P(PoisonTest, EndsOperationsAndTouchesNothingElse) {
  EXPECT_EQ(control_.poison, 0u);
  for (int k = 0; k < 2; ++k) {
    engine_->poison();
    EXPECT_EQ(control_.poison, Control::kTold);
    EXPECT_EQ(Control::reason_of(control_.poison), FailureReason::kNone);
  }
  EXPECT_EQ(control_.claimed, 0u);
  EXPECT_EQ(control_.timeout_ns, 77u);
}

TEST_P(PoisonTest, WhatABlockFoundBeforeStaysKnown) {
  control_.poison = kMismatch;
  engine_->poison();
  EXPECT_EQ(control_.poison, Control::kTold | kMismatch);
  EXPECT_EQ(Control::reason_of(control_.poison), FailureReason::kMismatch);
}

INSTANTIATE_TEST_SUITE_P(Backends, PoisonTest, ::testing::Values(Backend::kHost, Backend::kCuda),
                         [](const auto& backend) {
                           return backend.param == Backend::kHost ? "host" : "cuda";
                         });

}  // namespace
}  // namespace tutti::test
