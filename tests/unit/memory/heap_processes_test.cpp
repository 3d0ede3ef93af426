// Symmetric memory between real processes, of which some hold several ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "bootstrap/bootstrap.hpp"
#include "drivers/cuda.hpp"
#include "drivers/shared_memory.hpp"
#include "fakes/fake_cuda.hpp"
#include "memory/symmetric_heap.hpp"
#include "support/children.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "unit/memory/require.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kSharedBytes = 100000;

using MakeHeap =
    std::function<Result<std::unique_ptr<SymmetricHeap>>(Bootstrap& bootstrap, int thread)>;

std::byte mark(int from, int to) { return static_cast<std::byte>(1 + 16 * from + to); }

// One rank's life: every rank writes into every part, and finds what the others have written.
std::string exchange_marks(const GroupId& id, int rank, int size, int thread,
                           const MakeHeap& make_heap) {
  auto bootstrap = join_group(id, rank, size, soon());
  if (!bootstrap.is_ok()) return bootstrap.status().to_string();
  auto heap = make_heap(**bootstrap, thread);
  if (!heap.is_ok()) return heap.status().to_string();
  auto segment = (*heap)->allocate(kSharedBytes, soon());
  if (!segment.is_ok()) return segment.status().to_string();
  for (int to = 0; to < size; ++to) (*segment)->at[to][kSharedBytes - 1 - rank] = mark(rank, to);
  if (const Status met = (*bootstrap)->barrier(soon()); !met.is_ok()) return met.to_string();
  for (int from = 0; from < size; ++from) {
    if ((*segment)->local[kSharedBytes - 1 - from] != mark(from, rank))
      return fmt::format("rank {} does not see what rank {} wrote", rank, from);
  }
  if (const Status met = (*bootstrap)->barrier(soon()); !met.is_ok()) return met.to_string();
  (*bootstrap)->leave({});
  return {};
}

// `processes` processes of `threads` ranks each.
void expect_exchange(int processes, int threads, const MakeHeap& make_heap) {
  const auto id = GroupId::local();
  ASSERT_TRUE(id.is_ok()) << id.status().to_string();
  Children children(processes, [&](int process, Wire&) {
    std::vector<std::string> failures(static_cast<std::size_t>(threads));
    on_all_ranks(threads, [&](int thread) {
      failures[thread] =
          exchange_marks(*id, process * threads + thread, processes * threads, thread, make_heap);
    });
    for (const std::string& failure : failures) require(failure.empty(), failure);
  });
  for (const auto& child : children.finish(2 * kPatience)) {
    EXPECT_TRUE(child.succeeded())
        << child.describe_end() << ": " << (child.lines.empty() ? "" : child.lines.back());
  }
}

Result<std::unique_ptr<SymmetricHeap>> host_heap(Bootstrap& bootstrap, int) {
  return make_host_heap(bootstrap, real_shared_memory());
}

TEST(HeapProcesses, HostMemoryOfOneRankEach) { expect_exchange(3, 1, host_heap); }

TEST(HeapProcesses, HostMemoryOfThreadsInProcesses) { expect_exchange(2, 3, host_heap); }

TEST(HeapProcesses, VirtualMemoryThroughRealDescriptors) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(2));  // every child gets its own copy
  expect_exchange(3, 2, [&](Bootstrap& bootstrap, int thread) {
    return make_cuda_heap(bootstrap, cuda, thread);
  });
}

}  // namespace
}  // namespace tutti::test
