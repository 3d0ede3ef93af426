#include "topology/nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The nodes of ranks whose hosts are numbered so.
std::vector<int> nodes_of(std::string_view setting, const std::vector<std::uint64_t>& hosts) {
  const NodeLayout layout = parse_node_layout(setting).value();
  std::vector<std::uint64_t> keys;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    keys.push_back(
        node_key(layout, hosts[rank], static_cast<int>(rank), static_cast<int>(hosts.size()))
            .value());
  }
  return number_nodes(keys);
}

TEST(Nodes, AreHostsUnlessSomethingElseIsSaid) {
  EXPECT_THAT(nodes_of("system", {7}), IsEmpty());
  EXPECT_THAT(nodes_of("system", {7, 7, 7}), IsEmpty());
  EXPECT_THAT(nodes_of("system", {7, 5, 7, 6}), ElementsAre(0, 1, 0, 2));
}

TEST(Nodes, NoLocalMakesEachRankANode) {
  EXPECT_THAT(nodes_of("nolocal", {7, 7, 7}), ElementsAre(0, 1, 2));
  EXPECT_THAT(nodes_of("nolocal", {7}), IsEmpty());
}

TEST(Nodes, VnodeDividesConsecutiveRanksEqually) {
  EXPECT_THAT(nodes_of("vnode:2", {7, 7, 7, 7}), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(nodes_of("vnode:3", {7, 7, 7, 7, 7, 7}), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(nodes_of("vnode:1", {7, 7}), IsEmpty());
}

// What is on two hosts stays there.
TEST(Nodes, VnodeJoinsNoHosts) {
  EXPECT_THAT(nodes_of("vnode:1", {7, 7, 5, 5}), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(nodes_of("vnode:2", {7, 5, 7, 5}), ElementsAre(0, 1, 2, 3));
}

TEST(Nodes, RanksThatCannotBeDividedSoAreRefused) {
  for (const int ranks : {1, 2, 4, 5}) {
    const auto key = node_key(parse_node_layout("vnode:3").value(), 7, 0, ranks);
    EXPECT_EQ(key.status().code(), StatusCode::kInvalidArgument) << ranks;
    EXPECT_THAT(key.status().message(),
                AllOf(HasSubstr("vnode:3"), HasSubstr(std::to_string(ranks) + " ranks")));
  }
}

TEST(Nodes, OtherLayoutsAreRefusedWithTheListOfKnownOnes) {
  for (const char* text : {"", "System", "local", "vnode", "vnode:", "vnode:0", "vnode:-2",
                           "vnode:2x", "vnode:2:2", "vnode:99999999999", " system"}) {
    const auto layout = parse_node_layout(text);
    EXPECT_EQ(layout.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(layout.status().message(),
                AllOf(HasSubstr("TUTTI_TOPOLOGY"), HasSubstr("system, nolocal, vnode:K")));
  }
}

}  // namespace
}  // namespace tutti
