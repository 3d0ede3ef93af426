#include "base/knobs.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/log.hpp"

namespace tutti {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(KnobTable, NamesAreOnceAndDefaultsAreOfTheirType) {
  std::set<std::string_view> names;
  for (const Knob& knob : all_knobs()) {
    EXPECT_TRUE(names.insert(knob.name).second) << knob.name;
    EXPECT_EQ(knob.name.substr(0, 6), "TUTTI_");
    EXPECT_FALSE(knob.text.empty()) << knob.name;
    EXPECT_EQ(knob.text.find('\n'), std::string_view::npos) << knob.name;
    // The default, given from outside, is accepted.
    const Knobs knobs =
        Knobs::parse({std::string(knob.name) + "=" + std::string(knob.default_value)}, "");
    EXPECT_THAT(knobs.warnings(), IsEmpty()) << knob.name;
  }
}

TEST(Knobs, DefaultsWhereNothingIsSet) {
  const Knobs knobs = Knobs::parse({}, "");
  EXPECT_EQ(knobs.milliseconds("TUTTI_TIMEOUT_MS"), std::chrono::minutes(10));
  EXPECT_EQ(knobs.integer("TUTTI_STAGING_BYTES"), 8 << 20);
  EXPECT_FALSE(knobs.flag("TUTTI_MULTICAST"));
  EXPECT_TRUE(knobs.flag("TUTTI_P2P_VERIFY"));
  EXPECT_EQ(knobs.text("TUTTI_TUNE"), "");
  EXPECT_EQ(knobs.source("TUTTI_TUNE"), KnobSource::kDefault);
}

TEST(Knobs, EnvironmentOverFileOverDefault) {
  const std::string file = "TUTTI_TIMEOUT_MS = 5000\nTUTTI_NVTX = off\n";
  const Knobs from_file = Knobs::parse({}, file);
  EXPECT_EQ(from_file.integer("TUTTI_TIMEOUT_MS"), 5000);
  EXPECT_EQ(from_file.source("TUTTI_TIMEOUT_MS"), KnobSource::kFile);

  const Knobs both = Knobs::parse({"TUTTI_TIMEOUT_MS=7000"}, file);
  EXPECT_EQ(both.integer("TUTTI_TIMEOUT_MS"), 7000);
  EXPECT_EQ(both.source("TUTTI_TIMEOUT_MS"), KnobSource::kEnvironment);
  EXPECT_FALSE(both.flag("TUTTI_NVTX"));
  EXPECT_EQ(both.source("TUTTI_NVTX"), KnobSource::kFile);
  EXPECT_EQ(both.source("TUTTI_DISABLE"), KnobSource::kDefault);
}

TEST(Knobs, FileSyntax) {
  const Knobs knobs = Knobs::parse({},
                                   "# a comment\n\n  TUTTI_DISABLE=1 # trailing\r\n"
                                   "TUTTI_TUNE =  all_reduce:@nccl\nTUTTI_TIMEOUT_MS=9");
  EXPECT_THAT(knobs.warnings(), IsEmpty());
  EXPECT_TRUE(knobs.flag("TUTTI_DISABLE"));
  EXPECT_EQ(knobs.text("TUTTI_TUNE"), "all_reduce:@nccl");
  EXPECT_EQ(knobs.integer("TUTTI_TIMEOUT_MS"), 9);

  const Knobs broken = Knobs::parse({}, "TUTTI_DISABLE 1\nTUTTI_TIMEOUT_MS=10\n");
  EXPECT_THAT(broken.warnings(), ElementsAre(HasSubstr("line 1")));
  EXPECT_EQ(broken.integer("TUTTI_TIMEOUT_MS"), 10);
}

TEST(Knobs, AnUnknownNameIsWarnedAboutOnce) {
  const Knobs knobs =
      Knobs::parse({"TUTTI_TIMEOUT=3", "TUTTI_TIMEOUT=3", "PATH=/bin", "OTHER=1"}, "");
  EXPECT_THAT(knobs.warnings(), ElementsAre(AllOf(HasSubstr("unknown setting TUTTI_TIMEOUT "),
                                                  HasSubstr("did you mean TUTTI_TIMEOUT_MS?"))));
  const Knobs far = Knobs::parse({"TUTTI_HAZELNUT=1"}, "");
  EXPECT_THAT(far.warnings(), ElementsAre(HasSubstr("`tutti env`")));
  EXPECT_THAT(Knobs::parse({}, "TUTI_TUNE=x").warnings(),
              ElementsAre(HasSubstr("TUTI_TUNE (file) is ignored; did you mean TUTTI_TUNE?")));
}

TEST(Knobs, AMalformedValueIsWarnedAboutAndTheOneBeforeIsUsed) {
  for (const char* entry :
       {"TUTTI_TIMEOUT_MS=0", "TUTTI_TIMEOUT_MS=-5", "TUTTI_TIMEOUT_MS=1s",
        "TUTTI_TIMEOUT_MS=", "TUTTI_TIMEOUT_MS=2147483648", "TUTTI_DISABLE=2",
        "TUTTI_DISABLE=", "TUTTI_RANK=one", "TUTTI_RANK=1 ", "TUTTI_STAGING_BYTES=-1",
        "TUTTI_STAGING_BYTES=16Q", "TUTTI_DEBUG=LOUD", "TUTTI_RANK=99999999999999999999",
        "TUTTI_STAGING_BYTES=9223372036854775808", "TUTTI_STAGING_BYTES=1025G"}) {
    const std::string text = entry;
    const std::string name = text.substr(0, text.find('='));
    const Knobs knobs = Knobs::parse({text}, "");
    EXPECT_THAT(knobs.warnings(), ElementsAre(HasSubstr(text))) << text;
    EXPECT_EQ(knobs.text(name), Knobs::parse({}, "").text(name)) << text;
    EXPECT_EQ(knobs.source(name), KnobSource::kDefault) << text;
  }
  const Knobs file_stays = Knobs::parse({"TUTTI_TIMEOUT_MS=x"}, "TUTTI_TIMEOUT_MS=77");
  EXPECT_EQ(file_stays.integer("TUTTI_TIMEOUT_MS"), 77);
}

TEST(Knobs, WordsForBoolsAndChoices) {
  for (const char* word : {"1", "true", "ON", "Yes"}) {
    EXPECT_TRUE(Knobs::parse({std::string("TUTTI_DISABLE=") + word}, "").flag("TUTTI_DISABLE"));
  }
  for (const char* word : {"0", "False", "off", "no"}) {
    EXPECT_FALSE(Knobs::parse({std::string("TUTTI_NVTX=") + word}, "").flag("TUTTI_NVTX"));
  }
  EXPECT_EQ(Knobs::parse({"TUTTI_DEBUG=info"}, "").integer("TUTTI_DEBUG"), 2);
}

TEST(Knobs, SizeLimitsKeepOneMeaning) {
  const Knob limit{"TUTTI_LIMIT", KnobGroup::kMemory, KnobType::kSizeLimit, "-2", "for this test"};
  const auto value = [&](const char* text) {
    return Knobs::parse({std::string("TUTTI_LIMIT=") + text}, "", {&limit, 1});
  };
  EXPECT_EQ(Knobs::parse({}, "", {&limit, 1}).integer("TUTTI_LIMIT"), kSizeAutomatic);
  EXPECT_EQ(value("0").integer("TUTTI_LIMIT"), kSizeNever);
  EXPECT_EQ(value("-1").integer("TUTTI_LIMIT"), kSizeAlways);
  EXPECT_EQ(value("64K").integer("TUTTI_LIMIT"), 65536);
  EXPECT_THAT(value("-3").warnings(), ElementsAre(HasSubstr("-2 (automatic)")));
}

TEST(Knobs, PathsBeginAtHome) {
  const Knobs knobs = Knobs::parse({"HOME=/home/me", "TUTTI_TUNING_FILE=~/t.json"}, "");
  EXPECT_EQ(knobs.path("TUTTI_TUNING_FILE"), "/home/me/t.json");
  EXPECT_EQ(knobs.path("TUTTI_TUNING_CACHE"), "/home/me/.cache/tutti/tuning.json");
  EXPECT_EQ(knobs.text("TUTTI_TUNING_FILE"), "~/t.json");
  EXPECT_EQ(Knobs::parse({}, "").path("TUTTI_TUNING_CACHE"), "");
  EXPECT_EQ(Knobs::parse({"TUTTI_TUNING_FILE=/a/~/b"}, "").path("TUTTI_TUNING_FILE"), "/a/~/b");
}

TEST(Knobs, HashIsOfValuesThatAGroupShares) {
  const std::uint64_t plain = Knobs::parse({}, "").hash();
  EXPECT_EQ(Knobs::parse({"TUTTI_DISABLE=0"}, "").hash(), plain);
  EXPECT_EQ(Knobs::parse({"TUTTI_STAGING_BYTES=8192K"}, "").hash(), plain);
  EXPECT_EQ(Knobs::parse({"TUTTI_DISABLE=1"}, "").hash(),
            Knobs::parse({}, "TUTTI_DISABLE = yes").hash());
  for (const char* entry :
       {"TUTTI_DISABLE=1", "TUTTI_TUNE=all_reduce:@nccl", "TUTTI_MULTICAST=1",
        "TUTTI_TIMEOUT_MS=10000", "TUTTI_STAGING_BYTES=4M", "TUTTI_CAPTURE_CHANNELS=1",
        "TUTTI_CAPTURE_STAGING_BYTES=1M", "TUTTI_P2P_VERIFY=0"}) {
    EXPECT_NE(Knobs::parse({entry}, "").hash(), plain) << entry;
  }
}

TEST(Knobs, WhatAGroupSharesHasNamesAndOneSpelling) {
  const auto values =
      Knobs::parse({"TUTTI_STAGING_BYTES=64K", "TUTTI_DISABLE=yes", "TUTTI_TUNE=all_reduce:@nccl",
                    "TUTTI_SECRET=abc", "TUTTI_RUNTIME_DIR=/x"},
                   "")
          .group_values();
  using Value = std::pair<std::string, std::string>;
  EXPECT_THAT(values, Contains(Value("TUTTI_STAGING_BYTES", "65536")));
  EXPECT_THAT(values, Contains(Value("TUTTI_DISABLE", "1")));
  EXPECT_THAT(values, Contains(Value("TUTTI_TUNE", "all_reduce:@nccl")));
  for (const auto& [name, value] : values) {
    EXPECT_NE(name, "TUTTI_SECRET");
    EXPECT_NE(name, "TUTTI_RUNTIME_DIR");
  }
}

TEST(Knobs, HashLeavesOutWhatIsAProcesssOwn) {
  const std::uint64_t plain = Knobs::parse({}, "").hash();
  for (const char* name : {"TUTTI_CONF_FILE", "TUTTI_DEBUG_FILE", "TUTTI_TUNING_FILE",
                           "TUTTI_TUNING_CACHE", "TUTTI_RUNTIME_DIR", "TUTTI_ROOT", "TUTTI_SECRET",
                           "TUTTI_SECRET_FILE", "TUTTI_RANK", "TUTTI_SIZE", "TUTTI_LOCAL_RANK",
                           "TUTTI_LOCAL_SIZE", "TUTTI_GROUP_FD", "TUTTI_NCCL_LIBRARY"}) {
    EXPECT_EQ(Knobs::parse({std::string(name) + "=1"}, "").hash(), plain) << name;
  }
  EXPECT_EQ(Knobs::parse({"TUTTI_DEBUG=TRACE", "TUTTI_NVTX=0"}, "").hash(), plain);
}

TEST(Knobs, SecretsAreNotPrinted) {
  const Knobs knobs = Knobs::parse({"TUTTI_SECRET=hunter2"}, "");
  EXPECT_EQ(knobs.text("TUTTI_SECRET"), "hunter2");
  EXPECT_EQ(knobs.display("TUTTI_SECRET"), "(set)");
  EXPECT_EQ(Knobs::parse({}, "").display("TUTTI_SECRET"), "");
  EXPECT_EQ(knobs.display("TUTTI_TIMEOUT_MS"), "600000");
}

TEST(Knobs, SecretsAreNotReadFromTheFile) {
  const Knobs knobs = Knobs::parse({}, "TUTTI_SECRET=hunter2\n");
  EXPECT_EQ(knobs.text("TUTTI_SECRET"), "");
  EXPECT_THAT(knobs.warnings(),
              ElementsAre(AllOf(HasSubstr("TUTTI_SECRET_FILE"), Not(HasSubstr("hunter2")))));
}

// In a fresh process each: what is read once per process is read there.
TEST(KnobsDeathTest, AProcessReportsEachWarningOnce) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        ::setenv("TUTTI_COFFEE", "1", 1);
        ::setenv("TUTTI_TIMEOUT_MS", "soon", 1);
        log(LogLevel::kWarn, "a line before anybody asked for a knob");
        Knobs::report();
        Knobs::report();
        ::_exit(Knobs::process().integer("TUTTI_TIMEOUT_MS") == 600000 ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      testing::ResultOf([](const std::string& text) { return std::ranges::count(text, '\n'); }, 3));
}

