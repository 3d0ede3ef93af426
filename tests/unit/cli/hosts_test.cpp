// Parts of `tutti run --hosts`.
#include "run/hosts.hpp"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "run/command.hpp"
#include "run/environment.hpp"
#include "run/options.hpp"
#include "run/wire.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Hosts, HaveNamesUsersAndNumbers) {
  EXPECT_THAT(*parse_hosts("a:4,me@b.example:2,[::1]:3,me@[fe80::1%eth0],c"),
              ElementsAre(HostRanks{"a", "a", 4}, HostRanks{"me@b.example", "b.example", 2},
                          HostRanks{"::1", "::1", 3},
                          HostRanks{"me@fe80::1%eth0", "fe80::1%eth0", 1}, HostRanks{"c", "c", 1}));
}

TEST(Hosts, ThatCannotBeMeantAreRefused) {
  const auto why = [](const std::string& text) {
    return std::string(parse_hosts(text).status().message());
  };
  EXPECT_EQ(why("a:2,a:2"), "--hosts names 'a' twice; give it once, with all of its ranks");
  EXPECT_THAT(why("a:2,me@a"), HasSubstr("'a' twice"));
  for (const char* const empty : {"", "a,", ",a", "a,,b"}) {
    EXPECT_THAT(why(empty), HasSubstr("has an empty host")) << empty;
  }
  for (const char* const number : {"a:0", "a:-1", "a:", "a:x", "a:1025", "[::1]:0"}) {
    EXPECT_THAT(why(number), HasSubstr("the number of ranks of host")) << number;
  }
  for (const char* const name : {":2", "me@:2", "-oProxyCommand=x", "a b", "a;b", "@a", "-l@a",
                                 "::1", "[::1", "[]:2", "[::1]2"}) {
    EXPECT_THAT(why(name), HasSubstr("names no host")) << name;
  }
  EXPECT_THAT(why("a:600,b:600"), HasSubstr("1200 ranks; at most 1024"));
}

TEST(Hosts, RootHasAnAddressAndMaybeAPort) {
  EXPECT_EQ(*parse_root("node0"), (RootAddress{"node0", 0}));
  EXPECT_EQ(*parse_root("10.0.0.1:4455"), (RootAddress{"10.0.0.1", 4455}));
  EXPECT_EQ(*parse_root("[::1]:4455"), (RootAddress{"::1", 4455}));
  EXPECT_EQ(*parse_root("::1"), (RootAddress{"::1", 0}));
  EXPECT_EQ(to_text(RootAddress{"::1", 4455}), "[::1]:4455");
  EXPECT_EQ(to_text(RootAddress{"node0", 1}), "node0:1");
  for (const char* const bad : {"", ":1", "node0:0", "node0:65536", "a b"}) {
    EXPECT_FALSE(parse_root(bad).is_ok()) << bad;
  }
}

TEST(Hosts, OptionsThatContradictEachOtherAreRefused) {
  const auto why = [](const RunArguments& arguments) {
    return std::string(check_run_arguments(arguments).status().message());
  };
  const std::vector<std::string> program = {"true"};
  const HostsArguments two = {.hosts = "a:2,b:2", .ssh = "sh -c"};
  EXPECT_THAT(why({.ranks = "3", .program = program, .on = two}),
              HasSubstr("-n says 3 ranks, and --hosts 4"));
  EXPECT_EQ(check_run_arguments({.ranks = "4", .program = program, .on = two})->ranks, 4);
  EXPECT_EQ(check_run_arguments({.program = program, .on = two})->hosts->root.address, "a");
  EXPECT_THAT(why({.ranks = "2", .program = program, .on = {.folder = "/"}}),
              HasSubstr("need --hosts"));
  EXPECT_THAT(why({.program = program, .on = {.hosts = "a", .ssh = "no-such-ssh"}}),
              HasSubstr("--hosts needs ssh: there is no program 'no-such-ssh' in PATH"));
  EXPECT_THAT(why({.program = program,
                   .on = {.hosts = "a", .ssh = "sh", .environment = {"NO_SUCH_VARIABLE"}}}),
              HasSubstr("give NO_SUCH_VARIABLE=VALUE"));
  EXPECT_THAT(why({.on = two}), HasSubstr("which program?"));
}

TEST(Hosts, GetSettingsButNotThoseOfTheLauncher) {
  EXPECT_THAT(
      settings_to_pass({"TUTTI_DEBUG=INFO", "TUTTI_RANK=1", "TUTTI_SECRET=s", "TUTTI_SECRET_FILE=f",
                        "TUTTI_ROOT=r", "TUTTI_SSH=ssh", "A=1", "AB=2", "HOME=/"},
                       {"A", "C=3", "TUTTI_DEBUG=WARN"}),
      ElementsAre("A=1", "C=3", "TUTTI_DEBUG=WARN"));
}

