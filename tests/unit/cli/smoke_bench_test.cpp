// Small benchmarks on the host backend, good and bad.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_tutti.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Bench, MeasuresEveryAlgorithmAndChecksIt) {
  const Ended ended =
      bench("all_reduce", {"--ranks", "2,3", "--bytes", "0,4,1000,64K", "--in-place"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("all_reduce, 3 ranks (processes), fp32 sum, backend host"));
  EXPECT_THAT(ended.out, HasSubstr("# time of each algorithm, in-place, us"));
  EXPECT_THAT(ended.out, HasSubstr("# Out of bounds values : 0 OK"));
  EXPECT_THAT(ended.out, HasSubstr("GB/s, memcpy of 64K by one thread"));
}

// Not only the algorithm: what a table says of blocks and chunks is measured.
TEST(Bench, MeasuresWhatAutoTakesAsAutoTakesIt) {
  const ScratchFolder folder;
  folder.write("table.json", R"({"schema": "tutti.tuning/1", "entries": [
    {"collective": "all_reduce", "backend": "host", "gpu": "", "ranks": 2, "min_bytes": 0,
     "max_bytes": 1048576, "algorithm": "all_reduce/two_shot", "blocks": 3, "threads": 0,
     "chunk_bytes": 4096, "time_us": 1, "runner_up": "", "runner_up_us": 0, "date": "2026-11-22",
     "driver": "", "samples": 1}]})");
  const Ended ended = run_tutti({"bench", "all_reduce", "--backend", "host", "-n", "3", "--bytes",
                                 "8K", "--format", "json", "--algorithms", "all"},
                                {"TUTTI_TUNING_FILE=" + (folder / "table.json")});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto rows = nlohmann::json::parse(ended.out).at("rows");
  int chosen = 0;
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("wrong"), 0) << row;
    const bool is_chosen = row.at("chosen");
    chosen += is_chosen ? 1 : 0;
    EXPECT_EQ(row.at("blocks"), is_chosen ? 3 : 1) << row;
    EXPECT_EQ(row.at("chunk_bytes"), is_chosen ? 4096 : 0) << row;
  }
  EXPECT_EQ(chosen, 1);
}

struct Variant {
  std::string name;
  std::vector<std::string> arguments;

  friend void PrintTo(const Variant& of, std::ostream* out) { *out << of.name; }
};

class BenchVariant : public testing::TestWithParam<Variant> {};

TEST_P(BenchVariant, GivesRightResults) {
  std::vector<std::string> arguments = GetParam().arguments;
  arguments.insert(arguments.end(), {"--format", "json"});
  const Ended ended = bench("all_reduce", arguments);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto rows = nlohmann::json::parse(ended.out).at("rows");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_EQ(row.at("time_us").at("n"), 3) << row;
    EXPECT_GE(row.at("copy_us"), 0) << row;
  }
}