TEST(KnobsDeathTest, AFileOfSettingsThatIsMissingIsReported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        ::setenv("TUTTI_CONF_FILE", "/no/such/file", 1);
        Knobs::report();
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "TUTTI_CONF_FILE names '/no/such/file', which does not exist");
}

TEST(KnobsDeathTest, AProcessReadsItsFileOfSettings) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tutti_conf_" + std::to_string(::getpid())))
          .string();
  EXPECT_EXIT(
      {
        std::ofstream(path) << "TUTTI_TIMEOUT_MS = 1234\n";
        ::setenv("TUTTI_CONF_FILE", path.c_str(), 1);
        const bool right = Knobs::process().integer("TUTTI_TIMEOUT_MS") == 1234;
        std::filesystem::remove(path);
        ::_exit(right ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(KnobsDeathTest, AFileOfSettingsThatOthersCanWriteIsIgnored) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const auto path = std::filesystem::temp_directory_path() /
                          ("tutti_open_conf_" + std::to_string(::getpid()));
        std::ofstream(path) << "TUTTI_TIMEOUT_MS = 1234\n";
        std::filesystem::permissions(path, std::filesystem::perms::others_write,
                                     std::filesystem::perm_options::add);
        ::setenv("TUTTI_CONF_FILE", path.c_str(), 1);
        const bool right = Knobs::process().integer("TUTTI_TIMEOUT_MS") == 600000;
        Knobs::report();
        std::filesystem::remove(path);
        ::_exit(right ? 0 : 1);
      },
      testing::ExitedWithCode(0), "is ignored: others can write it");
}

}  // namespace
}  // namespace tutti
