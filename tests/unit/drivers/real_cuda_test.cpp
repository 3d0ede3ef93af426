// The real CUDA driver, on whatever GPUs there are; skipped where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "drivers/cuda.hpp"

namespace tutti {
namespace {

testing::AssertionResult ok(const Status& status) {
  if (status.is_ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.to_string();
}

class RealCudaTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    cuda_ = real_cuda(&why);
    if (cuda_ == nullptr) GTEST_SKIP() << why;
    ASSERT_TRUE(ok(cuda_->set_device(0)));
    const auto stream = cuda_->create_stream(0);
    ASSERT_TRUE(ok(stream.status()));
    stream_ = *stream;
  }

  void TearDown() override {
    if (stream_ == nullptr) return;
    EXPECT_TRUE(ok(cuda_->destroy_stream(stream_)));
  }

  void fill(CudaAddress address, int value, std::size_t bytes) {
    ASSERT_TRUE(ok(cuda_->set_async(address, value, bytes, stream_)));
    ASSERT_TRUE(ok(cuda_->synchronize(stream_)));
  }

  CudaDriver* cuda_ = nullptr;
  Stream stream_ = nullptr;
};

TEST_F(RealCudaTest, DevicesDescribeThemselves) {
  const auto properties = cuda_->properties(0);
  ASSERT_TRUE(ok(properties.status()));
  EXPECT_FALSE(properties->name.empty());
  EXPECT_EQ(properties->pci_bus_id.size(), std::strlen("0000:1b:00.0"));
  EXPECT_GT(properties->multiprocessors, 0);
  EXPECT_GT(properties->memory_bytes, GiB);
  EXPECT_NE(properties->uuid, (std::array<std::uint8_t, 16>{}));
  const auto version = cuda_->driver_version();
  ASSERT_TRUE(ok(version.status()));
  EXPECT_NE(version->find('.'), std::string::npos) << *version;
  EXPECT_EQ(cuda_->properties(4096).status().code(), StatusCode::kCuda);
}

TEST_F(RealCudaTest, AllocationsTravelAsDescriptors) {
  const auto granularity = cuda_->allocation_granularity(0);
  ASSERT_TRUE(ok(granularity.status()));
  const std::size_t bytes = 2 * *granularity;
  const auto made = cuda_->create_allocation(0, bytes);
  ASSERT_TRUE(ok(made.status()));
  auto fd = cuda_->export_allocation(*made);
  ASSERT_TRUE(ok(fd.status()));
  const auto taken = cuda_->import_allocation(fd->get());
  ASSERT_TRUE(ok(taken.status()));
  fd->reset();

  const auto here = cuda_->map_allocation(*made, bytes, {0});
  const auto there = cuda_->map_allocation(*taken, bytes, {0});
  ASSERT_TRUE(ok(here.status()));
  ASSERT_TRUE(ok(there.status()));
  EXPECT_NE(*here, *there);
  fill(*here, 0x5a, bytes);
  std::vector<std::byte> seen(bytes);
  ASSERT_TRUE(ok(cuda_->copy(seen.data(), *there, bytes)));
  EXPECT_EQ(seen, std::vector<std::byte>(bytes, std::byte{0x5a}));

  for (const auto& address : {*here, *there})
    ASSERT_TRUE(ok(cuda_->unmap_allocation(address, bytes)));
  ASSERT_TRUE(ok(cuda_->release_allocation(*made)));
  ASSERT_TRUE(ok(cuda_->release_allocation(*taken)));
}

// Whether the machine permits it cannot be known beforehand.
TEST_F(RealCudaTest, AllocationsTravelAsFabricHandlesOrAreRefused) {
  if (!cuda_->properties(0)->fabric_handles) GTEST_SKIP() << "this GPU has no fabric handles";
  const std::size_t bytes = *cuda_->allocation_granularity(0);
  const auto made = cuda_->create_fabric_allocation(0, bytes);
  if (!made.is_ok()) {
    EXPECT_EQ(made.status().code(), StatusCode::kUnsupported) << made.status().message();
    EXPECT_NE(made.status().message().find("nvidia-imex"), std::string::npos);
    return;
  }
  const auto handle = cuda_->export_fabric(*made);
  ASSERT_TRUE(ok(handle.status()));
  const auto taken = cuda_->import_fabric(*handle);
  ASSERT_TRUE(ok(taken.status()));
  const auto here = cuda_->map_allocation(*made, bytes, {0});
  const auto there = cuda_->map_allocation(*taken, bytes, {0});
  ASSERT_TRUE(ok(here.status()));
  ASSERT_TRUE(ok(there.status()));
  fill(*here, 0x5a, bytes);
  std::byte seen{};
  ASSERT_TRUE(ok(cuda_->copy(&seen, *there + bytes - 1, 1)));
  EXPECT_EQ(seen, std::byte{0x5a});
  for (const auto& address : {*here, *there})
    ASSERT_TRUE(ok(cuda_->unmap_allocation(address, bytes)));
  ASSERT_TRUE(ok(cuda_->release_allocation(*made)));
  ASSERT_TRUE(ok(cuda_->release_allocation(*taken)));
}

TEST_F(RealCudaTest, VirtualMemoryIsKnownByItsMapping) {
  const std::size_t bytes = *cuda_->allocation_granularity(0);
  const auto made = cuda_->create_allocation(0, bytes);
  ASSERT_TRUE(ok(made.status()));
  const auto address = cuda_->map_allocation(*made, bytes, {0});
  ASSERT_TRUE(ok(address.status()));
  const auto pointer = cuda_->pointer(*address + 4096 + 3);
  ASSERT_TRUE(ok(pointer.status()));
  EXPECT_EQ(pointer->kind, CudaMemoryKind::kVirtual);
  EXPECT_EQ(pointer->base, *address);
  EXPECT_EQ(pointer->bytes, bytes);
  EXPECT_EQ(pointer->device, 0);
  const auto retained = cuda_->retain_allocation(*address + 4096);
  ASSERT_TRUE(ok(retained.status()));
  ASSERT_TRUE(ok(cuda_->release_allocation(*retained)));
  EXPECT_FALSE(cuda_->ipc_handle(*address).is_ok());
  ASSERT_TRUE(ok(cuda_->unmap_allocation(*address, bytes)));
  ASSERT_TRUE(ok(cuda_->release_allocation(*made)));
}

TEST_F(RealCudaTest, AFailedMappingLeavesTheAllocationUsable) {
  const std::size_t bytes = *cuda_->allocation_granularity(0);
  const auto made = cuda_->create_allocation(0, bytes);
  ASSERT_TRUE(ok(made.status()));
  EXPECT_FALSE(cuda_->map_allocation(*made, bytes, {0, 4096}).is_ok());
  EXPECT_EQ(cuda_->map_allocation(*made, bytes, {}).status().code(), StatusCode::kInvalidArgument);
  const auto address = cuda_->map_allocation(*made, bytes, {0});
  ASSERT_TRUE(ok(address.status()));
  ASSERT_TRUE(ok(cuda_->unmap_allocation(*address, bytes)));
  ASSERT_TRUE(ok(cuda_->release_allocation(*made)));
}

TEST_F(RealCudaTest, TooMuchMemoryIsResourceExhausted) {
  const std::size_t far_too_much = std::size_t{1} << 46;
  EXPECT_EQ(cuda_->create_allocation(0, far_too_much).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(cuda_->allocate(0, far_too_much).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(RealCudaTest, PointersOfEachKind) {
  const auto plain = cuda_->allocate(0, 8 * MiB);
  ASSERT_TRUE(ok(plain.status()));
  const auto of_plain = cuda_->pointer(*plain + 5 * MiB);
  ASSERT_TRUE(ok(of_plain.status()));
  EXPECT_EQ(of_plain->kind, CudaMemoryKind::kMalloc);
  EXPECT_EQ(of_plain->base, *plain);
  EXPECT_EQ(of_plain->bytes, 8 * MiB);
  EXPECT_TRUE(cuda_->ipc_handle(*plain).is_ok());

  const auto mapped = cuda_->allocate_mapped_host(4096);
  ASSERT_TRUE(ok(mapped.status()));
  EXPECT_EQ(cuda_->pointer(*mapped)->kind, CudaMemoryKind::kHost);
  const int on_stack = 0;
  for (const void* foreign :
       {static_cast<const void*>(&on_stack), static_cast<const void*>(nullptr)}) {
    const auto unknown = cuda_->pointer(foreign);
    ASSERT_TRUE(ok(unknown.status()));
    EXPECT_EQ(unknown->kind, CudaMemoryKind::kUnknown);
  }
  ASSERT_TRUE(ok(cuda_->free_mapped_host(*mapped)));
  ASSERT_TRUE(ok(cuda_->free(*plain)));
}

TEST_F(RealCudaTest, MemoryGivenOutAgainHasAnotherBufferId) {
  const auto first = cuda_->allocate(0, 32 * MiB);
  ASSERT_TRUE(ok(first.status()));
  const std::uint64_t id = cuda_->pointer(*first)->buffer_id;
  ASSERT_TRUE(ok(cuda_->free(*first)));
  const auto second = cuda_->allocate(0, 32 * MiB);
  ASSERT_TRUE(ok(second.status()));
  EXPECT_NE(cuda_->pointer(*second)->buffer_id, id);
  ASSERT_TRUE(ok(cuda_->free(*second)));
}

TEST_F(RealCudaTest, OnlyOpenedHandlesCanBeClosed) {
  const auto plain = cuda_->allocate(0, MiB);
  ASSERT_TRUE(ok(plain.status()));
  EXPECT_EQ(cuda_->ipc_close(*plain).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(ok(cuda_->free(*plain)));
}

// Whether or not their handles are.
TEST_F(RealCudaTest, NoTwoStreamsHaveTheSameId) {
  std::vector<std::uint64_t> ids = {cuda_->stream_id(stream_).value(),
                                    cuda_->stream_id(nullptr).value()};
  EXPECT_EQ(cuda_->stream_id(stream_).value(), ids.front());
  for (int k = 0; k < 8; ++k) {
    const auto stream = cuda_->create_stream(0);
    ASSERT_TRUE(ok(stream.status()));
    const auto id = cuda_->stream_id(*stream);
    ASSERT_TRUE(ok(id.status()));
    EXPECT_THAT(ids, testing::Not(testing::Contains(*id)));
    ids.push_back(*id);
    ASSERT_TRUE(ok(cuda_->destroy_stream(*stream)));
  }
}

TEST_F(RealCudaTest, CapturesAreSeenAndReplayed) {
  const auto memory = cuda_->allocate(0, 4096);
  ASSERT_TRUE(ok(memory.status()));
  fill(*memory, 0, 4096);
  EXPECT_EQ(cuda_->capture_of(stream_)->state, CudaCapture::State::kNone);
  ASSERT_TRUE(ok(cuda_->begin_capture(stream_)));
  const auto capture = cuda_->capture_of(stream_);
  ASSERT_TRUE(ok(capture.status()));
  EXPECT_EQ(capture->state, CudaCapture::State::kActive);
  EXPECT_NE(capture->graph, nullptr);
  ASSERT_TRUE(ok(cuda_->set_async(*memory, 7, 4096, stream_)));
  const auto graph = cuda_->end_capture(stream_);
  ASSERT_TRUE(ok(graph.status()));
  const auto exec = cuda_->instantiate(*graph);
  ASSERT_TRUE(ok(exec.status()));

  std::byte seen{0xff};
  ASSERT_TRUE(ok(cuda_->copy(&seen, *memory, 1)));
  EXPECT_EQ(seen, std::byte{0});  // captured, not run
  ASSERT_TRUE(ok(cuda_->launch_graph(*exec, stream_)));
  ASSERT_TRUE(ok(cuda_->synchronize(stream_)));
  ASSERT_TRUE(ok(cuda_->copy(&seen, *memory, 1)));
  EXPECT_EQ(seen, std::byte{7});

  ASSERT_TRUE(ok(cuda_->begin_capture(stream_)));
  EXPECT_NE(cuda_->capture_of(stream_)->id, capture->id);
  const auto empty = cuda_->end_capture(stream_);
  ASSERT_TRUE(ok(empty.status()));
  for (const CudaGraph each : {*graph, *empty}) ASSERT_TRUE(ok(cuda_->destroy_graph(each)));
  ASSERT_TRUE(ok(cuda_->destroy_graph_exec(*exec)));
  ASSERT_TRUE(ok(cuda_->free(*memory)));
}

TEST_F(RealCudaTest, AGraphsEndIsToldOnceWhenAllThatCameFromItIsGone) {
  const auto memory = cuda_->allocate(0, 4096);
  ASSERT_TRUE(ok(memory.status()));
  std::atomic<int> told{0};
  ASSERT_TRUE(ok(cuda_->begin_capture(stream_)));
  ASSERT_TRUE(ok(cuda_->set_async(*memory, 7, 4096, stream_)));
  ASSERT_TRUE(ok(cuda_->retain_on_graph(cuda_->capture_of(stream_)->graph, [&told] { ++told; })));
  const auto graph = cuda_->end_capture(stream_);
  ASSERT_TRUE(ok(graph.status()));
  const auto exec = cuda_->instantiate(*graph);
  ASSERT_TRUE(ok(exec.status()));
  ASSERT_TRUE(ok(cuda_->destroy_graph(*graph)));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(told, 0);  // the executable graph still holds it
  ASSERT_TRUE(ok(cuda_->destroy_graph_exec(*exec)));
  for (int i = 0; i < 1000 && told == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(told, 1);
  ASSERT_TRUE(ok(cuda_->free(*memory)));
}

TEST_F(RealCudaTest, EventsMeasureAndFinish) {
  const auto memory = cuda_->allocate(0, 64 * MiB);
  ASSERT_TRUE(ok(memory.status()));
  const auto from = cuda_->create_event(true);
  const auto to = cuda_->create_event(true);
  ASSERT_TRUE(ok(from.status()));
  ASSERT_TRUE(ok(to.status()));
  ASSERT_TRUE(ok(cuda_->record_event(*from, stream_)));
  ASSERT_TRUE(ok(cuda_->set_async(*memory, 1, 64 * MiB, stream_)));
  ASSERT_TRUE(ok(cuda_->record_event(*to, stream_)));
  ASSERT_TRUE(ok(cuda_->synchronize_event(*to)));
  EXPECT_TRUE(*cuda_->event_finished(*to));
  ASSERT_TRUE(ok(cuda_->synchronize(stream_)));
  EXPECT_TRUE(*cuda_->stream_finished(stream_));
  const auto elapsed = cuda_->elapsed_us(*from, *to);
  ASSERT_TRUE(ok(elapsed.status()));
  EXPECT_GT(*elapsed, 1.0F);
  EXPECT_LT(*elapsed, 1e6F);
  for (const CudaEvent event : {*from, *to}) ASSERT_TRUE(ok(cuda_->destroy_event(event)));
  ASSERT_TRUE(ok(cuda_->free(*memory)));
}

TEST_F(RealCudaTest, PeersReachEachOthersMemory) {
  if (*cuda_->device_count() < 2) GTEST_SKIP() << "one GPU";
  if (!*cuda_->can_access_peer(0, 1)) GTEST_SKIP() << "GPU 0 cannot reach GPU 1";
  for (int again = 0; again < 2; ++again) ASSERT_TRUE(ok(cuda_->enable_peer_access(0, 1)));
  const std::size_t bytes = *cuda_->allocation_granularity(1);
  const auto made = cuda_->create_allocation(1, bytes);
  ASSERT_TRUE(ok(made.status()));
  const auto address = cuda_->map_allocation(*made, bytes, {0, 1});
  ASSERT_TRUE(ok(address.status()));
  EXPECT_EQ(*cuda_->current_device(), 0);  // nobody has changed the thread's device
  EXPECT_EQ(cuda_->pointer(*address)->device, 1);
  fill(*address, 0x33, bytes);  // from GPU 0
  std::byte seen{};
  ASSERT_TRUE(ok(cuda_->copy(&seen, *address + bytes - 1, 1)));
  EXPECT_EQ(seen, std::byte{0x33});
  ASSERT_TRUE(ok(cuda_->unmap_allocation(*address, bytes)));
  ASSERT_TRUE(ok(cuda_->release_allocation(*made)));
}

// A stream waits for a word of ordinary host memory, which the CPU writes.
TEST_F(RealCudaTest, StreamsWriteAndAwaitWordsOfRegisteredMemory) {
  using Kind = CudaMemoryOperation::Kind;
  if (!cuda_->properties(0)->stream_memory_operations) GTEST_SKIP() << "not on this GPU";
  constexpr std::size_t kPage = 4096;
  auto* const page = static_cast<std::uint64_t*>(std::aligned_alloc(kPage, kPage));
  std::memset(page, 0, kPage);
  const auto there = cuda_->register_host(reinterpret_cast<std::byte*>(page), kPage);
  ASSERT_TRUE(ok(there.status()));
  auto* const words = reinterpret_cast<std::uint64_t*>(*there);
  auto* const half = reinterpret_cast<std::uint32_t*>(words + 3) + 1;
  const CudaMemoryOperation operations[] = {{Kind::kWrite, words, 1},
                                            {Kind::kWaitAtLeast, words + 1, 10},
                                            {Kind::kWrite, words + 2, 3},
                                            {.kind = Kind::kWrite32, .value = 5, .word32 = half}};
  ASSERT_TRUE(ok(cuda_->memory_operations(operations, stream_)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(std::atomic_ref(page[0]).load(), 1u);
  EXPECT_FALSE(*cuda_->stream_finished(stream_));
  std::atomic_ref(page[1]).store(10 + (std::uint64_t{1} << 62));  // half a cycle counts as later
  ASSERT_TRUE(ok(cuda_->synchronize(stream_)));
  EXPECT_EQ(std::atomic_ref(page[2]).load(), 3u);
  EXPECT_EQ(std::atomic_ref(page[3]).load(), std::uint64_t{5} << 32);
  EXPECT_TRUE(ok(cuda_->unregister_host(reinterpret_cast<std::byte*>(page))));
  std::free(page);
}

TEST_F(RealCudaTest, GraphsWriteWordsBetweenTheirNodes) {
  if (!cuda_->properties(0)->stream_memory_operations) GTEST_SKIP() << "not on this GPU";
  const auto memory = cuda_->allocate(0, 256);
  ASSERT_TRUE(ok(memory.status()));
  auto* const words = reinterpret_cast<std::uint32_t*>(*memory);
  const CudaMemoryOperation write{
      .kind = CudaMemoryOperation::Kind::kWrite32, .value = 7, .word32 = words + 1};
  ASSERT_TRUE(ok(cuda_->begin_capture(stream_)));
  EXPECT_TRUE(ok(cuda_->set_async(words, 0, 256, stream_)));
  EXPECT_TRUE(ok(cuda_->memory_operations({&write, 1}, stream_)));
  EXPECT_TRUE(ok(cuda_->copy_async(words + 2, words + 1, 4, stream_)));
  const auto graph = cuda_->end_capture(stream_);
  ASSERT_TRUE(ok(graph.status()));
  const auto exec = cuda_->instantiate(*graph);
  ASSERT_TRUE(ok(exec.status()));
  for (int replay = 0; replay < 2; ++replay) {
    std::uint32_t seen[4] = {};
    ASSERT_TRUE(ok(cuda_->launch_graph(*exec, stream_)));
    ASSERT_TRUE(ok(cuda_->copy_async(seen, words, sizeof seen, stream_)));
    ASSERT_TRUE(ok(cuda_->set_async(words, 0xff, 256, stream_)));
    ASSERT_TRUE(ok(cuda_->synchronize(stream_)));
    EXPECT_THAT(seen, testing::ElementsAre(0u, 7u, 7u, 0u));
  }
  EXPECT_TRUE(ok(cuda_->destroy_graph_exec(*exec)));
  EXPECT_TRUE(ok(cuda_->destroy_graph(*graph)));
  EXPECT_TRUE(ok(cuda_->free(*memory)));
}

}  // namespace
}  // namespace tutti
