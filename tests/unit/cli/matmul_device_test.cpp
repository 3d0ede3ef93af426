// How the time of matmuls is taken: in which order, over which sets, on a GPU that does not exist
// and on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/matmul/device.hpp"
#include "fakes/fake_cuda.hpp"
#include "fakes/fake_nvml.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;

TEST(HostMatmulDevice, TakesArmsInTurnThereAndBack) {
  std::string order;
  std::array<MatmulArm, 3> arms;
  std::vector<MatmulArm*> all;
  for (MatmulArm& arm : arms) {
    const char name = static_cast<char>('A' + all.size());
    arm.run = [&order, name](std::size_t, Stream) {
      order += name;
      return Status::ok();
    };
    arm.operations = 1;
    all.push_back(&arm);
  }
  const auto device = make_host_matmul_device();
  ASSERT_TRUE(device->sample(all, 4).is_ok());
  EXPECT_EQ(order, "ABCCBAABCCBA");
  EXPECT_EQ(arms[1].samples_us.size(), 4u);
}

// Of ranks that note what they are asked.
class NotedRanks final : public MatmulRanks {
 public:
  explicit NotedRanks(std::string& log) : log_(log) {}
  Status align(Stream) override {
    log_ += '|';
    return status();
  }
  Status status() override { return failed; }
  Result<std::vector<std::string>> exchange(const std::string& mine) override {
    return std::vector<std::string>{first.value_or(mine), mine};
  }

  Status failed = Status::ok();
  std::optional<std::string> first = {};

 private:
  std::string& log_;
};

TEST(HostMatmulDevice, RanksBeginEverySampleTogether) {
  std::string log;
  NotedRanks ranks(log);
  const auto device = make_host_matmul_device({.calls = 2, .ranks = &ranks});
  MatmulArm arm{.run = [&log](std::size_t, Stream) {
    log += 'A';
    return Status::ok();
  }};
  ASSERT_TRUE(device->prepare(arm, 1).is_ok());
  EXPECT_EQ(log, "A");
  EXPECT_EQ(arm.operations, 2);
  MatmulArm* const one[] = {&arm};
  ASSERT_TRUE(device->sample(one, 3).is_ok());
  EXPECT_EQ(log, "A|AA|AA|AA");
  EXPECT_TRUE(*device->agreed(true));
  ranks.first = "no";
  EXPECT_FALSE(*device->agreed(true));
  EXPECT_TRUE(*make_host_matmul_device()->agreed(true));
  EXPECT_EQ(operations_of_calls(4, 3), 6);
  EXPECT_EQ(operations_of_calls(4, 1), 4);
}

TEST(MatmulDevice, SamplesAreLongAndOfWholeTurns) {
  EXPECT_EQ(operations_for(100, 1), 25);
  EXPECT_EQ(operations_for(100, 7), 28);
  EXPECT_EQ(operations_for(1e6, 1), 1);
  EXPECT_EQ(operations_for(1e6, 3), 3);
  EXPECT_EQ(operations_for(0, 1), 16384);
}

class CudaMatmuls : public testing::Test {
 protected:
  CudaMatmuls() {
    fake_.on_launch = [](const CudaLaunch&) { return Status::ok(); };
    nvml_.power = 650;
  }

  // Each operation writes `name` where its set is.
  MatmulArm arm(std::byte* sets, char name) {
    return {.run = [this, sets, name](std::size_t set, Stream stream) {
      ++enqueued_[name];
      return fake_.set_async(sets + set, name, 1, stream);
    }};
  }

  FakeCuda fake_{std::make_shared<FakeCudaWorld>(1)};
  FakeNvml nvml_;
  std::map<char, int> enqueued_;
};

