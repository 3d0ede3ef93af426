#include "topology/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

#include "drivers/cuda.hpp"
#include "support/fake_machine.hpp"
#include "topology/host.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;

FakeMachine h200x8() {
  FakeMachine box;
  box.gpus(8).name("NVIDIA H200").nvlink_all_to_all().multicast(false);
  return box;
}

template <class T>
T through_json(const T& value) {
  return nlohmann::json::parse(nlohmann::json(value).dump()).template get<T>();
}

TEST(Topology, SurvivesJson) {
  const FakeMachine box = h200x8();
  EXPECT_EQ(through_json(box.machine()), box.machine());
  EXPECT_EQ(through_json(box.topology(8)), box.topology(8));

  FakeMachine odd;
  odd.gpus(3).peer_access(true).cannot_reach(2, 0).fabric(true);
  EXPECT_EQ(through_json(odd.machine()), odd.machine());
  EXPECT_NE(through_json(odd.machine()), box.machine());
  EXPECT_EQ(through_json(FakeMachine().machine()), FakeMachine().machine());
}

TEST(Topology, DocumentsThatLackAFieldAreNotBelieved) {
  nlohmann::json json = h200x8().machine();
  json["host"].erase("cores");
  EXPECT_THROW(static_cast<void>(json.get<Machine>()), nlohmann::json::exception);
  nlohmann::json group = h200x8().topology(2);
  group["backend"] = "abacus";
  EXPECT_THROW(static_cast<void>(group.get<Topology>()), nlohmann::json::exception);
}

TEST(Topology, GroupsInOneLine) {
  EXPECT_EQ(
      to_text(h200x8().topology(8)),
      "cuda: 8 ranks in 8 processes on 1 host, NVIDIA H200 (sm_90, 132 SMs, 18 NVLinks), peer "
      "access, no multicast, NCCL 2.29.7");
  Topology unknown = h200x8().topology(8);
  unknown.multiprocessors = 0;
  unknown.nccl_version = kAnyNccl;
  EXPECT_THAT(to_text(unknown), HasSubstr("(sm_90, 18 NVLinks), peer access, no multicast, NCCL"));
  EXPECT_TRUE(to_text(unknown).ends_with(", NCCL"));
  EXPECT_EQ(to_text(FakeMachine().one_process().nccl(false).topology(2)),
            "host: 2 ranks in 1 process on 1 host, no NCCL");
  Topology nodes = FakeMachine().one_process().nccl(false).topology(4);
  nodes.node_of = {0, 0, 1, 1};
  EXPECT_EQ(to_text(nodes), "host: 4 ranks in 1 process on 1 host, 2 nodes of 2 ranks, no NCCL");
  nodes.node_of = {0, 1, 2, 2};
  EXPECT_THAT(to_text(nodes), HasSubstr("3 nodes of 1 to 2 ranks"));
  const FakeMachine two = h200x8().hosts(2);
  EXPECT_THAT(to_text(two.topology(16)), HasSubstr("NVLinks), peer access within nodes, "));
  FakeMachine odd = h200x8();
  EXPECT_THAT(to_text(odd.cannot_reach(1, 0).topology(8)), HasSubstr("), no peer access, "));
}

TEST(Topology, ResultsAreFiledUnderTheMachinesKind) {
  const auto slug = [](const char* name, int gpus) {
    return machine_slug(FakeMachine().gpus(gpus).name(name).machine());
  };
  EXPECT_EQ(slug("NVIDIA H200", 8), "h200x8");
  EXPECT_EQ(slug("NVIDIA H100 80GB HBM3", 4), "h100x4");
  EXPECT_EQ(slug("NVIDIA A100-SXM4-80GB", 8), "a100x8");
  EXPECT_EQ(slug("NVIDIA H100 PCIe", 2), "h100pciex2");
  EXPECT_EQ(slug("NVIDIA GeForce RTX 4090", 1), "rtx4090x1");
  EXPECT_EQ(slug("Tesla V100-SXM2-16GB", 8), "v100x8");
  EXPECT_EQ(slug("", 2), "gpux2");
  EXPECT_EQ(machine_slug(FakeMachine().host("vm", 2).machine()), "host2");

  Machine mixed = FakeMachine().gpus(2).machine();
  mixed.gpus[1].name = "NVIDIA L4";
  EXPECT_EQ(machine_slug(mixed), "mixedx2");
}

