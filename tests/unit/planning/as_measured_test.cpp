// What a table names is taken where the request is as what was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/units.hpp"
#include "planning/choose.hpp"
#include "planning/filter.hpp"
#include "planning/selection.hpp"
#include "unit/planning/entries.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;

// What only the root has is staged however it lies, so a table's time has that in it. More passes
// are another matter.
TEST(AsMeasured, ATablesRowStaysWhereItStagedWhenItWasMeasured) {
  TuningEntry entry = entry_of(0, MiB, "scatter/copy_engine");
  entry.collective = Collective::kScatter;
  const TuningTable table = cache_of(entry);
  Request request = bytes_of(256 * KiB);
  request.collective = Collective::kScatter;
  const auto source = [&] { return choose(request, eight_h200(), table)->source; };
  request.staging_bytes = 512 * KiB;
  EXPECT_EQ(source(), PlanSource::kUserCache);
  EXPECT_THAT(explain(request, eight_h200(), table), HasSubstr("measured on 2026-11-20"));
  request.staging_bytes = 4 * KiB;
  EXPECT_EQ(source(), PlanSource::kModel);
}

// Or tuning finds what nobody then takes.
TEST(AsMeasured, WhateverATableNamesForSymmetricBuffersIsTaken) {
  Topology topology = eight_h200();
  topology.backend = Backend::kHost;
  topology.gpu.clear();
  topology.ranks = 3;
  topology.nccl = false;
  int named = 0;
  for (const Algorithm& row : catalogue()) {
    Request request = bytes_of(3 * KiB);
    request.collective = row.collective;
    request.packet_bytes = request.ring_bytes = request.staging_bytes = MiB;
    if (!why_not_unnamed(row, request, topology).empty()) continue;
    if (!why_not_by_itself(row, request, topology, MeasuredWith::kSymmetric).empty()) continue;
    TuningEntry entry = entry_of(0, MiB, std::string(row.id), topology.ranks);
    entry.collective = row.collective;
    entry.backend = Backend::kHost;
    entry.gpu.clear();
    const auto plan = choose(request, topology, cache_of(entry));
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    EXPECT_EQ(plan->algorithm, row.id);
    EXPECT_EQ(plan->source, PlanSource::kUserCache) << row.id;
    ++named;
  }
  EXPECT_GT(named, 30);
}

// What was measured with plain buffers has the cost of staging in it.
TEST(AsMeasured, WhateverATableNamesForPlainBuffersIsTaken) {
  Request request = bytes_of(64 * MiB);
  request.collective = Collective::kAllGather;
  request.symmetric = false;
  request.input_reach = request.output_reach = BufferReach::kOwner;
  request.ring_bytes = request.staging_bytes = 8 * MiB;
  for (const char* name : {"all_gather/push", "all_gather/ring"}) {
    TuningEntry entry = entry_of(0, 64 * MiB, name);
    entry.collective = Collective::kAllGather;
    entry.plain = true;
    const auto plan = choose(request, eight_h200(), cache_of(entry));
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    EXPECT_EQ(plan->algorithm, name);
    EXPECT_EQ(plan->source, PlanSource::kUserCache);
    EXPECT_THAT(explain(request, eight_h200(), cache_of(entry)), HasSubstr("measured on 2026"));
  }
}

// docs/internals/performance_notes.md, "Plain buffers".
TEST(AsMeasured, PlainBuffersOnTheHostAreStagedInShortPasses) {
  Topology topology = eight_h200();
  topology.backend = Backend::kHost;
  topology.gpu.clear();
  topology.nccl = false;
  Request request = bytes_of(16 * MiB);
  request.symmetric = false;
  request.input_reach = request.output_reach = BufferReach::kOwner;
  request.ring_bytes = request.staging_bytes = 8 * MiB;
  for (const int ranks : {2, 4}) {
    topology.ranks = ranks;
    const auto plan = choose(request, topology, {});
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    EXPECT_EQ(plan->algorithm, ranks == 2 ? "all_reduce/two_shot_staged" : "all_reduce/two_shot");
    EXPECT_EQ(plan->chunk_bytes, MiB);
  }
}

// 1 MiB by this algorithm, with all memory that it may need.
Request request_of(const Algorithm& row, BufferReach reach) {
  Request request = bytes_of(MiB);
  request.collective = row.collective;
  request.input_reach = request.output_reach = reach;
  request.ring_bytes = request.staging_bytes = request.packet_bytes = 8 * MiB;
  request.algorithm = row.id;
  return request;
}

// Memory of which copies may wait for each other: for kernels it is as any that peers reach.
TEST(AsMeasured, CopyEnginesStageWhatOnlyKernelsShouldReach) {
  int staged = 0;
  for (const Algorithm& row : catalogue()) {
    const bool touched = row.peers_read_input || row.peers_write_output;
    if (row.cuda == nullptr || row.sends_messages || !touched) continue;
    const Request request = request_of(row, BufferReach::kKernels);
    const auto plan = select({request, eight_h200(), {}});
    if (!plan.is_ok()) continue;
    const bool by_copies = row.program != nullptr;
    EXPECT_EQ(plan->staged(), by_copies || stages_any_buffer(row)) << row.id;
    staged += by_copies ? 1 : 0;
  }
  EXPECT_GE(staged, 3);
}

// In a capture that registers its buffers. A buffer that only the root has cannot be registered.
TEST(AsMeasured, LateRegistrationLeavesOutBuffersOfTheRootAlone) {
  int late = 0;
  for (const Algorithm& row : catalogue()) {
    const bool touched = row.peers_read_input || row.peers_write_output;
    if (row.cuda == nullptr || row.sends_messages || !touched) continue;
    Request request = request_of(row, BufferReach::kOwner);
    request.registers_late = request.registers_now = true;
    const auto plan = select({request, eight_h200(), {}});
    if (!plan.is_ok()) continue;
    EXPECT_EQ(plan->access == BufferAccess::kLate, !stages_any_buffer(row)) << row.id;
    late += plan->access == BufferAccess::kLate ? 1 : 0;
  }
  EXPECT_GE(late, 3);
}

// As if they were symmetric. A buffer that only the root has is staged even so.
TEST(AsMeasured, PlainBuffersThatRanksAddressAreNotStaged) {
  Topology topology = eight_h200();
  topology.backend = Backend::kHost;
  topology.gpu.clear();
  topology.nccl = false;
  topology.ranks = 4;
  int addressed = 0;
  for (const Algorithm& row : catalogue()) {
    if (row.collective == Collective::kSendRecv) continue;
    Request request = request_of(row, BufferReach::kOwner);
    request.by_address = true;
    request.hidden = row.collective == Collective::kAllReduceResidualRmsNorm ? 1024 : 0;
    const auto plan = select({request, topology, {}});
    if (!plan.is_ok()) continue;
    const bool touched = row.peers_read_input || row.peers_write_output;
    EXPECT_EQ(plan->staged(), stages_any_buffer(row)) << row.id;
    const bool by_address = plan->access == BufferAccess::kByAddress;
    EXPECT_EQ(by_address, touched && !plan->staged()) << row.id;
    addressed += by_address ? 1 : 0;
  }
  EXPECT_GT(addressed, 20);
}

}  // namespace
}  // namespace tutti
