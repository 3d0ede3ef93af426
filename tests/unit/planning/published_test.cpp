// What others published, on machines that need not exist: whether it is what is chosen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/units.hpp"
#include "planning/choose.hpp"
#include "planning/filter.hpp"
#include "planning/model.hpp"
#include "support/fake_machine.hpp"
#include "unit/planning/published_cells.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;

const TuningTable& shipped() {
  static const TuningTable table = *TuningTable::load("", "");
  return table;
}

Request request_of(std::size_t count, DataType dtype) {
  Request request;
  request.count = count;
  request.dtype = dtype;
  request.packet_bytes = 8 * MiB;
  return request;
}

Topology machine_of(const PublishedCell& cell, bool multicast) {
  FakeMachine box;
  box.gpus(8).name(std::string(cell.gpu)).compute(cell.compute);
  return box.nvlink_all_to_all().multicast(multicast).topology(cell.ranks);
}

Family family_of(const Plan& plan) {
  return (*find_algorithm(Collective::kAllReduce, plan.algorithm))->family;
}

struct Share {
  int cells = 0, right = 0;
  double value() const { return static_cast<double>(right) / cells; }
};

// Cells in which a row of the best family can run, and those in which it would need multicast: of
// them it is right to take the best of the others.
struct Score {
  Share possible, without_multicast;
};

Score score_of(const TuningTable& table, bool multicast) {
  Score score;
  for (const PublishedCell& cell : published_cells()) {
    const bool denied = best_of(cell, true) == Family::kMulticast && !multicast;
    Share& share = denied ? score.without_multicast : score.possible;
    const auto plan =
        choose(request_of(cell.bytes / 2, DataType::kBfloat16), machine_of(cell, multicast), table);
    ++share.cells;
    share.right += plan.is_ok() && family_of(*plan) == best_of(cell, !denied);
  }
  return score;
}

TEST(Published, TheBestFamilyIsChosen) {
  for (const bool multicast : {false, true}) {
    const Score score = score_of(shipped(), multicast);
    EXPECT_GE(score.possible.value(), 0.8);
    EXPECT_EQ(score.without_multicast.cells > 0, !multicast);
    if (!multicast) {
      EXPECT_GE(score.without_multicast.value(), 0.8);
    }
    std::printf("multicast %s: %d of %d cells, and %d of %d whose best family cannot run\n",
                multicast ? "present" : "absent", score.possible.right, score.possible.cells,
                score.without_multicast.right, score.without_multicast.cells);
  }
}

// Without the tables, or with families that were exchanged, the test above would fail.
TEST(Published, NegativeControlWithoutTheTables) {
  const Score score = score_of(TuningTable::empty(), false);
  EXPECT_LT(score.possible.value(), 0.8);
  EXPECT_LT(score.without_multicast.value(), 0.8);
}

TEST(Published, NegativeControlWithFamiliesExchanged) {
  std::vector<TuningSource> sources = shipped().sources();
  for (TuningSource& source : sources) {
    for (TuningEntry& entry : source.entries) {
      const bool one_shot = entry.algorithm == "all_reduce/one_shot";
      entry.algorithm = one_shot ? "all_reduce/two_shot" : "all_reduce/one_shot";
    }
  }
  EXPECT_LT(score_of(*TuningTable::from_sources(std::move(sources)), false).possible.value(), 0.8);
}

// On 2 H100s vLLM's one-shot is ahead of its two-shot up to 64 MiB, and far behind our ring and our
// two_shot, as measured on H200s: where its packets have no room any more, another row is taken.
TEST(Published, WhatTheModelExpectsToBeFarSlowerIsNotTaken) {
  FakeMachine box;
  box.gpus(8).name("NVIDIA H100 80GB HBM3").nvlink_all_to_all();
  const auto taken = [&](std::size_t bytes, Topology topology) {
    return *choose(request_of(bytes / 2, DataType::kBfloat16), topology, shipped());
  };
  for (const std::size_t bytes : {512 * KiB, MiB, 2 * MiB}) {
    EXPECT_EQ(taken(bytes, box.topology(2)).source, PlanSource::kPublished) << bytes;
    EXPECT_EQ(family_of(taken(bytes, box.topology(2))), Family::kOneShot) << bytes;
  }
  for (const std::size_t bytes : {16 * MiB, 32 * MiB, 64 * MiB}) {
    const Plan plan = taken(bytes, box.topology(2));
    EXPECT_EQ(plan.source, PlanSource::kModel) << bytes;
    EXPECT_NE(family_of(plan), Family::kOneShot) << bytes;
  }
  const Request large = request_of(32 * MiB, DataType::kBfloat16);
  EXPECT_THAT(explain(large, box.topology(2), shipped()),
              HasSubstr("published: one_shot (vLLM, pull request 24111, measured), whose one_shot "
                        "the model expects to be far slower"));
  // Where the model was not fitted it has no say.
  box.compute(80);
  EXPECT_EQ(taken(64 * MiB, box.topology(2)).source, PlanSource::kPublished);
  box.compute(90);
  Topology unknown = box.topology(2);
  unknown.nvlinks = 0;
  EXPECT_EQ(taken(64 * MiB, unknown).source, PlanSource::kPublished);
}

