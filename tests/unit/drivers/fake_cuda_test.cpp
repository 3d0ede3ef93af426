// The fake of CUDA behaves as CUDA does where the library relies on it.
#include "fakes/fake_cuda.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

namespace tutti {
namespace {

constexpr std::size_t kBytes = 64 * KiB;

class FakeCudaTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeCudaWorld> world_ = std::make_shared<FakeCudaWorld>(2);
  FakeCuda cuda_{world_};
  FakeCuda peer_{world_};  // another process on the same machine
};

TEST_F(FakeCudaTest, OpenedMemoryHasTheSamePagesAtAnotherAddress) {
  const CudaAddress mine = *cuda_.allocate(0, kBytes);
  const CudaIpcHandle handle = *cuda_.ipc_handle(mine);
  const CudaAddress theirs = *peer_.ipc_open(1, handle);
  EXPECT_NE(mine, theirs);
  theirs[100] = std::byte{42};
  EXPECT_EQ(mine[100], std::byte{42});
  EXPECT_EQ(*peer_.ipc_open(1, handle), theirs) << "opened again, the same address";
  EXPECT_EQ(peer_.open().ipc, 2U);
  EXPECT_TRUE(peer_.ipc_close(theirs).is_ok());
  EXPECT_TRUE(peer_.ipc_close(theirs).is_ok());
  EXPECT_FALSE(peer_.ipc_close(theirs).is_ok());
  EXPECT_FALSE(cuda_.ipc_open(0, handle).is_ok()) << "not where it was made";
  EXPECT_TRUE(cuda_.free(mine).is_ok());
  EXPECT_FALSE(peer_.ipc_open(1, handle).is_ok()) << "not after it was freed";
}

TEST_F(FakeCudaTest, FreedAddressesAreGivenOutAgainUnderAnotherId) {
  const CudaAddress first = *cuda_.allocate(0, kBytes);
  const CudaPointer before = *cuda_.pointer(first + 5);
  EXPECT_EQ(before.base, first);
  EXPECT_EQ(before.kind, CudaMemoryKind::kMalloc);
  EXPECT_TRUE(cuda_.free(first).is_ok());
  EXPECT_EQ(cuda_.pointer(first)->kind, CudaMemoryKind::kUnknown);
  EXPECT_EQ(*cuda_.allocate(0, kBytes), first);
  EXPECT_NE(cuda_.pointer(first)->buffer_id, before.buffer_id);
}

TEST_F(FakeCudaTest, AllocationsTravelAsDescriptors) {
  const CudaAllocation mine = *cuda_.create_allocation(0, kBytes);
  const CudaAddress here = *cuda_.map_allocation(mine, kBytes, {0});
  Fd descriptor = *cuda_.export_allocation(mine);
  const CudaAllocation theirs = *peer_.import_allocation(descriptor.get());
  const CudaAddress there = *peer_.map_allocation(theirs, kBytes, {1});
  there[7] = std::byte{1};
  EXPECT_EQ(here[7], std::byte{1});
  EXPECT_TRUE(peer_.accessible(1, there));
  EXPECT_FALSE(peer_.accessible(0, there)) << "only for those it was mapped for";
  EXPECT_EQ(*cuda_.retain_allocation(here), mine) << "the same handle";
  EXPECT_EQ(cuda_.open().handles, 2U);
  EXPECT_FALSE(cuda_.create_allocation(0, kBytes + 1).is_ok()) << "no multiple of the granularity";
}

TEST_F(FakeCudaTest, AllocationsTravelAsFabricHandlesWhereTheMachinePermitsIt) {
  EXPECT_EQ(cuda_.create_fabric_allocation(0, kBytes).status().code(), StatusCode::kUnsupported);
  world_->devices[0].fabric_handles = world_->devices[1].fabric_handles = true;
  world_->without_fabric = {1};
  EXPECT_EQ(cuda_.create_fabric_allocation(1, kBytes).status().code(), StatusCode::kUnsupported);
  EXPECT_FALSE(cuda_.create_fabric_allocation(0, kBytes + 1).is_ok());

  const CudaAllocation mine = *cuda_.create_fabric_allocation(0, kBytes);
  const CudaAddress here = *cuda_.map_allocation(mine, kBytes, {0});
  EXPECT_FALSE(cuda_.export_allocation(mine).is_ok()) << "not as a descriptor, too";
  EXPECT_FALSE(cuda_.export_fabric(*cuda_.create_allocation(0, kBytes)).is_ok());
  const CudaFabricHandle handle = *cuda_.export_fabric(mine);
  const CudaAddress there = *peer_.map_allocation(*peer_.import_fabric(handle), kBytes, {1});
  there[7] = std::byte{1};
  EXPECT_EQ(here[7], std::byte{1});
  EXPECT_FALSE(peer_.import_fabric(CudaFabricHandle{}).is_ok());
}

TEST_F(FakeCudaTest, MemoryIsLimitedAndComesBackWithItsLastUser) {
  world_->devices[0].memory_bytes = kBytes;
  const CudaAllocation mine = *cuda_.create_allocation(0, kBytes);
  Fd descriptor = *cuda_.export_allocation(mine);
  const CudaAllocation theirs = *peer_.import_allocation(descriptor.get());
  EXPECT_TRUE(cuda_.release_allocation(mine).is_ok());
  EXPECT_EQ(cuda_.create_allocation(0, kBytes).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(peer_.release_allocation(theirs).is_ok());
  EXPECT_TRUE(cuda_.create_allocation(0, kBytes).is_ok());
}

TEST_F(FakeCudaTest, FailsTheCallThatATestAsksFor) {
  cuda_.fail("allocate", 1);
  EXPECT_TRUE(cuda_.allocate(0, kBytes).is_ok());
  EXPECT_FALSE(cuda_.has_failed());
  EXPECT_EQ(cuda_.allocate(0, kBytes).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(cuda_.has_failed());
  EXPECT_TRUE(cuda_.allocate(0, kBytes).is_ok()) << "once";
  EXPECT_EQ(cuda_.calls("allocate"), 3);
}

TEST_F(FakeCudaTest, ALossyPairLosesDataInItsDirectionOnly) {
  const CudaAddress zero = *cuda_.allocate(0, kBytes);
  const CudaAddress one = *cuda_.allocate(1, kBytes);
  world_->lossy = {{0, 1}};
  zero[0] = std::byte{5};
  EXPECT_TRUE(cuda_.copy(one, zero, 1).is_ok());
  EXPECT_EQ(one[0], std::byte{0});
  one[0] = std::byte{6};
  EXPECT_TRUE(cuda_.copy(zero, one, 1).is_ok());
  EXPECT_EQ(zero[0], std::byte{6});
}

TEST_F(FakeCudaTest, ADeviceThatIsNotVisibleHasNoNumber) {
  FakeCuda second(world_, {1});
  EXPECT_EQ(*second.device_count(), 1);
  EXPECT_EQ(second.properties(0)->uuid, cuda_.properties(1)->uuid);
  EXPECT_EQ(second.pointer(*second.allocate(0, kBytes))->device, 0);
  EXPECT_FALSE(second.set_device(1).is_ok());
}

TEST_F(FakeCudaTest, CapturedWorkIsDoneWhenTheGraphIsLaunched) {
  const Stream stream = *cuda_.create_stream(0);
  const CudaAddress memory = *cuda_.allocate(0, kBytes);
  ASSERT_TRUE(cuda_.begin_capture(stream).is_ok());
  EXPECT_EQ(cuda_.capture_of(stream)->state, CudaCapture::State::kActive);
  ASSERT_TRUE(cuda_.set_async(memory, 7, 16, stream).is_ok());
  const CudaGraph graph = *cuda_.end_capture(stream);
  EXPECT_EQ(memory[0], std::byte{0});
  const CudaGraphExec exec = *cuda_.instantiate(graph);
  for (int replay = 0; replay < 2; ++replay) {
    memory[0] = std::byte{0};
    ASSERT_TRUE(cuda_.launch_graph(exec, stream).is_ok());
    EXPECT_EQ(memory[0], std::byte{7});
  }
}

TEST_F(FakeCudaTest, AGraphsCallbackRunsOnceWhenEverythingMadeFromItIsGone) {
  const Stream stream = *cuda_.create_stream(0);
  ASSERT_TRUE(cuda_.begin_capture(stream).is_ok());
  const CudaGraph graph = *cuda_.end_capture(stream);
  int ended = 0;
  ASSERT_TRUE(cuda_.retain_on_graph(graph, [&ended] { ++ended; }).is_ok());
  const CudaGraphExec exec = *cuda_.instantiate(graph);
  ASSERT_TRUE(cuda_.destroy_graph(graph).is_ok());
  EXPECT_EQ(ended, 0);
  ASSERT_TRUE(cuda_.destroy_graph_exec(exec).is_ok());
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(cuda_.open().graphs + cuda_.open().graph_execs, 0U);
}

TEST_F(FakeCudaTest, WaitingForACapturedStreamSpoilsTheCapture) {
  const Stream stream = *cuda_.create_stream(0);
  ASSERT_TRUE(cuda_.begin_capture(stream).is_ok());
  EXPECT_FALSE(cuda_.synchronize(stream).is_ok());
  EXPECT_EQ(cuda_.capture_of(stream)->state, CudaCapture::State::kInvalidated);
  EXPECT_FALSE(cuda_.end_capture(stream).is_ok());
  EXPECT_EQ(cuda_.capture_of(stream)->state, CudaCapture::State::kNone);
  EXPECT_EQ(cuda_.open().graphs, 0U);
}

TEST_F(FakeCudaTest, AStreamThatWaitsForACapturedEventIsCapturedAsWell) {
  const Stream first = *cuda_.create_stream(0), second = *cuda_.create_stream(0);
  const CudaEvent event = *cuda_.create_event(false);
  ASSERT_TRUE(cuda_.begin_capture(first).is_ok());
  ASSERT_TRUE(cuda_.record_event(event, first).is_ok());
  ASSERT_TRUE(cuda_.wait_event(second, event).is_ok());
  EXPECT_EQ(cuda_.capture_of(second)->id, cuda_.capture_of(first)->id);

  const Stream other = *cuda_.create_stream(0);
  ASSERT_TRUE(cuda_.begin_capture(other).is_ok());
  EXPECT_FALSE(cuda_.wait_event(other, event).is_ok()) << "two captures do not become one";

  ASSERT_TRUE(cuda_.end_capture(first).is_ok());
  EXPECT_EQ(cuda_.capture_of(second)->state, CudaCapture::State::kNone);
}

TEST_F(FakeCudaTest, KernelsRunOnlyWhereATestSaysHow) {
  EXPECT_EQ(cuda_.launch({}).code(), StatusCode::kUnsupported);
  int launched = 0;
  cuda_.on_launch = [&launched](const CudaLaunch& launch) {
    launched = launch.blocks;
    return Status::ok();
  };
  CudaLaunch launch;
  launch.blocks = 3;
  EXPECT_TRUE(cuda_.launch(launch).is_ok());
  EXPECT_EQ(launched, 3);
}

TEST_F(FakeCudaTest, WhatFollowsAWaitForAWordIsDoneOnceItHasCome) {
  using Kind = CudaMemoryOperation::Kind;
  std::uint64_t words[2] = {};
  std::byte from{7}, to{};
  const Stream stream = *cuda_.create_stream(0), other = *cuda_.create_stream(0);
  const CudaEvent event = *cuda_.create_event(false);
  const CudaMemoryOperation operations[] = {{Kind::kWrite, &words[0], 1},
                                            {Kind::kWaitAtLeast, &words[1], 5}};
  EXPECT_TRUE(cuda_.memory_operations(operations, stream).is_ok());
  EXPECT_TRUE(cuda_.copy_async(&to, &from, 1, stream).is_ok());
  EXPECT_TRUE(cuda_.record_event(event, stream).is_ok());
  EXPECT_TRUE(cuda_.wait_event(other, event).is_ok());
  EXPECT_EQ(words[0], 1u);
  EXPECT_FALSE(*cuda_.stream_finished(stream) || *cuda_.stream_finished(other));
  EXPECT_FALSE(*cuda_.event_finished(event));
  EXPECT_EQ(to, std::byte{0});
  std::atomic_ref(words[1]).store(4);
  EXPECT_FALSE(*cuda_.stream_finished(stream));
  std::atomic_ref(words[1]).store(5 + (std::uint64_t{1} << 62));  // cyclic, and far beyond
  EXPECT_TRUE(*cuda_.event_finished(event));
  EXPECT_TRUE(*cuda_.stream_finished(stream) && *cuda_.stream_finished(other));
  EXPECT_EQ(to, std::byte{7});
}

TEST_F(FakeCudaTest, HostMemoryIsRegisteredAsOftenAsItIsAsked) {
  std::byte page[64] = {};
  for (int k = 0; k < 2; ++k) EXPECT_EQ(*cuda_.register_host(page, sizeof page), page);
  EXPECT_EQ(cuda_.open().registered, 2u);
  for (int k = 0; k < 2; ++k) EXPECT_TRUE(cuda_.unregister_host(page).is_ok());
  EXPECT_FALSE(cuda_.unregister_host(page).is_ok());
}

}  // namespace
}  // namespace tutti
