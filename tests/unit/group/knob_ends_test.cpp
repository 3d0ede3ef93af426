// Settings at the ends of their types: each is taken, or told and left at its default, and what
// comes of it can be laid out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/knobs.hpp"
#include "bootstrap/environment.hpp"
#include "executors/peer/layout.hpp"

namespace tutti {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kEnds[] = {"0",
                                 "-1",
                                 "-2",
                                 "-3",
                                 "1",
                                 "-2147483648",
                                 "2147483647",
                                 "4294967296",
                                 "1T",
                                 "1025G",
                                 "16777215T",
                                 "-9223372036854775808",
                                 "9223372036854775807",
                                 "18446744073709551615",
                                 "18446744073709551616",
                                 "1e999",
                                 "nan",
                                 "inf",
                                 "0x10",
                                 ""};

bool is_number(const Knob& knob) {
  return knob.type == KnobType::kInt || knob.type == KnobType::kBytes ||
         knob.type == KnobType::kSizeLimit || knob.type == KnobType::kMilliseconds;
}

// No part is behind the end, and no sum has wrapped.
void expect_laid_out(const Knobs& knobs, bool captures) {
  const Layout layout = layout_from(knobs, captures);
  constexpr std::size_t kMost = std::size_t{1} << 56;
  EXPECT_GE(layout.channels(), 1);
  std::size_t last = 0;
  for (const std::size_t place :
       {layout.channel_offset(layout.channels()), layout.staging_offset(layout.channels()),
        layout.packet_offset(layout.packet_areas), layout.message_offset(), layout.late_bytes(),
        layout.bytes()}) {
    EXPECT_GE(place, last);
    EXPECT_LT(place, kMost);
    last = place;
  }
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    EXPECT_LE(layout.message_slot_bytes(ranks), layout.message_bytes + 256);
  }
}

TEST(KnobEnds, AreTakenOrTold) {
  int numbers = 0;
  for (const Knob& knob : all_knobs()) {
    if (!is_number(knob)) continue;
    ++numbers;
    for (const char* end : kEnds) {
      const std::string entry = std::string(knob.name) + "=" + end;
      SCOPED_TRACE(entry);
      const Knobs knobs = Knobs::parse({entry}, "");
      const bool taken = knobs.source(knob.name) == KnobSource::kEnvironment;
      if (taken) {
        EXPECT_THAT(knobs.warnings(), IsEmpty());
      } else {
        EXPECT_THAT(knobs.warnings(), ElementsAre(HasSubstr(entry)));
        EXPECT_EQ(knobs.text(knob.name), knob.default_value);
      }
      expect_laid_out(knobs, true);
      expect_laid_out(knobs, false);
    }
  }
  EXPECT_GE(numbers, 12);
}

TEST(KnobEnds, AllAtOnceAreLaidOut) {
  for (const char* end : {"0", "1", "1T", "9223372036854775807"}) {
    Knobs::Environment environment;
    for (const Knob& knob : all_knobs()) {
      if (is_number(knob)) environment.push_back(std::string(knob.name) + "=" + end);
    }
    SCOPED_TRACE(end);
    expect_laid_out(Knobs::parse(environment, ""), true);
  }
}

// A launcher's variables, which are read whether or not they are settings.
TEST(KnobEnds, OfALauncherAreTakenOrRefused) {
  for (const char* name : {"TUTTI_RANK", "TUTTI_SIZE", "TUTTI_LOCAL_RANK", "TUTTI_LOCAL_SIZE",
                           "TUTTI_GROUP_FD", "RANK", "WORLD_SIZE", "LOCAL_RANK"}) {
    for (const char* end : kEnds) {
      const std::string entry = std::string(name) + "=" + end;
      SCOPED_TRACE(entry);
      std::vector<std::string> environment = {"TUTTI_RANK=0", "TUTTI_SIZE=1", "RANK=0",
                                              "WORLD_SIZE=1", "LOCAL_RANK=0"};
      std::erase_if(environment, [&](const std::string& other) {
        return other.starts_with(std::string(name) + "=");
      });
      environment.push_back(entry);
      const auto launched = read_launch_environment(environment);
      if (!launched.is_ok()) {
        EXPECT_EQ(launched.status().code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(launched.status().message(),
                    AnyOf(HasSubstr(name), HasSubstr("gives local rank")));
        continue;
      }
      EXPECT_GE(launched->size, 1);
      EXPECT_GE(launched->rank, 0);
      EXPECT_LT(launched->rank, launched->size);
      EXPECT_GE(launched->local_rank, 0);
    }
  }
}

}  // namespace
}  // namespace tutti
