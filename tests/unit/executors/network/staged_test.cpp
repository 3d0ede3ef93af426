// Operations on GPUs' memory, staged: what the kernel and the host do with the words that they
// write to each other, and that each rule of this protocol is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/network_steps.hpp"
#include "executors/network/progress.hpp"
#include "executors/network/staged_operations.hpp"
#include "fakes/fake_cuda.hpp"
#include "fakes/thread_wire.hpp"
#include "support/check.hpp"
#include "support/copy_kernels.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "unit/executors/network/programs.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using Ints = std::vector<std::int32_t>;

// Some copies take their time.
struct SlowMemory : device::impl::SystemMemory {
  template <class Threads>
  static void copy(const Threads& threads, std::byte* to, const std::byte* from,
                   std::size_t bytes) {
    static std::atomic<unsigned> seed = 0;
    thread_local std::minstd_rand random(++seed);
    if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(1500));
    SystemMemory::copy(threads, to, from, bytes);
  }
};

std::vector<std::unique_ptr<Wire>> connected_wires(ThreadNetwork& network, int ranks) {
  std::vector<std::unique_ptr<Wire>> wires;
  for (int rank = 0; rank < ranks; ++rank) wires.push_back(network.open());
  for (const auto& wire : wires) {
    for (std::size_t peer = 0; peer < wires.size(); ++peer) {
      require_ok(wire->connect(static_cast<int>(peer), wires[peer]->address()));
    }
  }
  return wires;
}

NetworkProgress::Setup setup_of(std::unique_ptr<Wire> wire, int rank, int ranks) {
  return {.wire = std::move(wire),
          .group = {.id = 7,
                    .rank = rank,
                    .ranks = ranks,
                    .name = [](int named) { return "rank " + std::to_string(named); }},
          .failed = [](const Status&, int) {}};
}

NetworkOperation operation_of(NetworkSchedule schedule, int rank, int ranks, Ints& buffer) {
  auto* const bytes = reinterpret_cast<std::byte*>(buffer.data());
  return {.schedule = schedule,
          .shape = {.rank = rank, .ranks = ranks, .count = buffer.size(), .unit = 16},
          .dtype = DataType::kInt32,
          .input = bytes,
          .output = bytes,
          .chunk_bytes = 256,
          .signature = 7,
          .text = "staged"};
}

NetworkProgram to_next(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  const Range all{0, shape.count};
  if (shape.rank == 0) steps.send(1, all, input_at(0));
  if (shape.rank == 1) steps.receive(0, all, output_at(0));
  return steps.take();
}

constexpr std::size_t kStaging = 4096;

