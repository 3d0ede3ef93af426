#include "env.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tutti::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const Knobs kKnobs = Knobs::parse({"TUTTI_TIMEOUT_MS=1234", "TUTTI_SECRET=hush", "TUTTI_TYPO=1"},
                                  "TUTTI_STAGING_BYTES = 1M\n");

TEST(Env, ListsEverySettingWithItsSource) {
  const std::string text = print_env(kKnobs, false);
  for (const Knob& knob : all_knobs()) EXPECT_THAT(text, HasSubstr(std::string(knob.name)));
  EXPECT_THAT(text, ContainsRegex("TUTTI_TIMEOUT_MS +1234 +environment"));
  EXPECT_THAT(text, ContainsRegex("TUTTI_STAGING_BYTES +1M +file"));
  EXPECT_THAT(text, ContainsRegex("TUTTI_DISABLE +0 +default"));
}

TEST(Env, TellsNoSecret) {
  for (const bool json : {false, true}) {
    EXPECT_THAT(print_env(kKnobs, json), Not(HasSubstr("hush")));
    EXPECT_THAT(print_env(kKnobs, json), HasSubstr("(set)"));
  }
}

TEST(Env, EndsWithTheWarnings) {
  EXPECT_THAT(print_env(kKnobs, false), ContainsRegex("warning: .*TUTTI_TYPO"));
  const auto json = nlohmann::json::parse(print_env(kKnobs, true));
  EXPECT_EQ(json.at("settings").size(), all_knobs().size());
  EXPECT_EQ(json.at("warnings").size(), 1u);
}

}  // namespace
}  // namespace tutti::cli