const Variant kVariants[] = {
    {"threads", {"--launch", "threads", "--ranks", "4", "--bytes", "8K"}},
    {"one_rank", {"--ranks", "1", "--bytes", "8K"}},
    {"registered", {"--buffers", "registered", "--bytes", "8K"}},
    {"plain", {"--buffers", "plain", "--bytes", "8K"}},
    {"plain_in_place", {"--buffers", "plain", "--bytes", "8K", "--in-place"}},
    {"cold", {"--cache", "cold", "--bytes", "8K", "--algorithms", "one_shot,two_shot"}},
    {"chained_sum", {"--chained", "--ranks", "3", "--bytes", "8K", "-d", "bf16"}},
    {"chained_prod", {"--chained", "--op", "prod", "--ranks", "3", "--bytes", "8K", "-d", "int8"}},
    {"chained_average", {"--chained", "--op", "avg", "--ranks", "3", "--bytes", "8K"}},
    {"multiplied", {"--op", "premulsum", "--ranks", "4", "--bytes", "8K", "-d", "fp16"}},
    {"fp8", {"--ranks", "8", "--bytes", "8K", "-d", "fp8_e5m2"}},
    {"only_auto", {"--algorithms", "auto", "--bytes", "8K"}},
};
INSTANTIATE_TEST_SUITE_P(Host, BenchVariant, testing::ValuesIn(kVariants),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(Bench, MarksWhatAutoTakesOnce) {
  const Ended ended = bench("all_reduce", {"--bytes", "1K,1M", "--format", "json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  int chosen = 0;
  const auto rows = nlohmann::json::parse(ended.out).at("rows");
  for (const auto& row : rows) {
    chosen += row.at("chosen").get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(chosen, 2);
}

TEST(Bench, NamesAnAlgorithmThatCannotRunHere) {
  const Ended ended = bench("all_reduce", {"--algorithms", "one_shot,nccl", "--bytes", "1K"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, ContainsRegex("# 2 ranks: nccl: .*host"));
}

TEST(Bench, UncheckedIsNotRight) {
  const Ended ended = bench("all_reduce", {"--check", "off", "--bytes", "1K", "--format", "json"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_TRUE(nlohmann::json::parse(ended.out).at("rows").at(0).at("wrong").is_null());
}

TEST(Bench, AppendsToItsFile) {
  const ScratchFolder folder;
  const std::string file = folder / "all_reduce.json";
  const auto rows = [&] {
    return nlohmann::json::parse(folder.read("all_reduce.json")).at("rows");
  };
  const std::vector<std::string> two = {"--algorithms", "one_shot,two_shot", "--output", file};
  const auto run = [&](const std::string& bytes, bool append) {
    std::vector<std::string> words = two;
    words.insert(words.end(), {"--bytes", bytes});
    if (append) words.emplace_back("--append");
    return bench("all_reduce", words).exit_code;
  };
  ASSERT_EQ(run("1K,2K", true), 0);
  EXPECT_EQ(rows().size(), 4u);
  ASSERT_EQ(run("2K,4K", true), 0);
  EXPECT_EQ(rows().size(), 6u);
  ASSERT_EQ(run("2K", false), 0);
  EXPECT_EQ(rows().size(), 2u);
}

TEST(Bench, AppendsToNothingElse) {
  const ScratchFolder folder;
  folder.write("x.json", "mine");
  const Ended ended =
      bench("all_reduce", {"--bytes", "1K", "--output", folder / "x.json", "--append"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.out, IsEmpty());
  EXPECT_EQ(folder.read("x.json"), "mine");
}

// A bar for each operation of each rank, in order, one after the other.
void expect_bars(const nlohmann::json& events, int group, int rank) {
  double end = 0;
  std::uint64_t sequence = 0;
  for (const auto& event : events) {
    if (event.at("pid") != group || event.at("tid") != rank || event.at("ph") != "X") continue;
    EXPECT_GE(event.at("ts").get<double>(), end);
    end = event.at("ts").get<double>() + event.at("dur").get<double>();
    EXPECT_GT(event.at("args").at("sequence").get<std::uint64_t>(), sequence);
    sequence = event.at("args").at("sequence");
    EXPECT_THAT(event.at("name").get<std::string>(), HasSubstr("all_reduce/"));
    EXPECT_EQ(event.at("args").at("state"), "done");
  }
  EXPECT_GT(sequence, 0u) << "rank " << rank << " of group " << group;
}

TEST(Bench, WritesATraceOfEveryRank) {
  for (const char* launch : {"processes", "threads"}) {
    const ScratchFolder folder;
    const Ended ended = bench("all_reduce", {"--ranks", "2,3", "--bytes", "1K", "--launch", launch,
                                             "--trace", folder / "trace.json"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const auto trace = nlohmann::json::parse(folder.read("trace.json"));
    const auto& events = trace.at("traceEvents");
    expect_bars(events, 0, 1);
    expect_bars(events, 1, 0);
    expect_bars(events, 1, 2);
    EXPECT_EQ(std::count_if(events.begin(), events.end(),
                            [](const auto& event) { return event.at("ph") == "M"; }),
              2 + 2 + 3);
  }
}

TEST(Bench, PrintsACommandThatRepeatsARow) {
  const Ended ended = bench("all_reduce", {"--bytes", "1K", "--algorithms", "two_shot", "--repro"});
  const std::size_t at = ended.out.find("tutti bench ");
  ASSERT_NE(at, std::string::npos) << ended.out;
  std::vector<std::string> words;
  std::istringstream line(ended.out.substr(at, ended.out.find('\n', at) - at));
  for (std::string word; line >> word;) words.push_back(word);
  words.erase(words.begin());
  const Ended again = run_tutti(words);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("two_shot"));
}

// As torchrun would start them: two processes with the variables of a rank each, which measure
// together. The first one prints, and both know of a wrong result.
TEST(Bench, JoinsALaunch) {
  const auto rank = [](const char* number) {
    return std::vector<std::string>{
        std::string("RANK=") + number, std::string("LOCAL_RANK=") + number, "WORLD_SIZE=2",
        "MASTER_ADDR=localhost", "MASTER_PORT=" + std::to_string(::getpid())};
  };
  const std::vector<std::string> words = {"bench", "all_reduce", "--backend", "host",  "-n",
                                          "3",     "-b",         "1K",        "-e",    "2K",
                                          "-g",    "2",          "--inject",  "flip:1"};
  Ended second;
  const Ended first =
      run_tutti(words, rank("0"), [&](pid_t) { second = run_tutti(words, rank("1")); });
  EXPECT_EQ(first.exit_code, 1) << first.err;
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.out + second.err, IsEmpty());
  EXPECT_THAT(first.out, ContainsRegex("\n      2048        512 fp32   sum .*  2  "));
  EXPECT_THAT(first.out, HasSubstr("# Out of bounds values : 4 FAILED\n"));
  EXPECT_THAT(first.err, HasSubstr("WRONG RESULT with 2 ranks, 2048 bytes"));
}

// A rank that ends at the second size leaves the row of the first one.
TEST(Bench, KeepsTheRowsBeforeAFailure) {
  const Ended ended = bench(
      "all_reduce", {"--bytes", "1K,1M", "--algorithms", "auto", "--inject", "crash:1:two_shot"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, HasSubstr("\n      1024        256 fp32   sum"));
  EXPECT_THAT(ended.out, Not(HasSubstr("\n   1048576")));
  EXPECT_THAT(ended.err, HasSubstr("rank 1: ended by signal 9 (Killed)"));
}

// Negative controls: each defect is made on purpose and must be found.

TEST(Bench, FindsAWrongElement) {
  const ScratchFolder folder;
  const Ended ended = bench("all_reduce", {"--ranks", "3", "--bytes", "1K", "--inject", "flip:1",
                                           "--output", folder / "x.json"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("WRONG RESULT with 3 ranks, 1024 bytes, one_shot: 2 elements, "
                                   "first rank 1, element 0 of 256"));
  const auto rows = nlohmann::json::parse(folder.read("x.json")).at("rows");
  EXPECT_EQ(rows.at(0).at("wrong"), 2);
}

TEST(Bench, FindsAWrongElementAmongThreads) {
  const Ended ended =
      bench("all_reduce", {"--launch", "threads", "--bytes", "1K", "--inject", "flip:0"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("WRONG RESULT"));
}

TEST(Bench, NamesARankThatCrashes) {
  const ScratchFolder folder;
  const Ended ended = bench("all_reduce", {"--ranks", "3", "--bytes", "1K", "--inject", "crash:1",
                                           "--output", folder / "x.json"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("rank 1: ended by signal 9 (Killed)"));
  EXPECT_EQ(folder.files(), 0u);
}

// The deadline that ends the wait for it is that of the set-up, too: a longer one where that is
// slow.
TEST(Bench, EndsThoughARankHangsAndTracesWhatFailed) {
  const ScratchFolder folder;
  Ended ended;
  for (const char* timeout_ms : {"1000", "10000", "100000"}) {
    ended = bench("all_reduce", {"--ranks", "2", "--bytes", "1K", "--inject", "hang:0",
                                 "--timeout-ms", timeout_ms, "--trace", folder / "trace.json"});
    if (ended.err.find("rank 1: timeout: all_reduce/") != std::string::npos) break;
  }
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("rank 1: timeout: "), HasSubstr(" ms from --timeout-ms")));
  EXPECT_THAT(ended.err, HasSubstr("rank 0: did not end after another rank failed; killed"));
  EXPECT_THAT(ended.err, Not(HasSubstr("WRONG")));
  const auto trace = nlohmann::json::parse(folder.read("trace.json"));
  bool failed = false;
  for (const auto& event : trace.at("traceEvents")) failed |= event.value("cat", "") == "failed";
  EXPECT_TRUE(failed);
}

}  // namespace
}  // namespace tutti::cli