// A sum of all ranks in place, with multipliers in memory, then a message from rank 0 to rank 1:
// whether both are right.
template <CopyRule of_kernel>
bool runs_right(CopyRule of_host) {
  constexpr int kRanks = 2;
  constexpr std::size_t kCount = 5000;
  ThreadNetwork network;
  auto wires = connected_wires(network, kRanks);
  std::vector<Ints> sums(kRanks), messages(kRanks);
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(kRanks));
  CopyKernels<SlowMemory, of_kernel> kernels(cuda);
  on_all_ranks(kRanks, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    auto setup = setup_of(std::move(wires[at]), rank, kRanks);
    setup.staged = take(StagedOperations::create({.cuda = cuda,
                                                  .device = rank,
                                                  .ranks = kRanks,
                                                  .staging_bytes = kStaging,
                                                  .timeout = kPatience,
                                                  .omitted = of_host}));
    StagedOperations& staged = *setup.staged;
    const auto progress = take(NetworkProgress::start(std::move(setup)));
    Stream const stream = take(cuda.create_stream(rank));
    Ints &sum = sums[at], &text = messages[at];
    for (std::size_t k = 0; k < kCount; ++k) sum.push_back(static_cast<int>(k) * (rank + 1));
    text.assign(kCount, 0);
    if (rank == 0) text = sum;
    StagedTransfer of_all{operation_of(ring, rank, kRanks, sum), 1, 1};
    of_all.what.op = OpKind::kPreMulSum;
    const std::int32_t multiplier = rank + 2;
    of_all.scalar = reinterpret_cast<const std::byte*>(&multiplier);
    StagedTransfer of_pair{operation_of(to_next, rank, kRanks, text),
                           static_cast<std::size_t>(rank == 0),
                           static_cast<std::size_t>(rank == 1)};
    of_pair.what.pair = NetworkOperation::Pair{0, 1};
    std::uint64_t last = 0;
    for (StagedTransfer* transfer : {&of_all, &of_pair}) {
      last = take(staged.enqueue({.transfers = {*transfer}, .timeout = kPatience}, stream));
      progress->wake();
    }
    require_ok(cuda.synchronize(stream));
    require(staged.ended_through() == last, "it has not ended");
    const Deadline soon(std::chrono::seconds(10));  // for the host to hear of it
    while (staged.is_waiting() && !soon.passed()) std::this_thread::sleep_for(milliseconds(1));
    require(!staged.is_waiting(), "the host still waits");
  });
  bool right = true;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (std::size_t k = 0; k < kCount; ++k) {
      right = right && sums[static_cast<std::size_t>(rank)][k] == static_cast<int>(k) * 8 &&
              messages[static_cast<std::size_t>(rank)][k] == static_cast<int>(k);
    }
  }
  return right;
}

TEST(StagedOperationsTest, long_messages_go_through_small_staging) {
  EXPECT_TRUE(runs_right<CopyRule::kNone>(CopyRule::kNone));
}

TEST(StagedOperationsTest, each_rule_is_needed) {
  EXPECT_FALSE(runs_right<CopyRule::kDoneAfterCopy>(CopyRule::kNone));
  for (const CopyRule omitted : {CopyRule::kCopiedIn, CopyRule::kArrived, CopyRule::kCopiedOut}) {
    EXPECT_FALSE(runs_right<CopyRule::kNone>(omitted)) << static_cast<int>(omitted);
  }
}

// A kernel for which the host does nothing, but that it may tell it to end.
template <CopyRule omitted>
std::unique_ptr<CopyRequests> alone(milliseconds timeout, std::optional<milliseconds> abort_after) {
  auto page = std::make_unique<CopyRequests>();
  page->timeout_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(timeout).count());
  std::jthread kernel([&] {
    run_requested_copies<device::impl::SystemMemory, omitted>(
        {.page = page.get(), .number = 3, .timeout_ns = 0, .first = {}}, device::Block());
  });
  while (std::atomic_ref(page->begun).load() != 3) std::this_thread::yield();
  if (abort_after) {
    std::this_thread::sleep_for(*abort_after);
    std::atomic_ref(page->aborted).store(1);
  }
  kernel.join();
  EXPECT_EQ(page->ended, 3u);
  return page;
}

TEST(StagedOperationsTest, a_kernel_ends_at_its_deadline) {
  EXPECT_EQ(alone<CopyRule::kNone>(milliseconds(10), {})->late, 3u);
  EXPECT_EQ(alone<CopyRule::kDeadline>(milliseconds(10), milliseconds(50))->late, 0u)
      << "not needed";
}

TEST(StagedOperationsTest, a_kernel_hears_of_a_failure) {
  EXPECT_EQ(alone<CopyRule::kNone>(kPatience, milliseconds(0))->late, 0u);
  EXPECT_EQ(alone<CopyRule::kAbort>(milliseconds(50), milliseconds(0))->late, 3u) << "not needed";
}

