#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "planning/choose.hpp"
#include "unit/planning/entries.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Override of(std::size_t min_bytes, std::size_t max_bytes, const char* id) {
  return {Collective::kAllReduce, min_bytes, max_bytes, id};
}

TEST(Overrides, Grammar) {
  const auto parsed = parse_overrides(
      "all_reduce:0-64K:@quick; all_reduce : 64K-1.5M : @all_reduce/lean;"
      "all_reduce:2M-inf:@nccl;all_reduce:@ring;",
      kTestRows);
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  EXPECT_THAT(
      *parsed,
      ElementsAre(of(0, 64 * KiB, "all_reduce/quick"), of(64 * KiB, 1536 * KiB, "all_reduce/lean"),
                  of(2 * MiB, SIZE_MAX, "all_reduce/nccl"), of(0, SIZE_MAX, "all_reduce/ring")));
  EXPECT_THAT(*parse_overrides("", kTestRows), IsEmpty());
  EXPECT_THAT(*parse_overrides(" ; ", kTestRows), IsEmpty());
  EXPECT_THAT(*parse_overrides("all_reduce:5-5:@quick", kTestRows),
              ElementsAre(of(5, 5, "all_reduce/quick")));
}

TEST(Overrides, UnknownNamesListTheKnownOnes) {
  EXPECT_THAT(parse_overrides("all_reduce:@qwick", kTestRows).status().message(),
              AllOf(HasSubstr("'all_reduce:@qwick'"), HasSubstr("unknown algorithm 'qwick'"),
                    HasSubstr("quick, lean, ring, switch, nccl")));
  EXPECT_THAT(parse_overrides("all_shout:@quick", kTestRows).status().message(),
              AllOf(HasSubstr("unknown collective 'all_shout'"), HasSubstr("all_reduce")));
}

TEST(Overrides, MalformedItemsAreNamed) {
  for (const char* text :
       {"all_reduce", "all_reduce:", "all_reduce:quick", "all_reduce:@", "all_reduce:64K:@quick",
        "all_reduce:0-64K:quick", "all_reduce:0-64K:", "all_reduce:64K-1K:@quick",
        "all_reduce:-1-5:@quick", "all_reduce:0-:@quick", "all_reduce:-:@quick",
        "all_reduce:0-64Q:@quick", "all_reduce:inf-inf:@quick", ":@quick", "@quick",
        "all_reduce:@quick:0-64K", "all_reduce:@quick,all_reduce:@lean"}) {
    const auto parsed = parse_overrides(std::string("all_reduce:@lean;") + text, kTestRows);
    ASSERT_FALSE(parsed.is_ok()) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr("'" + std::string(text) + "'")) << text;
  }
}

// Measured where the kernels can be aborted, it is not taken where they cannot: unless it is named.
TEST(Overrides, WindowsByTablesTakeAnNcclThatAborts) {
  const TuningTable table = *TuningTable::from_sources(
      {{PlanSource::kUserCache, "c", {entry_of(0, MiB, "all_reduce/window")}}});
  Topology topology = eight_h200();
  Request request = {.count = 16 * KiB};
  const auto taken = [&] {
    return choose(request, topology, table, kTestRows)->algorithm == "all_reduce/window";
  };
  const auto named = [&] {
    return names_row_that_needs(kNeedsNcclWindows, topology, table, request.tune, kTestRows);
  };
  EXPECT_TRUE(taken());
  EXPECT_TRUE(named());
  topology.nccl_version = 22803;
  EXPECT_FALSE(taken());
  EXPECT_FALSE(named());
  request.tune = "all_reduce:@window";
  EXPECT_TRUE(taken());
  EXPECT_TRUE(named());
  request.tune = "all_reduce:@nccl";
  EXPECT_FALSE(named());
  request.tune = {};
  topology.nccl_version = 22907;
  topology.ranks = 4;  // the table is of 8
  EXPECT_FALSE(taken());
  EXPECT_FALSE(named());
}

}  // namespace
}  // namespace tutti
