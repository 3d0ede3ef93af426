// What every row of the catalogue owes to those who iterate over it.
#include "algorithms/catalogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "device/kernel_args.hpp"

namespace tutti {
namespace {

using ::testing::HasSubstr;

TEST(CatalogueTest, IdsAreUniqueAndNameTheirCollective) {
  std::set<std::string_view> ids;
  for (const Algorithm& row : catalogue()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_EQ(row.id, std::string(to_string(row.collective)) + "/" + std::string(row.name()));
    EXPECT_FALSE(row.text.empty()) << row.id;
  }
}

// rows_of() is a part of the catalogue.
TEST(CatalogueTest, AlgorithmsOfACollectiveAreNeighbours) {
  std::size_t all = 0;
  for (const Collective collective : kAllCollectives) {
    const auto rows = rows_of(collective);
    EXPECT_FALSE(rows.empty()) << to_string(collective);
    for (const Algorithm& row : rows) EXPECT_EQ(row.collective, collective) << row.id;
    all += rows.size();
  }
  EXPECT_EQ(all, catalogue().size());
}

TEST(CatalogueTest, RowsSayWhereTheyRunAndWhatTheyCost) {
  for (const Algorithm& row : catalogue()) {
    EXPECT_GT(row.max_ranks_host + row.max_ranks_cuda, 0) << row.id;
    EXPECT_EQ((row.needs & kNeedsNetwork) != 0, row.network != nullptr) << row.id;
    const bool crosses_nodes = row.network != nullptr || (row.needs & kNeedsNccl) != 0;
    EXPECT_EQ(crosses_nodes, row.cost.between != nullptr) << row.id;
    ASSERT_NE(row.geometry, nullptr) << row.id;
    if (row.network != nullptr) continue;
    EXPECT_LE(row.max_ranks_host, kMaxRanks) << row.id;
    EXPECT_EQ(row.max_ranks_host > 0, row.host != nullptr) << row.id;
    EXPECT_GT(row.cost.steps + 2 * row.cost.steps_per_rank, 0) << row.id;
    ASSERT_NE(row.cost.wire, nullptr) << row.id;
    const bool moves_nothing = row.collective == Collective::kBarrier;
    EXPECT_EQ(row.cost.wire(2) > 0, !moves_nothing) << row.id;
  }
}

// Where ranks do not reach each other's memory, NCCL and the network are left.
TEST(CatalogueTest, RowsOfPeerMemorySaySoAndTakeNoMoreRanksThanThereIsRoomFor) {
  for (const Algorithm& row : catalogue()) {
    const bool peers = (row.needs & kNeedsPeerAccess) != 0;
    EXPECT_TRUE(peers || row.needs == kNeedsNccl || row.network != nullptr) << row.id;
    EXPECT_TRUE(!peers || row.max_ranks_cuda <= kMaxCudaRanks) << row.id;
  }
}

TEST(CatalogueTest, GridsFitTheChannel) {
  for (const Algorithm& row : catalogue()) {
    if ((row.needs & (kNeedsNccl | kNeedsNetwork)) != 0) continue;
    for (std::size_t bytes = 0; bytes < (std::size_t{1} << 34); bytes = 3 * bytes + 1) {
      for (const int ranks : {1, 2, 3, 8, 16}) {
        const Geometry geometry = row.geometry({bytes, ranks, 2048});
        EXPECT_GE(geometry.blocks, 1) << row.id << " " << bytes;
        EXPECT_LE(geometry.blocks, kMaxBlocks) << row.id << " " << bytes;
        EXPECT_GE(geometry.threads, 32) << row.id << " " << bytes;
        EXPECT_LE(geometry.threads, kMaxThreads) << row.id << " " << bytes;
      }
    }
  }
}

// Whatever a user gives: slots that hold something, and all within staging.
TEST(CatalogueTest, SlotsOfARingFitIntoStaging) {
  for (const Algorithm& row : catalogue()) {
    if (!has_ring_slots(row)) {
      EXPECT_EQ(ring_slots(row, 1 << 20, 8, 0).directions, 0) << row.id;
      continue;
    }
    for (const std::size_t staging : {4096u, 5120u, 1u << 20, 8u << 20}) {
      const int blocks = most_blocks(row, staging, false);
      for (const std::size_t wanted : {0u, 1u, 100u, 1u << 16, 1u << 30}) {
        const RingSlots slots = ring_slots(row, staging, blocks, wanted);
        ASSERT_GE(slots.chunk_bytes, 16u) << row.id << " " << staging;
        EXPECT_EQ(slots.chunk_bytes % 16, 0u) << row.id << " " << staging;
        const auto last = static_cast<Direction>(slots.directions - 1);
        const std::size_t end = slots.offset(blocks - 1, last, RingSlots::kPerBlock - 1);
        EXPECT_LE(end + slots.chunk_bytes, staging) << row.id << " " << staging;
      }
      EXPECT_GE(ring_slots(row, staging, blocks, 0).chunk_bytes, 256u) << row.id;
    }
  }
}

TEST(CatalogueTest, HostRowsHaveABodyForAllTheyTake) {
  for (const Algorithm& row : catalogue()) {
    if (row.host == nullptr) continue;
    for (const DataType dtype : kAllDataTypes) {
      for (const OpKind op : kAllOps) {
        if (!row.takes(dtype, op)) continue;
        EXPECT_NE(row.host(dtype, op), nullptr) << row.id;
      }
    }
  }
}

TEST(CatalogueTest, RowsAreFoundByIdAndByName) {
  for (const Algorithm& row : catalogue()) {
    EXPECT_EQ(*find_algorithm(row.collective, row.id), &row);
    EXPECT_EQ(*find_algorithm(row.collective, row.name()), &row);
  }
  const Status unknown = find_algorithm(Collective::kAllReduce, "three_shot").status();
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  for (const Algorithm& row : rows_of(Collective::kAllReduce)) {
    EXPECT_THAT(unknown.message(), HasSubstr(std::string(row.name())));
  }
}

TEST(CatalogueTest, SidesAreAsLargeAsTheirCollectiveMakesThem) {
  const auto sides = [](Collective collective) { return sides_of(collective, 24, 2, 4); };
  EXPECT_EQ(sides(Collective::kAllReduce).input, 24U);
  EXPECT_EQ(sides(Collective::kAllReduce).output, 24U);
  EXPECT_EQ(sides(Collective::kAllReduce).place, 0U);
  EXPECT_EQ(sides(Collective::kAllGather).input, 6U);
  EXPECT_EQ(sides(Collective::kAllGather).output, 24U);
  EXPECT_EQ(sides(Collective::kAllGather).place, 12U);
  EXPECT_EQ(sides(Collective::kReduceScatter).input, 24U);
  EXPECT_EQ(sides(Collective::kReduceScatter).output, 6U);
  EXPECT_EQ(sides(Collective::kReduceScatter).place, 12U);
  EXPECT_EQ(sides(Collective::kAllToAll).input, 24U);
  EXPECT_EQ(sides(Collective::kAllToAll).output, 24U);
}

// The smaller side lies at its rank's place in the larger one, whichever that is.
TEST(CatalogueTest, InPlaceIsWhereTheSmallerSideHasItsPlace) {
  const std::byte memory[48] = {};
  for (std::size_t at = 0; at < 24; ++at) {
    const auto in_place = [&](Collective collective, std::size_t in, std::size_t out) {
      return sides_of(collective, 24, 2, 4).are_in_place(memory + in, memory + out);
    };
    EXPECT_EQ(in_place(Collective::kAllReduce, 0, at), at == 0);
    EXPECT_EQ(in_place(Collective::kAllGather, at, 0), at == 12);
    EXPECT_EQ(in_place(Collective::kReduceScatter, 0, at), at == 12);
  }
}

// Where bits are moved, every pattern is a message: packets have to say that they are there.
TEST(CatalogueTest, WhatIsOnlyMovedIsBytes) {
  EXPECT_EQ(moved_as(Collective::kAllReduce, DataType::kBfloat16), DataType::kBfloat16);
  EXPECT_EQ(moved_as(Collective::kAllGather, DataType::kBfloat16), DataType::kUint8);
  EXPECT_EQ(moved_as(Collective::kAllToAll, DataType::kBfloat16), DataType::kUint8);
  for (const Algorithm& row : catalogue()) {
    if (row.packets == nullptr) continue;
    const int expansion = packet_expansion(row, DataType::kFloat32);
    EXPECT_EQ(expansion, reduces(row.collective) ? 1 : 2) << row.id;
  }
}

TEST(CatalogueTest, CollectivesGoByName) {
  for (const Collective collective : kAllCollectives) {
    EXPECT_EQ(*parse_collective(to_string(collective)), collective);
  }
  EXPECT_THAT(parse_collective("all_to_none").status().message(), HasSubstr("all_reduce"));
}

}  // namespace
}  // namespace tutti
