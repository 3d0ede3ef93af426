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
  EXPECT_THAT(text, ContainsRegex("  TUTTI_TIMEOUT_MS +1234 ms .environment. +timeout of every"));
  EXPECT_THAT(text, ContainsRegex("  TUTTI_STAGING_BYTES +1M .file. +staging"));
  EXPECT_THAT(text, ContainsRegex("  TUTTI_DISABLE +off +1: NCCL runs"));
  EXPECT_THAT(text, ContainsRegex("  TUTTI_TUNE +- +forced"));
}

TEST(Env, HasEachSubjectOnce) {
  const std::string text = print_env(kKnobs, false);
  EXPECT_TRUE(text.starts_with("launch\n  TUTTI_RANK "));
  for (const char* subject : {"launch", "algorithms", "memory", "timeouts and diagnostics"}) {
    const std::string line = std::string("\n") + subject + "\n";
    EXPECT_EQ(("\n" + text).find(line), ("\n" + text).rfind(line)) << subject;
    EXPECT_THAT("\n" + text, HasSubstr(line));
  }
}

TEST(Env, WritesValuesInPlainUnits) {
  const auto shown = [](const std::string& setting) {
    return print_env(Knobs::parse({setting}, ""), false);
  };
  EXPECT_THAT(print_env(Knobs::parse({}, ""), false), ContainsRegex("TUTTI_TIMEOUT_MS +10 min "));
  EXPECT_THAT(shown("TUTTI_TIMEOUT_MS=7200000"), ContainsRegex("TUTTI_TIMEOUT_MS +2 h .env"));
  EXPECT_THAT(shown("TUTTI_TIMEOUT_MS=90000"), ContainsRegex("TUTTI_TIMEOUT_MS +90 s "));
  EXPECT_THAT(shown("TUTTI_STAGING_BYTES=67108864"), ContainsRegex("STAGING_BYTES +64M "));
  EXPECT_THAT(shown("TUTTI_RECORDER=no"), ContainsRegex("TUTTI_RECORDER +off "));
  const std::string ring = "TUTTI_RING_BIDIRECTIONAL_MAX_BYTES";
  EXPECT_THAT(shown(""), ContainsRegex(ring + " +by machine "));
  EXPECT_THAT(shown(ring + "=-1"), ContainsRegex(ring + " +all "));
  EXPECT_THAT(shown(ring + "=0"), ContainsRegex(ring + " +none "));
  EXPECT_THAT(shown(ring + "=1M"), ContainsRegex(ring + " +1M "));
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
  EXPECT_EQ(json.at("settings").at(0).at("group"), "launch");
  EXPECT_EQ(json.at("warnings").size(), 1u);
}

}  // namespace
}  // namespace tutti::cli