TEST(Topology, AGroupHasPeerAccessOnlyWhereEveryPairHas) {
  EXPECT_TRUE(h200x8().topology(8).all_reach(Reach::kPeerMemory));
  FakeMachine odd = h200x8();
  odd.cannot_reach(5, 2);
  EXPECT_EQ(odd.topology(8).pair_without(Reach::kPeerMemory), std::pair(5, 2));
  EXPECT_FALSE(odd.topology(8).peer_access_within_nodes());
  EXPECT_TRUE(odd.topology(4).all_reach(Reach::kPeerMemory));  // GPU 5 takes no part
  EXPECT_FALSE(h200x8().hosts(2).topology(16).all_reach(Reach::kPeerMemory));
  EXPECT_TRUE(h200x8().hosts(2).topology(16).peer_access_within_nodes());
}

TEST(Topology, RanksAreCountedByNode) {
  const Topology one = h200x8().topology(8);
  EXPECT_EQ(one.nodes(), 1);
  EXPECT_EQ(one.node(7), 0);
  EXPECT_EQ(one.most_ranks_on_a_node(), 8);
  EXPECT_EQ(one.least_ranks_on_a_node(), 8);

  Topology three;
  three.ranks = 6;
  three.node_of = {0, 0, 1, 0, 2, 2};
  EXPECT_EQ(three.nodes(), 3);
  EXPECT_EQ(three.node(4), 2);
  EXPECT_EQ(three.most_ranks_on_a_node(), 3);
  EXPECT_EQ(three.least_ranks_on_a_node(), 1);
}

TEST(Topology, ReachIsOfOrderedPairs) {
  Topology group;
  group.ranks = 4;
  group.node_of = {0, 0, 1, 1};
  group.within_nodes = Reach::kPeerMemory | Reach::kCopyEngine;
  group.between_nodes = Reach::kNetwork;
  group.limited = {{1, 0, Reach::kCopyEngine}, {0, 3, Reach::kNone}};
  EXPECT_EQ(group.reach(0, 1), Reach::kPeerMemory | Reach::kCopyEngine);
  EXPECT_EQ(group.reach(1, 0), Reach::kCopyEngine);
  EXPECT_EQ(group.reach(1, 2), Reach::kNetwork);
  EXPECT_EQ(group.reach(0, 3), Reach::kNone);
  EXPECT_EQ(group.reach(3, 0), Reach::kNetwork);
  EXPECT_EQ(group.pair_without(Reach::kPeerMemory), std::pair(1, 0));
  EXPECT_EQ(group.pair_without(Reach::kCopyEngine), std::pair(0, 2));
  EXPECT_FALSE(group.peer_access_within_nodes());

  group.limited = {{0, 3, Reach::kNone}};
  EXPECT_TRUE(group.peer_access_within_nodes());
  group.within_nodes = group.within_nodes | Reach::kNetwork;
  EXPECT_EQ(group.pair_without(Reach::kNetwork), std::pair(0, 3));
  group.limited.clear();
  EXPECT_TRUE(group.all_reach(Reach::kNetwork));
  group.within_nodes = Reach::kNone;
  EXPECT_EQ(group.pair_without(Reach::kPeerMemory), std::pair(0, 1));
  group.node_of = {0, 1, 2, 3};
  EXPECT_TRUE(group.all_reach(Reach::kNetwork));  // there is no pair within a node
}

