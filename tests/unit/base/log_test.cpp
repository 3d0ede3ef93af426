#include "base/log.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>
#include <vector>

#include "base/host_name.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// Logs to a file of its own, and to stderr again afterwards.
class LogTest : public testing::Test {
 protected:
  LogTest()
      : path_(std::filesystem::temp_directory_path() /
              ("tutti_log_test_" + std::to_string(::getpid()))) {
    std::filesystem::remove(path_);
    log_configure(LogLevel::kInfo, path_.string());
  }
  ~LogTest() override {
    log_configure(LogLevel::kWarn, "");
    set_log_rank(-1);
    std::filesystem::remove(path_);
  }

  std::vector<std::string> lines() const {
    std::ifstream file(path_);
    std::vector<std::string> result;
    for (std::string line; std::getline(file, line);) result.push_back(line);
    return result;
  }

  std::filesystem::path path_;
};

TEST_F(LogTest, LineHasTimeHostPidRankAndLevel) {
  set_log_rank(3);
  log(LogLevel::kWarn, "{} of {}", 1, 2);
  set_log_rank(-1);
  log(LogLevel::kInfo, "no rank");
  const auto written = lines();
  ASSERT_THAT(written, SizeIs(2));
  const std::string who = host_name() + ":" + std::to_string(::getpid());
  EXPECT_TRUE(std::regex_match(
      written[0], std::regex(R"(tutti \d\d:\d\d:\d\d\.\d\d\d )" + who + " rank 3 WARN 1 of 2")))
      << written[0];
  EXPECT_THAT(written[1], HasSubstr(who + " INFO no rank"));
}

TEST_F(LogTest, LevelsBelowTheChosenOneAreLeftOut) {
  log(LogLevel::kTrace, "not this");
  EXPECT_FALSE(log_enabled(LogLevel::kTrace));
  EXPECT_TRUE(log_enabled(LogLevel::kInfo));
  log_configure(LogLevel::kOff, path_.string());
  log(LogLevel::kWarn, "nor this");
  log_once(LogLevel::kWarn, "nor this one");
  EXPECT_THAT(lines(), SizeIs(0));
  log_configure(LogLevel::kWarn, path_.string());
  log(LogLevel::kInfo, "nor this");
  log(LogLevel::kWarn, "this");
  EXPECT_THAT(lines(), SizeIs(1));
}

TEST_F(LogTest, OneTextIsOneLine) {
  log(LogLevel::kWarn, "a\nb\x1b[31m");
  const auto written = lines();
  ASSERT_THAT(written, SizeIs(1));
  EXPECT_THAT(written[0], HasSubstr("WARN a\\nb\\x1b[31m"));
}

// Else the first line would wait for whoever reads it.
TEST_F(LogTest, AFifoThatNobodyReadsIsRefused) {
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  testing::internal::CaptureStderr();
  log_configure(LogLevel::kWarn, path_.string());
  log(LogLevel::kWarn, "still heard");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("cannot open"), HasSubstr("WARN still heard")));
}

TEST_F(LogTest, OncePerText) {
  for (int i = 0; i < 3; ++i) log_once(LogLevel::kWarn, "falls back to staging");
  log_once(LogLevel::kWarn, "another");
  EXPECT_THAT(lines(), SizeIs(2));
}

TEST_F(LogTest, LinesOfSeveralThreadsDoNotMix) {
  constexpr int kThreads = 4, kLines = 200;
  const std::string text(300, 'x');
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int rank = 0; rank < kThreads; ++rank) {
    threads.emplace_back([&text, rank] {
      set_log_rank(rank);
      for (int i = 0; i < kLines; ++i) log(LogLevel::kInfo, "{}|end", text);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto written = lines();
  ASSERT_THAT(written, SizeIs(kThreads * kLines));
  std::vector<int> per_rank(kThreads);
  const std::regex pattern("tutti .* rank ([0-3]) INFO x{300}\\|end");
  for (const std::string& line : written) {
    std::smatch match;
    ASSERT_TRUE(std::regex_match(line, match, pattern)) << line;
    ++per_rank[static_cast<std::size_t>(std::stoi(match[1]))];
  }
  EXPECT_THAT(per_rank, testing::Each(kLines));
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsReportedAndStderrIsUsed) {
  testing::internal::CaptureStderr();
  log_configure(LogLevel::kWarn, "/no/such/folder/log");
  log(LogLevel::kWarn, "still heard");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("cannot open '/no/such/folder/log'"));
  EXPECT_THAT(text, HasSubstr("WARN still heard"));
}

TEST(LogFile, NameHoldsHostAndPid) {
  EXPECT_EQ(expand_log_file("/tmp/a.%h.%p.log", "node7", 42), "/tmp/a.node7.42.log");
  EXPECT_EQ(expand_log_file("%p%p", "h", 1), "11");
  EXPECT_EQ(expand_log_file("100%%", "h", 1), "100%");
  EXPECT_EQ(expand_log_file("%%h", "h", 1), "%h");
  EXPECT_EQ(expand_log_file("%x%", "h", 1), "%x%");
}

}  // namespace
}  // namespace tutti
