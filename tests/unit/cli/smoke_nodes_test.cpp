// `tutti` where ranks are on several nodes: each rank of this host is one, joined by its loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "drivers/network.hpp"
#include "run_tutti.hpp"

namespace tutti::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Nodes : public testing::Test {
 protected:
  static Ended run(const std::vector<std::string>& words, const std::string& interface = "=lo") {
    return run_tutti(words, {"TUTTI_TOPOLOGY=nolocal", "TUTTI_SOCKET_IFNAME=" + interface});
  }
  static std::vector<std::string> bench(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"bench",   "all_reduce", "--backend", "host", "--ranks", "2",
                                      "--bytes", "8K",         "-n",        "3",    "-w",      "0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

class NodesOverUcx : public Nodes {
  void SetUp() override {
    if (const Status usable = real_network()->usable(true); !usable.is_ok()) {
      GTEST_SKIP() << usable.message();
    }
  }
};

TEST_F(NodesOverUcx, AreMeasuredOnPlainBuffersUnlessOthersAreNamed) {
  const Ended ended = run(bench({"--algorithms", "all"}));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr(", plain buffers"), HasSubstr("network_ring"),
                    HasSubstr("# 2 ranks: buffers are plain, since this group has no symmetric"),
                    HasSubstr("one_shot, two_shot and 8 more: needs access to the memory of all "
                              "ranks, which are on 2 nodes"),
                    Not(HasSubstr("n/a  "))));
  const Ended named = run(bench({"--buffers", "symmetric"}));
  EXPECT_EQ(named.exit_code, 1);
  EXPECT_THAT(named.err, HasSubstr("--buffers symmetric: there is no symmetric memory: ranks are "
                                   "on 2 nodes; --buffers plain needs none"));
}

TEST_F(NodesOverUcx, KeepThatBuffersArePlain) {
  const Ended ended = run(bench({"--format", "json"}));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  for (const auto& row : nlohmann::json::parse(ended.out).at("rows")) {
    EXPECT_EQ(row.at("buffers"), "plain");
    EXPECT_EQ(row.at("wrong"), 0);
  }
}

TEST_F(NodesOverUcx, NameAnInterfaceThatIsNotThere) {
  const Ended ended = run(bench({}), "=none9");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("TUTTI_SOCKET_IFNAME==none9 names no interface that is up"));
}

TEST_F(Nodes, AreNotTuned) {
  const Ended ended = run({"tune", "all_reduce", "--backend", "host", "--ranks", "2", "--bytes",
                           "8K", "--output", testing::TempDir() + "tutti_nodes.json"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("a table is of the ranks of one node, and these are on 2"));
}

TEST_F(Nodes, AreExplained) {
  const Ended described = run({"explain", "all_reduce", "--gpu", "h100", "--ranks", "2x8"});
  EXPECT_THAT(described.out, AllOf(HasSubstr("2 hosts, 2 nodes of 8 ranks"), HasSubstr("network"),
                                   Not(HasSubstr("There is no network"))));
  const Ended refused = run({"explain", "all_reduce", "--buffers", "symmetric", "--ranks", "2"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("have no symmetric memory"));
}

}  // namespace
}  // namespace tutti::cli
