// Algorithms of the network as planning sees them: where they can run, which are taken by
// themselves, which ring is meant, and how messages are cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "planning/choose.hpp"
#include "planning/filter.hpp"
#include "planning/model.hpp"
#include "planning/network_chunks.hpp"
#include "planning/rings.hpp"
#include "unit/planning/entries.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Hosts without GPUs, of so many ranks each.
Topology hosts_of(int hosts, int each) {
  Topology topology{.ranks = hosts * each,
                    .hosts = hosts,
                    .processes = hosts * each,
                    .one_process = false,
                    .network = true};
  for (int rank = 0; rank < topology.ranks; ++rank) topology.node_of.push_back(rank / each);
  return topology;
}

const Algorithm& all_reduce_row(std::string_view name) {
  return **find_algorithm(Collective::kAllReduce, name);
}

std::string chosen_by_itself(const Topology& topology, std::size_t bytes,
                             std::int64_t limit = kSizeAutomatic) {
  Request request{.count = bytes / 4};
  request.bidirectional_bytes = limit;
  const auto plan = choose(request, topology, TuningTable::empty());
  return plan.is_ok() ? plan->algorithm : plan.status().message();
}

TEST(NetworkPlanning, NeedsTheNetwork) {
  Topology topology = hosts_of(3, 1);
  EXPECT_THAT(why_not(all_reduce_row("network_ring"), {}, topology), IsEmpty());
  topology.network = false;
  EXPECT_THAT(why_not(all_reduce_row("network_ring"), {}, topology),
              HasSubstr("not every rank can"));
  EXPECT_THAT(chosen_by_itself(topology, 1024), HasSubstr("no algorithm can run"));
}

TEST(NetworkPlanning, HierarchicalNeedsEvenNodes) {
  const Algorithm& row = all_reduce_row("hierarchical");
  EXPECT_THAT(why_not(row, {}, hosts_of(2, 2)), IsEmpty());
  EXPECT_THAT(why_not(row, {}, hosts_of(1, 4)), HasSubstr("two nodes or more"));
  Topology uneven = hosts_of(2, 2);
  uneven.node_of = {0, 0, 0, 1};
  EXPECT_THAT(why_not(row, {}, uneven), HasSubstr("nodes have 1 to 3"));
}

TEST(NetworkPlanning, IsNotCaptured) {
  const Request request{.count = 4, .capturing = true};
  EXPECT_THAT(why_not(all_reduce_row("network_ring"), request, hosts_of(2, 1)),
              HasSubstr("cannot be captured"));
}

TEST(NetworkPlanning, TakesMultipliersWhereSumsHaveTheElementsType) {
  const Algorithm& direct = all_reduce_row("network_direct");
  EXPECT_TRUE(direct.takes(DataType::kFloat32, OpKind::kPreMulSum));
  EXPECT_FALSE(direct.takes(DataType::kBfloat16, OpKind::kPreMulSum));
  EXPECT_TRUE(direct.takes(DataType::kBfloat16, OpKind::kAvg));
  EXPECT_TRUE(all_reduce_row("network_ring").takes(DataType::kBfloat16, OpKind::kPreMulSum));
}

TEST(NetworkPlanning, IsTakenByItselfBetweenNodesAlone) {
  Topology one = hosts_of(1, 4);
  EXPECT_EQ(chosen_by_itself(one, MiB).find("network"), std::string::npos);
  EXPECT_THAT(chosen_by_itself(hosts_of(4, 1), MiB), HasSubstr("all_reduce/"));
  Request request{.count = 1024};
  request.algorithm = "network_ring";
  EXPECT_EQ(choose(request, one, TuningTable::empty())->algorithm, "all_reduce/network_ring");
}

TEST(NetworkPlanning, SmallMessagesTakeFewHopsAndLargeOnesFewBytes) {
  EXPECT_EQ(chosen_by_itself(hosts_of(8, 1), 1024), "all_reduce/network_one_shot");
  EXPECT_EQ(chosen_by_itself(hosts_of(64, 1), 1024), "all_reduce/network_doubling");
  EXPECT_EQ(chosen_by_itself(hosts_of(8, 1), 64 * KiB), "all_reduce/network_direct");
  EXPECT_EQ(chosen_by_itself(hosts_of(8, 1), MiB), "all_reduce/network_ring_bidirectional");
  EXPECT_EQ(chosen_by_itself(hosts_of(8, 1), 16 * MiB), "all_reduce/network_ring");
  EXPECT_EQ(chosen_by_itself(hosts_of(2, 1), 16 * MiB), "all_reduce/network_ring");
  EXPECT_EQ(chosen_by_itself(hosts_of(8, 4), 256 * MiB), "all_reduce/hierarchical");
}