TEST(Published, AFamilyIsItsFastestRowThatCanRun) {
  TuningEntry entry;
  entry.gpu = "NVIDIA H200";
  entry.ranks = 8;
  entry.max_bytes = MiB;
  entry.algorithm = "all_reduce/multicast";
  entry.runner_up = "all_reduce/one_shot";
  entry.provenance = Provenance::kPublished;
  const auto table = TuningTable::from_sources({{PlanSource::kPublished, "published", {entry}}});
  FakeMachine box;
  box.gpus(8).nvlink_all_to_all().multicast(true);
  const Request request = request_of(1024, DataType::kUint8);
  const auto taken = [&](Rows rows) { return *choose(request, box.topology(8), *table, rows); };
  EXPECT_EQ(taken(kTestRows).algorithm, "all_reduce/switch");
  EXPECT_EQ(taken(kTestRows).source, PlanSource::kPublished);
  EXPECT_EQ(taken(catalogue()).algorithm, "all_reduce/one_shot_push");  // no switch takes uint8
  const Request sum = request_of(1024, DataType::kBfloat16);
  const auto plan = choose(sum, box.topology(8), *table, catalogue());
  EXPECT_EQ(family_of(*plan), Family::kMulticast);
  EXPECT_FALSE(plan->emulated);
  box.multicast(false);
  EXPECT_EQ(taken(kTestRows).algorithm, "all_reduce/quick");
  box.peer_access(false);
  EXPECT_EQ(taken(kTestRows).algorithm, "all_reduce/nccl");
  EXPECT_EQ(taken(kTestRows).source, PlanSource::kModel);
}

// ---- Every threshold of every table that is shipped

Topology topology_of(const TuningEntry& entry, bool multicast) {
  if (entry.backend == Backend::kHost) {
    return {.backend = Backend::kHost, .ranks = entry.ranks, .cores = entry.cores};
  }
  FakeMachine box;
  return box.gpus(8).name(entry.gpu).nvlink_all_to_all().multicast(multicast).topology(entry.ranks);
}

// The one entry for this machine that holds `bytes`, by looking at all of them.
const TuningEntry* holder_of(const TuningEntry& like, std::size_t bytes) {
  const TuningEntry* holder = nullptr;
  for (const TuningSource& source : shipped().sources()) {
    for (const TuningEntry& entry : source.entries) {
      if (!of_one_machine(entry, like)) continue;
      if (bytes < entry.min_bytes || entry.max_bytes < bytes) continue;
      EXPECT_EQ(holder, nullptr) << source.name << ": two entries hold " << bytes;
      holder = &entry;
    }
  }
  return holder;
}

// `next`: what it names first cannot run.
bool is_what_it_names(const Plan& plan, const TuningEntry& entry, bool next) {
  if (entry.provenance == Provenance::kMeasured) return plan.algorithm == entry.algorithm;
  const std::string family = "all_reduce/" + std::string(to_string(family_of(plan)));
  return family == (next ? entry.runner_up : entry.algorithm);
}

// Of what others published: whether the model expects its families to be slower by a quarter.
bool model_doubts(const TuningEntry& entry, const Request& request, const Topology& topology,
                  bool next) {
  if (entry.provenance != Provenance::kPublished || topology.compute / 10 != 9) return false;
  if (entry.algorithm == "all_reduce/multicast" && !next) return false;
  const std::string_view family = name_of_id(next ? entry.runner_up : entry.algorithm);
  double best = 1e30, own = 1e30;
  for (const Candidate& row : candidates(request, topology, TuningTable::empty())) {
    const Algorithm& known = **find_algorithm(request.collective, row.algorithm);
    const std::string limit = why_not_by_itself(known, request, topology, MeasuredWith::kNothing);
    if (!row.possible || !limit.empty() || row.predicted_us == 0) continue;
    best = std::min(best, row.predicted_us);
    if (to_string(known.family) == family) own = std::min(own, row.predicted_us);
  }
  return own < 1e30 && own > 1.25 * best;
}

