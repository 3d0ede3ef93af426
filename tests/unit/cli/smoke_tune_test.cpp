// Small sweeps on the host backend, good and bad.
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <thread>

#include "run_tutti.hpp"
#include "scratch_folder.hpp"
#include "support/patience.hpp"
#include "tune/table_file.hpp"

namespace tutti::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Ne;
using testing::Not;

constexpr const char* kOneShot = "all_reduce/one_shot";

class TuneTest : public testing::Test {
 protected:
  Ended tune(std::vector<std::string> arguments, std::vector<std::string> environment = {},
             const std::function<void(pid_t)>& meanwhile = {}) {
    // Where ranks wait for their turn on a core, it is fewer samples and not more time.
    arguments.insert(arguments.begin(), {"tune", "--backend", "host", "--seconds", "2"});
    return run_tutti(arguments, with_cache(std::move(environment)), meanwhile);
  }
  std::vector<std::string> with_cache(std::vector<std::string> environment = {}) const {
    environment.push_back("TUTTI_TUNING_CACHE=" + file_);
    return environment;
  }
  std::vector<TuningEntry> table() const {
    const auto entries = read_table(file_);
    EXPECT_TRUE(entries.is_ok()) << entries.status().to_string();
    return entries.is_ok() ? entries->collectives : std::vector<TuningEntry>{};
  }

  ScratchFolder folder_;
  std::string file_ = folder_ / "tutti/tuning.json";
};

auto range(std::size_t min_bytes, std::size_t max_bytes) {
  return AllOf(Field(&TuningEntry::min_bytes, min_bytes),
               Field(&TuningEntry::max_bytes, max_bytes));
}

