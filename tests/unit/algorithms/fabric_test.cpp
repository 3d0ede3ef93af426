// The emulated switch does what a switch does, and refuses what a switch refuses.
#include <gtest/gtest.h>

#include <set>

#include "algorithms/multicast_buffers.hpp"
#include "device/host_shared/host_team.hpp"
#include "support/host_world.hpp"

namespace tutti::test {
namespace {

constexpr int kFabricRanks = 5;
constexpr std::size_t kFabricCount = 512;

// Rank 0's view of what five ranks gave.
template <class T, class Op>
class Emulated {
 public:
  Emulated() : world_(kFabricRanks, kFabricCount * sizeof(T), 64 * KiB) {
    for (int r = 0; r < kFabricRanks; ++r) {
      for (std::size_t i = 0; i < kFabricCount; ++i) world_.input<T>(r)[i] = value(r, i);
    }
  }

  // Thirds to sevenths, whose sum depends on the order; and ones, whose sum does not.
  static T value(int rank, std::size_t i) {
    return from_accumulator<T>(i % 2 == 0 ? 1.0f / static_cast<float>(3 + rank) : 1);
  }

  // The tile of `count` elements at `first`, by way of the switch.
  Tile<T, HostTeam::tile_elements<T>()> load_reduce(TileAt tile, std::uint64_t sequence = 1) {
    KernelArgs work = world_.work(0, kFabricCount, false);
    work.sequence = sequence;
    HostTeam team(work, 0);
    const auto buffers = team.buffers();
    return Fabric<Reduction<T, Op>, HostTeam>(team, work, buffers).load_reduce(HostAccess{}, tile);
  }

 private:
  HostWorld world_;
};

TEST(EmulatedSwitchTest, TheOrderIsTheSwitchs) {
  Emulated<float, Sum> emulated;
  std::set<float> sums;
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    const auto tile = emulated.load_reduce({0, 256}, sequence);
    EXPECT_EQ(tile.at[1], 5) << "what is exact in any order";
    sums.insert(tile.at[0]);
  }
  EXPECT_GT(sums.size(), 1u) << "always the same order";
  for (const float sum : sums) EXPECT_NEAR(sum, 1.0928571f, 1e-6);
}

TEST(EmulatedSwitchTest, EveryRankComesOnce) {
  KernelArgs work{};
  work.ranks = kFabricRanks;
  std::set<int> first;
  for (std::size_t at = 0; at < 100; ++at) {
    const SwitchOrder order(work, TileAt{at * 16, 16});
    std::set<int> ranks;
    for (int k = 0; k < kFabricRanks; ++k) ranks.insert(order.rank(k));
    EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3, 4}));
    first.insert(order.rank(0));
  }
  EXPECT_EQ(first.size(), 5u) << "anyone may come first";
}

TEST(EmulatedSwitchTest, TakesWhatASwitchReducesAsOthersDo) {
  const auto taken = [](OpKind op) {
    std::set<DataType> types;
    for (const DataType dtype : kAllDataTypes) {
      if (switch_reduces(dtype, op)) types.insert(dtype);
    }
    return types;
  };
  using enum DataType;
  const std::set<DataType> wide = {kInt32, kUint32, kInt64, kUint64};
  std::set<DataType> summed = wide;
  summed.insert({kFloat64, kFloat32, kFloat16, kBfloat16});
  EXPECT_EQ(taken(OpKind::kSum), summed);
  EXPECT_EQ(taken(OpKind::kAvg), (std::set<DataType>{kFloat64, kFloat32}));
  EXPECT_EQ(taken(OpKind::kMin), wide);
  EXPECT_EQ(taken(OpKind::kMax), wide);
  EXPECT_TRUE(taken(OpKind::kProd).empty());
  EXPECT_TRUE(taken(OpKind::kPreMulSum).empty());
}

#if !defined(NDEBUG)
TEST(FabricDeathTest, RefusesWhatIsNotWholeVectors) {
  Emulated<float, Sum> emulated;
  (void)emulated.load_reduce({4, 8});  // 16 bytes from the start, 32 long
  EXPECT_DEATH((void)emulated.load_reduce({0, 5}), "whole vectors of 16 bytes");
  EXPECT_DEATH((void)emulated.load_reduce({1, 8}), "whole vectors of 16 bytes");
}
#endif

}  // namespace
}  // namespace tutti::test
