// Tuning tables whose numbers are at the ends of their types: each is refused by name, or choices
// can be made by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/choose.hpp"
#include "planning/table.hpp"
#include "support/ends.hpp"
#include "unit/planning/entries.hpp"

namespace tutti {
namespace {

using testing::StartsWith;

void choose_by(std::vector<TuningEntry> entries) {
  const auto table = TuningTable::from_sources({{PlanSource::kUserCache, "x.json", entries}});
  if (!table.is_ok()) return;  // it says of which entry
  for (int bits = 0; bits < 50; ++bits) {
    for (const Backend backend : {Backend::kCuda, Backend::kHost}) {
      Topology topology = eight_h200();
      topology.backend = backend;
      Request request;
      request.dtype = DataType::kUint8;
      request.count = std::size_t{1} << bits;
      const auto plan = choose(request, topology, *table);
      if (!plan.is_ok()) continue;
      EXPECT_GE(plan->blocks, 1);
      EXPECT_GE(plan->threads, 1);
      EXPECT_FALSE(explain(request, topology, *table).empty());
    }
  }
}

TEST(TableEnds, AreRefusedOrChosenBy) {
  TuningEntry full = entry_of(1, SIZE_MAX, "all_reduce/ring");
  full.blocks = 64;
  full.threads = 512;
  full.chunk_bytes = 1 << 20;
  full.runner_up = "all_reduce/nccl";
  full.runner_up_us = 5.5;
  const auto document = nlohmann::json::parse(write_tuning_json({{full}}));
  int refused = 0, taken = 0;
  const auto look = [&](const nlohmann::json& changed, const std::string& what) {
    SCOPED_TRACE(what);
    const auto parsed = parse_tuning_json(changed.dump(), "x.json");
    if (parsed.is_ok()) {
      ++taken;
      return choose_by(parsed->collectives);
    }
    ++refused;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(parsed.status().message(), StartsWith("x.json: entry 0: field '"));
  };
  EXPECT_GE(test::at_all_ends(document, look), 9);
  EXPECT_GT(refused, 80);
  EXPECT_GT(taken, 25);
}

}  // namespace
}  // namespace tutti
