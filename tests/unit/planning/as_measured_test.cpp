// What a table names is taken where the request is as what was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/units.hpp"
#include "planning/choose.hpp"
#include "planning/filter.hpp"
#include "planning/model.hpp"
#include "planning/selection.hpp"
#include "unit/planning/entries.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

using testing::AllOf;
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

// Tables are measured with pieces of whole vectors of 16 bytes. With others some kernels are far
// slower; copy engines and the kernels that shift vectors are not.
TEST(AsMeasured, PiecesThatAreNoWholeVectorsAreLeftToWhatIsFastWithThem) {
  for (const auto& [collective, named, narrow] :
       {std::tuple(Collective::kAllGather, "all_gather/pull_tma", "all_gather/copy_engine"),
        std::tuple(Collective::kGather, "gather/pull", "gather/copy_engine"),
        std::tuple(Collective::kReduceScatter, "reduce_scatter/pull", "reduce_scatter/pull_tma")}) {
    TuningEntry entry = entry_of(0, 256 * MiB, named);
    entry.collective = collective;
    Request request = bytes_of(128 * MiB);
    request.collective = collective;
    request.packet_bytes = 8 * MiB;
    EXPECT_EQ(choose(request, eight_h200(), cache_of(entry))->algorithm, named);
    for (const std::size_t more : {4, 2, 1}) {  // in each piece
      request.count = 128 * MiB + 8 * more;
      const auto plan = choose(request, eight_h200(), cache_of(entry));
      EXPECT_EQ(plan->algorithm, narrow) << more;
      EXPECT_EQ(plan->source, PlanSource::kModel) << more;
    }
    EXPECT_THAT(explain(request, eight_h200(), cache_of(entry)),
                AllOf(HasSubstr("the fastest for pieces that are no whole vectors"),
                      HasSubstr("names it for whole vectors")));
  }
}

TEST(AsMeasured, KernelsThatShiftVectorsAreKeptForAnyPieces) {
  for (const auto& [collective, named] :
       {std::tuple(Collective::kAllGather, "all_gather/push"),
        std::tuple(Collective::kAllGather, "all_gather/push_per_peer"),
        std::tuple(Collective::kAllToAll, "all_to_all/push"),
        std::tuple(Collective::kReduceScatter, "reduce_scatter/pull_tma"),
        std::tuple(Collective::kScatter, "scatter/push")}) {
    TuningEntry entry = entry_of(0, 256 * MiB, named);
    entry.collective = collective;
    Request request = bytes_of(128 * MiB + 8);
    request.collective = collective;
    const auto plan = choose(request, eight_h200(), cache_of(entry));
    EXPECT_EQ(plan->algorithm, named);
    EXPECT_EQ(plan->source, PlanSource::kUserCache);
  }
}

// Copies of threads that share a GPU may wait for each other's kernels, those of the switch cannot
// be stopped, and pieces of lengths of their own begin nobody here knows where.
TEST(AsMeasured, OtherPiecesAreCopiedOnlyWhereCopiesAreSafe) {
  Request request = bytes_of(128 * MiB + 8);
  request.collective = Collective::kAllGather;
  const auto chosen = [&](const Topology& topology) {
    return std::string(choose(request, topology, TuningTable::empty())->algorithm);
  };
  EXPECT_EQ(chosen(eight_h200()), "all_gather/copy_engine");
  Topology threads = eight_h200();
  threads.one_process = true;
  threads.ranks_per_gpu = 2;
  EXPECT_EQ(chosen(threads), "all_gather/push");
  request.registers_late = true;
  EXPECT_EQ(chosen(eight_h200()), "all_gather/push");
  request.registers_late = false;
  Topology with_switch = eight_h200();
  with_switch.multicast = true;
  request.input_reach = BufferReach::kOwner;
  request.staging_bytes = MiB;
  EXPECT_NE(chosen(with_switch), "all_gather/copy_engine_multicast");
  EXPECT_EQ(width_of_pieces(request, eight_h200()), 1);
  request.collective = Collective::kAllGatherV;
  EXPECT_EQ(width_of_pieces(request, eight_h200()), kVectorBytes);
}

// A table that names what stages is left for what stages as well.
TEST(AsMeasured, OtherPiecesOfARootAreCopiedThoughTheyAreStaged) {
  TuningEntry entry = entry_of(0, 256 * MiB, "gather/pull");
  entry.collective = Collective::kGather;
  Request request = bytes_of(128 * MiB + 8);
  request.collective = Collective::kGather;
  Topology topology = eight_h200();
  topology.nccl = false;
  EXPECT_EQ(choose(request, topology, cache_of(entry))->algorithm, "gather/copy_engine");
}

// Packets lose a few microseconds, for which no table is left, and the host copies bytes.
TEST(AsMeasured, PacketsAndTheHostStayWithAnyPieces) {
  TuningEntry entry = entry_of(0, MiB, "all_gather/one_shot_push");
  entry.collective = Collective::kAllGather;
  Request request = bytes_of(64 * KiB + 8);
  request.collective = Collective::kAllGather;
  request.packet_bytes = 8 * MiB;
  EXPECT_EQ(choose(request, eight_h200(), cache_of(entry))->source, PlanSource::kUserCache);
  Topology host = eight_h200();
  host.backend = entry.backend = Backend::kHost;
  host.gpu.clear();
  entry.gpu.clear();
  entry.algorithm = "all_gather/push";
  EXPECT_EQ(choose(request, host, cache_of(entry))->algorithm, "all_gather/push");
}

// What was measured with plain buffers has the cost of staging in it.
TEST(AsMeasured, WhateverATableNamesForPlainBuffersIsTaken) {
  Request request = bytes_of(64 * MiB);
  request.collective = Collective::kAllGather;
  request.set_plain();
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
  request.set_plain();
  request.ring_bytes = request.staging_bytes = 8 * MiB;
  for (const int ranks : {2, 4}) {
    topology.ranks = ranks;
    const auto plan = choose(request, topology, {});
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    EXPECT_EQ(plan->algorithm, ranks == 2 ? "all_reduce/two_shot_staged" : "all_reduce/two_shot");
    EXPECT_EQ(plan->chunk_bytes, MiB);
  }
}

}  // namespace
}  // namespace tutti