TEST(NetworkPlanning, TreesTakeWhatHasTooManyHopsOtherwise) {
  EXPECT_EQ(chosen_by_itself(hosts_of(64, 1), MiB), "all_reduce/network_direct");
  EXPECT_EQ(chosen_by_itself(hosts_of(512, 1), MiB), "all_reduce/network_tree");
  EXPECT_EQ(chosen_by_itself(hosts_of(512, 1), 1024), "all_reduce/network_doubling");
}

// Between nodes NCCL's messages are as slow as others, and need no copies to host memory.
TEST(NetworkPlanning, NcclPaysForTheNetwork) {
  Topology hosts = hosts_of(4, 8);
  hosts.backend = Backend::kCuda;
  hosts.compute = 90;
  hosts.nvlinks = 18;
  hosts.nccl = true;
  EXPECT_EQ(chosen_by_itself(hosts, 1024), "all_reduce/nccl");
  EXPECT_EQ(chosen_by_itself(hosts, 256 * MiB), "all_reduce/hierarchical");
  Topology fabric = hosts;
  fabric.within_nodes = fabric.between_nodes = peer_ways(Backend::kCuda);
  for (const Algorithm& row : catalogue()) {
    if ((row.needs & kNeedsNccl) == 0) continue;
    ASSERT_NE(row.cost.between, nullptr) << row.id;
    EXPECT_GT(predicted_us(row, {32, 64 * MiB}, hosts),
              10 * predicted_us(row, {32, 64 * MiB}, fabric))
        << row.id;
  }
}

TEST(NetworkPlanning, TheSettingSaysWhichRing) {
  const auto meant = [](const Topology& topology, std::size_t bytes, std::int64_t limit) {
    Request request{.count = bytes / 4};
    request.bidirectional_bytes = limit;
    const TuningTable table = TuningTable::empty();
    const Selection selection{request, topology, table};
    const RingChoice one = ring_meant(selection, all_reduce_row("network_ring"), nullptr);
    EXPECT_EQ(one.row,
              ring_meant(selection, all_reduce_row("network_ring_bidirectional"), nullptr).row);
    return one.row->ring_directions;
  };
  const Topology eight = hosts_of(8, 1);
  EXPECT_EQ(meant(eight, GiB, kSizeAlways), 2);
  EXPECT_EQ(meant(eight, 1024, kSizeNever), 1);
  EXPECT_EQ(meant(eight, MiB, MiB), 2);
  EXPECT_EQ(meant(eight, MiB + 4, MiB), 1);
  EXPECT_EQ(meant(eight, 2 * MiB, kSizeAutomatic), 2);
  EXPECT_EQ(meant(eight, 2 * MiB + 4, kSizeAutomatic), 1);
  EXPECT_EQ(meant(hosts_of(2, 1), 1024, kSizeAutomatic), 1);
  Topology blackwell = hosts_of(8, 1);
  blackwell.backend = Backend::kCuda;
  blackwell.compute = 100;
  blackwell.nvlinks = 18;
  EXPECT_EQ(meant(blackwell, 16 * MiB, kSizeAutomatic), 2);
  EXPECT_EQ(meant(blackwell, 16 * MiB + 4, kSizeAutomatic), 1);
}

