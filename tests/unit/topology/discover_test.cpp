#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "drivers/nvml.hpp"
#include "fakes/fake_cuda.hpp"
#include "fakes/fake_nvml.hpp"
#include "topology/topology.hpp"

namespace tutti {
namespace {

class DiscoverTest : public testing::Test {
 protected:
  DiscoverTest() {
    for (std::size_t i = 0; i < world_->devices.size(); ++i) {
      CudaDeviceProperties& device = world_->devices[i];
      device.name = "NVIDIA H200";
      device.pci_bus_id = "0000:1b:00." + std::to_string(i);
      device.uuid = {0xde, 0xad, 0xbe, 0xef};
      device.compute_major = 9;
      device.compute_minor = 0;
      device.multiprocessors = 132;
    }
  }

  std::shared_ptr<FakeCudaWorld> world_ = std::make_shared<FakeCudaWorld>(3);
  FakeCuda cuda_{world_};
  FakeNvml nvml_;
};

TEST_F(DiscoverTest, DescribesEachGpu) {
  const Machine machine = discover_machine(&cuda_, nullptr);
  EXPECT_EQ(machine.why_no_gpu, "");
  ASSERT_EQ(machine.gpus.size(), 3U);
  EXPECT_EQ(machine.gpus[2].index, 2);
  EXPECT_EQ(machine.gpus[2].name, "NVIDIA H200");
  EXPECT_EQ(machine.gpus[2].compute, 90);
  EXPECT_EQ(machine.gpus[2].multiprocessors, 132);
  EXPECT_EQ(machine.gpus[2].uuid, "GPU-deadbeef-0000-0000-0000-000000000000");
  EXPECT_EQ(machine.gpus[2].nvlinks, 0);
  EXPECT_EQ(machine_slug(machine), "h200x3");
}

TEST_F(DiscoverTest, PeerAccessIsDirected) {
  world_->without_peer_access.insert({2, 1});
  const Machine machine = discover_machine(&cuda_, nullptr);
  ASSERT_EQ(machine.peer_access.size(), 3U);
  EXPECT_FALSE(machine.peer_access[2][1]);
  EXPECT_TRUE(machine.peer_access[1][2]);
  EXPECT_TRUE(machine.peer_access[2][2]);
}

TEST_F(DiscoverTest, LinksAreMatchedByPciId) {
  NvmlGpu other;
  other.pci_bus_id = "0000:ff:00.0";
  other.nvlinks = 4;
  NvmlGpu second;
  second.pci_bus_id = "00000000:1B:00.1";
  second.nvlinks = 18;
  second.numa_node = 1;
  nvml_.all = {other, second};
  const Machine machine = discover_machine(&cuda_, &nvml_);
  EXPECT_EQ(machine.gpus[0].nvlinks, 0);
  EXPECT_EQ(machine.gpus[1].nvlinks, 18);
  EXPECT_EQ(machine.gpus[1].numa_node, 1);
}

TEST_F(DiscoverTest, VisibleGpusAloneAreNumbered) {
  FakeCuda last(world_, {2});
  const Machine machine = discover_machine(&last, nullptr);
  ASSERT_EQ(machine.gpus.size(), 1U);
  EXPECT_EQ(machine.gpus[0].index, 0);
  EXPECT_EQ(machine.gpus[0].pci_bus_id, "0000:1b:00.2");
}

// Half a description would be taken for a smaller machine.
TEST_F(DiscoverTest, AFailingDriverLeavesNoGpuAndAReason) {
  for (const char* method : {"device_count", "properties", "can_access_peer"}) {
    cuda_.fail(method, 0);
    const Machine machine = discover_machine(&cuda_, &nvml_);
    ASSERT_TRUE(cuda_.has_failed()) << method;
    EXPECT_TRUE(machine.gpus.empty()) << method;
    EXPECT_TRUE(machine.peer_access.empty()) << method;
    EXPECT_NE(machine.why_no_gpu, "") << method;
    EXPECT_GE(machine.host.cores, 1) << method;
  }
}

}  // namespace
}  // namespace tutti