void expect_holder_is_taken(const TuningEntry& like, const Request& request, bool multicast) {
  const TuningEntry* holder = holder_of(like, request.bytes());
  if (holder == nullptr && like.plain) return;  // then those of symmetric buffers are asked
  const auto plan = choose(request, topology_of(like, multicast), shipped());
  ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
  const bool reduces = multicast && request.dtype == DataType::kBfloat16;
  const bool next = holder != nullptr && holder->algorithm == "all_reduce/multicast" && !reduces;
  const bool doubted =
      holder != nullptr && model_doubts(*holder, request, topology_of(like, multicast), next);
  const bool mute = holder == nullptr || (next && holder->runner_up.empty()) || doubted;
  const std::string where =
      fmt::format("{} of {} on '{}', {} ranks, {} bytes", to_string(like.collective),
                  to_string(like.backend), like.gpu, like.ranks, request.bytes());
  EXPECT_EQ(plan->source == PlanSource::kModel, mute) << where;
  EXPECT_TRUE(mute || is_what_it_names(*plan, *holder, next)) << where << ": " << plan->algorithm;
}

// Elements in a whole vector for each rank, where ranks have pieces: tables hold for those.
std::size_t step_of(const TuningEntry& entry, DataType dtype) {
  if (entry.backend != Backend::kCuda || !has_pieces(entry.collective)) return 1;
  return kVectorBytes / size_of(dtype) * static_cast<std::size_t>(entry.ranks);
}

TEST(Thresholds, OneStepAroundEachTheEntryThatHoldsTheSizeIsTaken) {
  int thresholds = 0;
  for (const TuningSource& source : shipped().sources()) {
    for (const TuningEntry& entry : source.entries) {
      if (entry.collective == Collective::kAllReduceResidualRmsNorm) continue;  // of whole tokens
      for (const std::size_t threshold : {entry.min_bytes, entry.max_bytes}) {
        for (const DataType dtype : {DataType::kUint8, DataType::kBfloat16}) {
          const std::size_t step = step_of(entry, dtype);
          const std::size_t count = threshold / size_of(dtype) / step * step;
          const std::size_t last = SIZE_MAX / size_of(dtype) / step * step;
          const std::size_t less = count > 0 ? count - step : 0;
          for (const std::size_t k : {less, count, count < last ? count + step : last}) {
            Request request = request_of(k, dtype);
            request.collective = entry.collective;
            if (entry.plain) request.set_plain();
            request.packet_bytes = SIZE_MAX;  // what a row has no room for is another test
            request.ring_bytes = SIZE_MAX;
            for (const bool multicast : {false, true}) {
              expect_holder_is_taken(entry, request, multicast);
            }
          }
        }
        ++thresholds;
      }
    }
  }
  EXPECT_GT(thresholds, 200);
}

// ---- Ranks

// Machines of one kind that differ in all that is a rank's own; tables that each rank reads itself.
TEST(Ranks, ChooseTheSameWhateverIsTheirOwn) {
  const std::string gpu = "NVIDIA H100 80GB HBM3";
  for (const std::size_t bytes : {1 * KiB, 300 * KiB, 16 * MiB, 100 * MiB}) {
    std::optional<Plan> first;
    for (int rank = 0; rank < 8; ++rank) {
      FakeMachine box;
      box.host(fmt::format("node{}", rank), 16 << rank).gpus(8 + rank).name(gpu);
      box.nvlink_all_to_all().fabric(rank % 2 == 0);
      ::setenv("TUTTI_TUNE", rank % 2 == 0 ? "all_reduce:@nccl" : "", 1);
      const auto table = TuningTable::load("", fmt::format("/no/such/cache/of/rank{}", rank));
      const auto plan = choose(request_of(bytes / 2, DataType::kBfloat16), box.topology(8), *table);
      ::unsetenv("TUTTI_TUNE");
      ASSERT_TRUE(plan.is_ok());
      if (!first) first = *plan;
      EXPECT_EQ(*plan, *first) << "rank " << rank;
      EXPECT_EQ(table->hash(), shipped().hash());
    }
  }
}

}  // namespace
}  // namespace tutti