// Rows of which there is one alone, and rings within them.
TEST(NetworkPlanning, TheSettingSaysWhichWayOtherRingsGo) {
  const Topology topology = hosts_of(4, 2);
  const auto one_way = [&](Collective collective, std::string_view name, std::int64_t limit) {
    Request request{.collective = collective, .count = MiB / 4};
    request.bidirectional_bytes = limit;
    request.algorithm = name;
    const TuningTable table = TuningTable::empty();
    const auto plan = select({request, topology, table});
    EXPECT_TRUE(plan.is_ok()) << plan.status().to_string();
    return plan->one_way;
  };
  for (const auto& [collective, name] : {std::pair(Collective::kAllReduce, "hierarchical"),
                                         {Collective::kAllGather, "network_ring"},
                                         {Collective::kReduceScatter, "network_ring"}}) {
    EXPECT_TRUE(one_way(collective, name, kSizeNever));
    EXPECT_FALSE(one_way(collective, name, kSizeAlways));
    EXPECT_FALSE(one_way(collective, name, kSizeAutomatic));
    EXPECT_TRUE(one_way(collective, name, 1024));
    EXPECT_FALSE(one_way(collective, name, 64 * MiB));
  }
}

// Both ends of a message plan alike, though one has it in a group with larger messages.
TEST(NetworkPlanning, NoSizeDecidesHowAMessageGoes) {
  const Topology topology = hosts_of(3, 1);
  const auto fingerprint = [&](std::size_t count) {
    Request request{.collective = Collective::kSendRecv, .count = count};
    request.algorithm = "network_direct";
    const TuningTable table = TuningTable::empty();
    const auto plan = select({request, topology, table});
    EXPECT_TRUE(plan.is_ok()) << plan.status().to_string();
    return plan->fingerprint;
  };
  EXPECT_EQ(fingerprint(1), fingerprint(64 * MiB));
}

TEST(NetworkPlanning, TopologyIsSerialised) {
  const Topology topology = hosts_of(2, 2);
  EXPECT_EQ(nlohmann::json(topology).get<Topology>(), topology);
  EXPECT_THAT(to_text(topology), HasSubstr("network"));
}

TEST(NetworkChunks, AreCutByKindSizeAndDelay) {
  const std::size_t staging = 32 * MiB;
  EXPECT_EQ(network_cut_table({.ranks = 8, .staging_bytes = staging}),
            R"(messages over TCP, 8 ranks:
   bytes   chunk  depth  partitions
      1K     32K      1           1
      4K     32K      1           1
     16K     32K      1           1
     64K     32K      1           1
    256K     32K      1           1
      1M     64K      2           1
      4M     64K      8           1
     16M     64K     32           1
     64M     64K     64           2
    256M     64K     64           8
      1G     64K     64          32
)");
  EXPECT_EQ(network_cut_table({.ranks = 8, .kind = NetworkKind::kRdma, .staging_bytes = staging}),
            R"(messages over RDMA, 8 ranks:
   bytes   chunk  depth  partitions
      1K     64K      1           1
      4K     64K      1           1
     16K     64K      1           1
     64K     64K      1           1
    256K     64K      1           1
      1M     64K      2           1
      4M    256K      2           1
     16M      1M      2           1
     64M      2M      2           2
    256M      2M      2           8
      1G      2M      2          32
)");
  const NetworkCutInput far{.bytes = GiB, .kind = NetworkKind::kRdma, .delay_bytes = 4 * MiB};
  EXPECT_EQ(network_cut(far).chunk_bytes, 2 * MiB) << "no more than is on its way";
  NetworkCutInput tree{.bytes = 256 * MiB, .ranks = 65536, .kind = NetworkKind::kRdma};
  EXPECT_EQ(network_cut(tree).chunk_bytes, 64 * KiB) << "of a share";
  tree.chunks_to_fill = 32;
  EXPECT_EQ(network_cut(tree).chunk_bytes, 1 * MiB);
}

TEST(NetworkChunks, AreWholeUnitsAndNeverNone) {
  for (const NetworkKind kind : {NetworkKind::kTcp, NetworkKind::kRdma}) {
    for (std::size_t bytes = 0; bytes < (std::size_t{1} << 40); bytes = 3 * bytes + 1) {
      for (const int ranks : {1, 2, 24, 1 << 20}) {
        const NetworkCut cut =
            network_cut({.bytes = bytes, .ranks = ranks, .kind = kind, .unit_bytes = 48});
        EXPECT_GE(cut.chunk_bytes, 48U);
        EXPECT_EQ(cut.chunk_bytes % 48, 0U);
        EXPECT_GE(cut.depth, 1);
        EXPECT_EQ(cut.partitions, 1);
      }
    }
  }
}

}  // namespace
}  // namespace tutti