TEST(Topology, NodesAndReachSurviveJson) {
  Topology group = h200x8().hosts(2).topology(8);
  group.between_nodes = Reach::kNetwork;
  group.limited = {{3, 1, Reach::kCopyEngine}};
  EXPECT_EQ(through_json(group), group);
  EXPECT_FALSE(nlohmann::json(group).at("peer_access").get<bool>());
  EXPECT_TRUE(nlohmann::json(h200x8().topology(8)).at("peer_access").get<bool>());
}

// A document from before nodes were known.
nlohmann::json without_nodes(const Topology& topology, bool peer_access) {
  nlohmann::json json = topology;
  json.erase("node_of");
  json.erase("reach");
  json["peer_access"] = peer_access;
  return json;
}

TEST(Topology, DocumentsWithoutNodesAreRead) {
  EXPECT_EQ(without_nodes(h200x8().topology(8), true).get<Topology>(), h200x8().topology(8));
  EXPECT_EQ(without_nodes(FakeMachine().topology(4), false).get<Topology>(),
            FakeMachine().topology(4));
  const auto apart = without_nodes(h200x8().topology(8), false).get<Topology>();
  EXPECT_EQ(apart.within_nodes, Reach::kNone);
  const auto fabric = without_nodes(h200x8().hosts(2).topology(4), true).get<Topology>();
  EXPECT_EQ(fabric.node_of, std::vector({0, 0, 1, 1}));
  EXPECT_TRUE(fabric.all_reach(Reach::kPeerMemory));
  const auto hosts = without_nodes(FakeMachine().hosts(2).topology(4), true).get<Topology>();
  EXPECT_FALSE(hosts.all_reach(Reach::kPeerMemory));
}

TEST(Topology, DocumentsWithNodesThatCannotBeAreNotBelieved) {
  const nlohmann::json good = h200x8().hosts(2).topology(4);
  const auto refuses = [&](const char* path, const nlohmann::json& value) {
    nlohmann::json bad = good;
    bad[nlohmann::json::json_pointer(path)] = value;
    EXPECT_THROW(static_cast<void>(bad.get<Topology>()), nlohmann::json::exception) << path;
  };
  refuses("/node_of", {0, 0, 1});
  refuses("/node_of", {0, 0, 1, 3});
  refuses("/node_of", {0, -1, 1, 1});
  refuses("/reach/within_nodes", {"telepathy"});
  refuses("/reach/limited", {{{"from", 0}, {"to", 4}, {"reach", nlohmann::json::array()}}});
  nlohmann::json old = without_nodes(h200x8().topology(2), true);
  old["hosts"] = 3;
  EXPECT_THROW(static_cast<void>(old.get<Topology>()), nlohmann::json::exception);
}

TEST(Topology, ThisHost) {
  const Host host = discover_host();
  EXPECT_FALSE(host.name.empty());
  EXPECT_EQ(host.boot_id.size(), std::string("0c8eb113-7b66-4261-a952-7dd4d10bbe21").size());
  EXPECT_GE(host.cores, 1);
  EXPECT_GE(host.numa_nodes, 1);
  EXPECT_GT(host.memory_bytes, std::size_t{1} << 27);
  EXPECT_EQ(discover_host(), host);
}

TEST(Topology, MemoryFromMeminfo) {
  EXPECT_EQ(memory_in_meminfo("MemTotal:       24689224 kB\nMemFree: 1 kB\n"),
            std::size_t{24689224} * 1024);
  EXPECT_EQ(memory_in_meminfo("MemFree: 1 kB\n"), 0U);
  EXPECT_EQ(memory_in_meminfo("MemTotal:"), 0U);
}

TEST(Topology, WithoutADriverTheReasonIsTold) {
  const Machine machine = discover_machine(nullptr, nullptr);
  EXPECT_TRUE(machine.gpus.empty());
  EXPECT_TRUE(machine.peer_access.empty());
  EXPECT_FALSE(machine.why_no_gpu.empty());
  std::string why;
  EXPECT_TRUE(real_cuda(&why) != nullptr || machine.why_no_gpu == why);
}

}  // namespace
}  // namespace tutti