TEST_F(TuneTest, WritesWhatExplainThenSays) {
  const Ended ended = tune({"--ranks", "2,3", "--bytes", "1K,4K"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("numbers of ranks: 2, sizes: 4, candidates: 38; about "));
  EXPECT_THAT(ended.out, HasSubstr("tuning.json: 4 sizes measured"));
  EXPECT_THAT(table(),
              ElementsAre(range(0, 1024), range(1025, 4096), range(0, 1024), range(1025, 4096)));
  for (const TuningEntry& entry : table()) {
    EXPECT_GT(entry.time_us, 0);
    EXPECT_GE(entry.samples, 1);
    EXPECT_EQ(entry.date.size(), std::string("2026-11-22").size());
    EXPECT_THAT(entry.runner_up, AllOf(Not(IsEmpty()), Ne(entry.algorithm)));
  }
  for (const char* bytes : {"4", "3K"}) {
    const Ended explained = run_tutti(
        {"explain", "all_reduce", "--backend", "host", "--ranks", "3", "--bytes", bytes, "--json"},
        with_cache());
    ASSERT_EQ(explained.exit_code, 0) << explained.err;
    const auto plan = nlohmann::json::parse(explained.out).at("plan");
    EXPECT_EQ(plan.at("source"), "user_cache");
    EXPECT_EQ(plan.at("algorithm"), table()[bytes[0] == '4' ? 2 : 3].algorithm);
  }
}

// Each collective has entries of its own beside the others', and explain names them.
TEST_F(TuneTest, TunesAnyCollective) {
  ASSERT_EQ(tune({"--bytes", "1K"}).exit_code, 0);
  for (const char* collective :
       {"all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter",
        "send_recv", "all_gather_v", "reduce_scatter_v", "all_to_all_v"}) {
    const auto before = table();
    const Ended ended = tune({collective, "--ranks", "3", "--bytes", "1K,8K"});
    ASSERT_EQ(ended.exit_code, 0) << collective << ": " << ended.err;
    ASSERT_EQ(table().size(), before.size() + 2) << collective;
    for (const TuningEntry& entry : before) EXPECT_THAT(table(), testing::Contains(entry));
    const Ended explained = run_tutti(
        {"explain", collective, "--backend", "host", "--ranks", "3", "--bytes", "3K", "--json"},
        with_cache());
    ASSERT_EQ(explained.exit_code, 0) << explained.err;
    const auto plan = nlohmann::json::parse(explained.out).at("plan");
    EXPECT_EQ(plan.at("source"), "user_cache") << collective;
    EXPECT_THAT(std::string(plan.at("algorithm")), testing::StartsWith(collective));
  }
}

TEST_F(TuneTest, TunesPlainBuffersBesideSymmetricOnes) {
  for (const char* buffers : {"symmetric", "plain"}) {
    const Ended ended = tune({"all_gather", "--bytes", "8K", "--buffers", buffers});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
  }
  EXPECT_THAT(table(),
              ElementsAre(Field(&TuningEntry::plain, false), Field(&TuningEntry::plain, true)));
}

TEST_F(TuneTest, TunesByTokensWhatHasTokens) {
  const Ended ended = tune({"all_reduce_residual_rms_norm", "--rows", "1,4", "--hidden", "1024"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(table(), ElementsAre(range(0, 4096), range(4097, 16384)));
}

TEST_F(TuneTest, ChoosesNothingThatIsWrongOfOtherCollectives) {
  const Ended ended = tune({"all_gather", "--ranks", "3", "--bytes", "768", "--algorithms",
                            "push,one_shot_push", "--inject", "flip:1:push"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("# WRONG RESULT with 3 ranks, 768"));
  ASSERT_EQ(table().size(), 1u);
  EXPECT_EQ(table()[0].algorithm, "all_gather/one_shot_push");
}

TEST_F(TuneTest, RunsRanksAsThreads) {
  const Ended ended =
      tune({"--launch", "threads", "--bytes", "1K", "--output", folder_ / "x.json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(folder_.files(), 1u);
}

TEST_F(TuneTest, ResumesBehindWhatTheTableHas) {
  TuningEntry h200;
  h200.gpu = "NVIDIA H200";
  h200.ranks = 2;
  h200.max_bytes = 1024;
  h200.algorithm = "all_reduce/of_another_build";
  h200.date = h200.driver = "x";
  h200.samples = 1;
  folder_.write("tutti/tuning.json", write_tuning_json({{h200}}));
  ASSERT_EQ(tune({"--bytes", "1K,4K"}).exit_code, 0);
  const auto before = table();
  const Ended ended = tune({"--ranks", "2,3", "--bytes", "1K,2K,4K", "--resume"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("sizes: 4,"));
  const auto after = table();
  EXPECT_THAT(after, ElementsAre(h200, before.at(1), range(1025, 2048), range(2049, 4096),
                                 range(0, 1024), range(1025, 2048), range(2049, 4096)));
  EXPECT_EQ(after.at(3).time_us, before.at(2).time_us);
  EXPECT_THAT(tune({"--ranks", "2,3", "--bytes", "1K,2K,4K", "--resume"}).out,
              HasSubstr("0 sizes measured"));
  EXPECT_EQ(table(), after);
}

// 16K does not fit into the packets of the row that hangs: the first size is finished, the second
// one never.
TEST_F(TuneTest, KeepsFinishedSizesWhenItIsInterrupted) {
  const auto interrupt = [this](pid_t pid) {
    const auto end = std::chrono::steady_clock::now() + test::kPatience;
    while (!std::filesystem::exists(file_) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(pid, SIGINT);
  };
  const Ended ended = tune({"--bytes", "16K,1K", "--algorithms", "two_shot,one_shot_push",
                            "--inject", "hang:1:one_shot_push"},
                           {"TUTTI_PACKET_BYTES=8K"}, interrupt);
  EXPECT_EQ(ended.exit_code, 128 + SIGINT);
  EXPECT_THAT(ended.err, HasSubstr("# interrupted; --resume goes on"));
  EXPECT_THAT(table(), ElementsAre(range(1025, 16384)));
  ASSERT_EQ(tune({"--bytes", "16K,1K", "--resume"}).exit_code, 0);
  EXPECT_THAT(table(), ElementsAre(range(0, 1024), range(1025, 16384)));
}

TEST_F(TuneTest, TunesAllGatherMatmulBesideCollectives) {
  ASSERT_EQ(tune({"--bytes", "1K"}).exit_code, 0);
  const auto tune_sizes = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {
        "tune", "all_gather_matmul", "--backend", "host", "-n", "5", "--n", "48", "--k", "64"};
    words.insert(words.end(), more.begin(), more.end());
    return run_tutti(words, with_cache());
  };
  const Ended ended = tune_sizes({"--m", "64,200", "--ranks", "2,3"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("tuning.json: 4 sizes measured"));
  EXPECT_THAT(ended.err, Not(HasSubstr("# 2 ranks: "))) << "every algorithm runs";
  EXPECT_EQ(table().size(), 1u) << "the collective's entry stays";
  const auto entries = read_table(file_)->all_gather_matmul;
  ASSERT_EQ(entries.size(), 4u);
  const Ended explained =
      run_tutti({"explain", "all_gather_matmul", "--backend", "host", "--ranks", "3", "--m", "190",
                 "--n", "48", "--k", "64", "--dtype", "fp32", "--format", "json"},
                with_cache());
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  const auto chosen = nlohmann::json::parse(explained.out).at("auto");
  EXPECT_EQ(chosen.at("source"), "user_cache");
  EXPECT_EQ(chosen.at("algorithm"), to_string(entries[3].way.algorithm));
  EXPECT_EQ(chosen.at("measured").at("unfused_us"), entries[3].unfused_us);

  const Ended wrong = tune_sizes(
      {"--m", "64,128", "--resume", "--launch", "threads", "--inject", "flip:1:pipelined_ring"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("# WRONG RESULT with 2 ranks, 128x48x64, pipelined_ring, get, 4 "
                                   "streams: rank 1, elements wrong: 1"));
  EXPECT_THAT(wrong.out, HasSubstr("1 sizes measured"));
  const auto last = read_table(file_)->all_gather_matmul.back();
  EXPECT_NE(last.way.algorithm, AllGatherMatmulAlgorithm::kPipelinedRing);
  EXPECT_NE(last.runner_up, AllGatherMatmulAlgorithm::kPipelinedRing);
}

// Negative controls: each defect is made on purpose, and never becomes a choice.

TEST_F(TuneTest, ChoosesNothingThatIsWrong) {
  for (const char* wrong : {"one_shot", "two_shot"}) {
    const Ended ended = tune({"--ranks", "3", "--bytes", "1K", "--algorithms", "one_shot,two_shot",
                              "--inject", std::string("flip:1:") + wrong});
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_THAT(ended.err, HasSubstr(std::string("# WRONG RESULT with 3 ranks, 1K, ") + wrong +
                                     ": elements wrong: 1, first rank 1, element 0 of 256"));
    ASSERT_EQ(table().size(), 1u);
    EXPECT_NE(table()[0].algorithm, std::string("all_reduce/") + wrong);
    EXPECT_THAT(table()[0].runner_up, IsEmpty());
  }
}

TEST_F(TuneTest, ChoosesNothingThatIsEmulated) {
  const Ended ended = tune({"--bytes", "1K", "--algorithms", "multicast_two_shot,one_shot"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("multicast_two_shot: is emulated here"));
  ASSERT_EQ(table().size(), 1u);
  EXPECT_EQ(table()[0].algorithm, kOneShot);
  EXPECT_THAT(table()[0].runner_up, IsEmpty());
}

TEST_F(TuneTest, WritesNothingWhereAllIsWrong) {
  const Ended ended = tune({"--bytes", "1K", "--inject", "flip:0"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("# 2 ranks, 1K: no candidate is left"));
  EXPECT_THAT(table(), IsEmpty());
}

TEST_F(TuneTest, GoesOnWithoutWhatCrashes) {
  const Ended ended = tune({"--ranks", "2,3", "--bytes", "1K", "--inject", "crash:1:one_shot"});
  EXPECT_EQ(ended.exit_code, 1);
  // Who is heard of first, the one that has died or the one that misses it, is open.
  EXPECT_THAT(ended.err, HasSubstr("# FAILED with 2 ranks, 1K, one_shot, which is left out: "));
  EXPECT_THAT(ended.err, HasSubstr("rank 1: ended by signal 9"));
  EXPECT_THAT(ended.err, Not(HasSubstr("FAILED with 3 ranks")));  // left out from then on
  ASSERT_EQ(table().size(), 2u);
  for (const TuningEntry& entry : table()) EXPECT_NE(entry.algorithm, kOneShot);
}

TEST_F(TuneTest, GivesUpWhereEverythingCrashes) {
  const Ended ended = tune({"--bytes", "1K", "--inject", "crash:0"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(table(), IsEmpty());
}

TEST_F(TuneTest, LeavesABrokenTableAsItIs) {
  folder_.write("tutti/tuning.json", "mine");
  EXPECT_EQ(tune({"--bytes", "1K"}).exit_code, 2);
  EXPECT_EQ(folder_.read("tutti/tuning.json"), "mine");
}

}  // namespace
}  // namespace tutti::cli