TEST(StagedOperationsTest, a_kernel_that_comes_late_does_nothing) {
  CopyRequests page{};
  page.aborted = 1;
  std::int64_t from = 5, to = 0;
  const auto word = [](std::int64_t& of) { return reinterpret_cast<std::uintptr_t>(&of); };
  run_requested_copies({.page = &page,
                        .number = 1,
                        .timeout_ns = 0,
                        .first = {.to = word(to), .from = word(from), .bytes = 8, .rows = 1}},
                       device::Block());
  EXPECT_EQ(to, 0);
  EXPECT_EQ(page.begun, 0u);
  EXPECT_EQ(page.ended, 1u);
}

TEST(CopyRingTest, a_slot_is_written_again_once_its_copy_is_done) {
  constexpr std::uint64_t kSlots = CopyRequests::kSlots;
  CopyRequests page{};
  CopyRing ring_of_page(page);
  RunningClock::time_point now{};
  for (std::uint64_t k = 1; k <= kSlots + 2; ++k) {
    EXPECT_EQ(ring_of_page.add({.bytes = k, .rows = 1}), k);
  }
  EXPECT_TRUE(ring_of_page.flush(now));
  EXPECT_EQ(page.posted, kSlots);
  EXPECT_EQ(page.slots[0].bytes, 1u);
  EXPECT_FALSE(ring_of_page.flush(now += milliseconds(5)));
  EXPECT_EQ(ring_of_page.idle(now), milliseconds(5));
  page.done = 1;
  EXPECT_TRUE(ring_of_page.flush(now));
  EXPECT_EQ(page.posted, kSlots + 1);
  EXPECT_EQ(page.slots[0].bytes, kSlots + 1);
  EXPECT_EQ(ring_of_page.idle(now), milliseconds(0));
}

// Its kernel has begun, and then stands still, or never hears of this rank's thread.
TEST(StagedOperationsTest, a_gpu_that_does_not_copy_is_late) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  CopyRequests* page = nullptr;
  cuda.on_launch = [&](const CudaLaunch& launch) {
    page = static_cast<const RequestedCopies*>(launch.arguments[0])->page;
    return Status::ok();
  };
  ThreadNetwork network;
  auto wires = connected_wires(network, 2);
  NetworkEngine engine({.id = 7, .rank = 0, .ranks = 2, .name = {}}, *wires[0]);
  const auto staged = take(StagedOperations::create(
      {.cuda = cuda, .ranks = 2, .staging_bytes = kStaging, .timeout = milliseconds(50)}));
  Ints values(5000);
  Stream const stream = take(cuda.create_stream(0));
  EXPECT_EQ(take(staged->enqueue({.transfers = {{operation_of(ring, 0, 2, values), 1, 1}},
                                  .timeout = milliseconds(50),
                                  .text = "all_reduce #5"},
                                 stream)),
            1u);
  EXPECT_EQ(staged->position(), "all_reduce #5, to which its stream has not come");
  NetworkEngine::Clock::time_point now{std::chrono::hours(1)};
  EXPECT_FALSE(take(staged->advance(engine, now)));
  page->begun = 1;
  EXPECT_TRUE(take(staged->advance(engine, now)));
  EXPECT_EQ(page->posted, 1u) << "the second piece, as the first one is copied unasked";
  EXPECT_TRUE(staged->advance(engine, now + milliseconds(50)).is_ok());
  const Status late = staged->advance(engine, now + milliseconds(51)).status();
  EXPECT_EQ(late.code(), StatusCode::kTimeout);
  EXPECT_THAT(late.message(), HasSubstr("all_reduce #5: the GPU did not copy"));
  EXPECT_TRUE(staged->check().is_ok());
  page->late = 1;
  EXPECT_THAT(staged->check().message(), HasSubstr("operation 1 over the network: the GPU waited"));
  EXPECT_EQ(staged->ended_through(), 0u);
  staged->cancel();
  EXPECT_EQ(staged->ended_through(), 1u);
  EXPECT_EQ(page->aborted, 1u);
  page->ended = 1;
}

}  // namespace
}  // namespace tutti::test