TEST(Hosts, CommandOfABenchHasNoneOfTheirOptions) {
  EXPECT_THAT(without_hosts_options({"bench", "--hosts", "a:2", "all_reduce", "--env=A=1", "--env",
                                     "B", "--ssh", "ssh -v", "--remote-tutti=x", "--bytes", "1K"}),
              ElementsAre("bench", "all_reduce", "--bytes", "1K"));
}

StartRanks some_order() {
  return {.first = {.rank = 2, .ranks = 6, .local_ranks = 4, .master = "node0", .port = 4000},
          .settings = {"A=1", ""},
          .folder = "/tmp",
          .program = "p",
          .arguments = {"-x", std::string("\0\n", 2)},
          .grace_seconds = 5,
          .bind = true,
          .input = false};
}

TEST(AgentWire, MessagesArriveAsTheyWereSent) {
  const auto order = decode_to_agent(encode(ToAgent(some_order())));
  ASSERT_TRUE(order.is_ok());
  const auto& start = std::get<StartRanks>(*order);
  EXPECT_EQ(encode(ToAgent(start)), encode(ToAgent(some_order())));
  EXPECT_EQ(start.first.rank, 2);
  EXPECT_EQ(start.first.port, 4000);
  EXPECT_EQ(start.arguments, some_order().arguments);
  EXPECT_TRUE(start.bind);
  EXPECT_EQ(std::get<SignalRanks>(*decode_to_agent(encode(SignalRanks{SIGTERM}))).number, SIGTERM);
  EXPECT_EQ(std::get<RankInput>(*decode_to_agent(encode(RankInput{"in"}))).bytes, "in");
  EXPECT_EQ(std::get<AgentReady>(*decode_from_agent(encode(AgentReady{1, 2}))).root_port, 2);
  EXPECT_EQ(std::get<AgentFailed>(*decode_from_agent(encode(AgentFailed{"why"}))).why, "why");
  EXPECT_EQ(std::get<RankPrinted>(*decode_from_agent(encode(RankPrinted{1, 1, "x"}))).bytes, "x");
  EXPECT_EQ(std::get<RankEnded>(*decode_from_agent(encode(RankEnded{3, 256}))).wait_status, 256);
  EXPECT_TRUE(std::holds_alternative<InputWanted>(*decode_from_agent(encode(InputWanted{}))));
}

TEST(AgentWire, WhatIsCutOrTooLongIsRefused) {
  const std::string whole = encode(ToAgent(some_order()));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(decode_to_agent(whole.substr(0, length)).is_ok()) << length;
  }
  EXPECT_FALSE(decode_to_agent(whole + "x").is_ok());
  // Whatever a length claims: each four bytes are one.
  for (std::size_t at = 0; at + 4 <= whole.size(); ++at) {
    for (const char* const claim : {"\xff\xff\xff\x7f", "\xff\xff\xff\xff", "\x00\x00\x00\x80"}) {
      std::string forged = whole;
      forged.replace(at, 4, claim, 4);
      (void)decode_to_agent(forged);  // ends, and reads nothing beyond its end
    }
  }
}

TEST(AgentWire, NumbersOutOfTheirRangesAreRefused) {
  const auto refused = [](auto change) {
    StartRanks order = some_order();
    change(order);
    return !decode_to_agent(encode(ToAgent(order))).is_ok();
  };
  EXPECT_FALSE(refused([](StartRanks&) {}));
  EXPECT_TRUE(refused([](StartRanks& o) { o.first.rank = -1; }));
  EXPECT_TRUE(refused([](StartRanks& o) { o.first.rank = 3; }));
  EXPECT_TRUE(refused([](StartRanks& o) { o.first.ranks = 1025; }));
  EXPECT_TRUE(refused([](StartRanks& o) { o.first.local_ranks = 0; }));
  EXPECT_TRUE(refused([](StartRanks& o) { o.first.local_rank = 1; }));
  EXPECT_TRUE(refused([](StartRanks& o) { o.first.port = 65536; }));
  EXPECT_TRUE(refused([](StartRanks& o) { o.grace_seconds = -1; }));
  EXPECT_FALSE(decode_to_agent(encode(SignalRanks{SIGSTOP})).is_ok());
  EXPECT_FALSE(decode_from_agent(encode(AgentReady{0, 1})).is_ok());
  EXPECT_FALSE(decode_from_agent(encode(RankPrinted{0, 2, ""})).is_ok());
  EXPECT_FALSE(decode_from_agent(encode(RankPrinted{-1, 0, ""})).is_ok());
  EXPECT_FALSE(decode_from_agent(encode(RankEnded{0, 1 << 16})).is_ok());
  EXPECT_FALSE(decode_from_agent(encode(RankEnded{0, 0x7f})).is_ok());  // stopped, not ended
  EXPECT_FALSE(decode_from_agent("").is_ok());
  EXPECT_FALSE(decode_from_agent(std::string("\x09\0\0\0", 4)).is_ok());
}

}  // namespace
}  // namespace tutti::cli
