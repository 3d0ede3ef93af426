// Groups of tests that follow each other in the same ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SeriesTest : public ::testing::TestWithParam<RankKind> {
 protected:
  NamedRun run(std::string name, std::function<void(Rank&)> function) const {
    return {std::move(name), {.kind = GetParam(), .ranks = 2}, std::move(function)};
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, SeriesTest,
                         ::testing::Values(RankKind::kThreads, RankKind::kProcesses));

void allocates(Rank& rank) { (void)take(rank.group.allocate(256)); }

TEST_P(SeriesTest, EachRunHasAGroupOfItsOwn) {
  const auto aborts = [](Rank& rank) {
    (void)rank.group.allocate(256);  // every rank has its group by now
    rank.group.abort("this group alone");
    require(!rank.group.status().is_ok(), "it has failed");
  };
  EXPECT_THAT(run_series({run("first", aborts), run("second", allocates)}), IsEmpty());
}

TEST_P(SeriesTest, TheFirstThatFailsIsNamedAndTheLast) {
  const auto fails = [](Rank&) { fail("on purpose"); };
  EXPECT_THAT(run_series({run("first", allocates), run("second", fails), run("third", fails)}),
              AllOf(HasSubstr("second: "), HasSubstr("on purpose"), Not(HasSubstr("third"))));
}

}  // namespace
}  // namespace tutti::test