TEST_F(CudaMatmuls, AreReplaysOfGraphsThereAndBack) {
  const auto device = make_cuda_matmul_device(fake_, &nvml_);
  ASSERT_TRUE(device.is_ok()) << device.status().to_string();
  const auto memory = (*device)->allocate(3);
  ASSERT_TRUE(memory.is_ok());
  MatmulArm a = arm(memory->get(), 'A'), b = arm(memory->get(), 'B');
  const auto seen = [&] {
    std::string text(3, ' ');
    EXPECT_TRUE((*device)->copy(text.data(), memory->get(), 3).is_ok());
    return text;
  };
  for (MatmulArm* each : {&a, &b}) ASSERT_TRUE((*device)->prepare(*each, 3).is_ok());
  EXPECT_EQ(a.operations % 3, 0);
  EXPECT_EQ(enqueued_['A'], a.operations + 2);  // what is captured, and two runs before
  MatmulArm* const both[] = {&a, &b};
  ASSERT_TRUE((*device)->sample(both, 1).is_ok());
  EXPECT_EQ(seen(), "BBB");
  ASSERT_TRUE((*device)->sample(both, 6).is_ok());
  EXPECT_EQ(seen(), "AAA");  // the last round is a reversed one
  EXPECT_EQ(enqueued_['A'], a.operations + 2);
  EXPECT_EQ(a.samples_us.size(), 7u);
  EXPECT_EQ(b.samples_us.size(), 7u);
  EXPECT_EQ((*device)->watts(), 650);
  EXPECT_EQ((*device)->watts(), 0);  // since then nothing ran
}

TEST_F(CudaMatmuls, AreCallsThatRanksBeginTogether) {
  std::string log;
  NotedRanks ranks(log);
  const auto device = make_cuda_matmul_device(fake_, nullptr, {.calls = 3, .ranks = &ranks});
  ASSERT_TRUE(device.is_ok()) << device.status().to_string();
  const auto arm = [&log](char name) {
    return MatmulArm{.run = [&log, name](std::size_t set, Stream) {
      log += set == 0 ? name : static_cast<char>(name - 'A' + 'a');
      return Status::ok();
    }};
  };
  MatmulArm a = arm('A'), b = arm('B');
  for (MatmulArm* each : {&a, &b}) ASSERT_TRUE((*device)->prepare(*each, 2).is_ok());
  log.clear();
  MatmulArm* const both[] = {&a, &b};
  ASSERT_TRUE((*device)->sample(both, 2).is_ok());
  EXPECT_EQ(log, "|AaAa|BbBb|BbBb|AaAa");
  EXPECT_EQ(a.samples_us.size(), 2u);
  EXPECT_EQ(a.host_us.size(), 8u + 1);  // and one by which the lead was chosen
  EXPECT_EQ(fake_.open().graphs, 0u);
  ranks.failed = Status(StatusCode::kPeerFailed, "rank 1 is gone");
  EXPECT_EQ((*device)->sample(both, 1).code(), StatusCode::kPeerFailed);
}

TEST_F(CudaMatmuls, NothingIsLeftOpen) {
  {
    const auto device = make_cuda_matmul_device(fake_, nullptr);
    ASSERT_TRUE(device.is_ok());
    const auto memory = (*device)->allocate(1);
    MatmulArm a = arm(memory->get(), 'A');
    ASSERT_TRUE((*device)->prepare(a, 1).is_ok());
    MatmulArm* const one[] = {&a};
    ASSERT_TRUE((*device)->sample(one, 5).is_ok());
  }
  EXPECT_EQ(fake_.open(), FakeCudaOpen{});
}

TEST_F(CudaMatmuls, AMatmulThatFailsIsReported) {
  const auto device = make_cuda_matmul_device(fake_, nullptr);
  ASSERT_TRUE(device.is_ok());
  int calls = 0;
  MatmulArm failing{.run = [&calls](std::size_t, Stream) {
    return ++calls < 3 ? Status::ok() : Status(StatusCode::kUnsupported, "in a capture");
  }};
  EXPECT_EQ((*device)->prepare(failing, 1).message(), "in a capture");
  EXPECT_EQ((*device)->watts(), 0);
}

}  // namespace
}  // namespace tutti::cli
