// Pipelines of all_gather_matmul whose shards lie in symmetric memory: peers read them there. By
// threads on the host, and on GPUs that do not exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "group/shard_places.hpp"
#include "support/check.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "support/told.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"
#include "unit/api/layer_of_rank.hpp"
#include "unit/api/pipelined_gpus.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr std::array<std::string_view, 3> kInPlaceAlgorithms = {"pipelined_shift", "pipelined_ring",
                                                                "pipelined_tiles"};
constexpr std::size_t kInPlaceBytes = 16 * KiB;

Layer layer_in_place(std::string_view algorithm) {
  return {.m = 8, .buffers = LayerBuffers::kSymmetric, .algorithm = algorithm};
}

TEST(PipelinedInPlace, ASymmetricShardIsReadWhereItIs) {
  constexpr std::size_t kApart = 2 * LayerOfRank::kStep;
  auto groups = groups_of(3);
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const SymmetricMemory memory = take(group.allocate(kInPlaceBytes));
    auto* const symmetric = static_cast<std::byte*>(memory.data());
    for (const std::string_view algorithm : kInPlaceAlgorithms) {
      int salt = 0;
      // Whether the ranks asked each other something.
      const auto asks = [&](std::size_t place, LayerBuffers buffers = LayerBuffers::kSymmetric) {
        Layer layer = layer_in_place(algorithm);
        layer.buffers = buffers;
        layer.gathered = (++salt + rank) % 2 == 0;
        LayerOfRank side(layer, group, symmetric + place * kApart);
        side.fill(salt);
        const Communicator::Counters before = group.counters();
        require_ok(all_gather_matmul(group, side.call()));
        side.expect_right(fmt::format("{}, call {}", algorithm, salt));
        const Communicator::Counters after = group.counters();
        EXPECT_EQ(after.allocations > before.allocations, salt == 1);
        return after.exchanges > before.exchanges;
      };
      EXPECT_TRUE(asks(0));
      EXPECT_FALSE(asks(0));
      EXPECT_TRUE(asks(1)) << "a new place";
      EXPECT_FALSE(asks(0));
      EXPECT_FALSE(asks(1));
      EXPECT_FALSE(asks(0, LayerBuffers::kPlain)) << "a copy";
    }
  });
}

// Then all of them copy, whatever comes later.
TEST(PipelinedInPlace, ShardsAtDifferentPlacesAreCopied) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const SymmetricMemory memory = take(group.allocate(kInPlaceBytes));
    for (int call = 0; call < 4; ++call) {
      Layer layer = layer_in_place("pipelined_shift");
      if (call % 2 == rank) layer.buffers = LayerBuffers::kPlain;
      if (call == 2) layer.buffers = LayerBuffers::kSymmetric;
      const std::size_t place = call == 2 ? 0u : static_cast<std::size_t>(rank + call);
      LayerOfRank side(layer, group,
                       static_cast<std::byte*>(memory.data()) + place * LayerOfRank::kStep);
      side.fill(call);
      const std::uint64_t before = group.counters().exchanges;
      require_ok(all_gather_matmul(group, side.call()));
      side.expect_right(fmt::format("call {}", call));
      EXPECT_EQ(group.counters().exchanges > before, call == 0);
    }
  });
}

// A rank that is alone at its place waits for the others to agree to it.
TEST(PipelinedInPlace, ARankAtAnotherPlaceIsNamed) {
  // Of the first two, one place is known to all ranks; of the last, both are, so nobody asks.
  struct Places {
    bool both_known, both_new;
  };
  constexpr Places kPlaces[] = {{false, false}, {false, true}, {true, false}};
  for (const Places& places : kPlaces) {
    auto groups = groups_of(2);
    on_all_ranks(2, [&](int rank) {
      Communicator& group = groups[static_cast<std::size_t>(rank)];
      const SymmetricMemory memory = take(group.allocate(kInPlaceBytes));
      const auto run = [&](int place) {
        LayerOfRank side(layer_in_place("pipelined_ring"), group,
                         static_cast<std::byte*>(memory.data()) +
                             static_cast<std::size_t>(place) * LayerOfRank::kStep);
        side.fill(1);
        return all_gather_matmul(group, side.call());
      };
      require_ok(run(0));
      if (places.both_known) require_ok(run(1));
      const Status status = run(places.both_new ? 1 + rank : rank);
      EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
      const std::string text = told(group, "rank 1 all_gather_matmul");
      EXPECT_THAT(text, HasSubstr("get, 4 streams, A at "));
      EXPECT_THAT(text, HasSubstr(places.both_new ? "+768" : "+512"));
    });
  }
}

// Its shard is shorter than the others, and lies in a younger and smaller segment, too.
TEST(PipelinedInPlace, AShorterShardIsFoundWhereTheOthersAre) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const SymmetricMemory memory = take(group.allocate(kInPlaceBytes));
    Layer layer = layer_in_place("pipelined_shift");
    layer.m = 7;
    LayerOfRank side(layer, group, static_cast<std::byte*>(memory.data()));
    side.fill(1);
    require_ok(all_gather_matmul(group, side.call()));
    void* const shard = static_cast<std::byte*>(memory.data()) + LayerOfRank::kStep;
    const SymmetricMemory younger = take(group.register_memory(shard, 3 * layer.k * 4));
    const std::uint64_t before = group.counters().exchanges;
    side.fill(2);
    require_ok(all_gather_matmul(group, side.call()));
    side.expect_right("beside a younger segment");
    EXPECT_EQ(group.counters().exchanges, before) << "the place is known";
  });
}

// The same address is another place each time. Rank 1 frees its memory later than rank 0.
TEST(PipelinedInPlace, PlacesThatAreGoneGiveWay) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank plain({.m = 8, .algorithm = "pipelined_shift"}, group, nullptr);
    const auto asks = [&](LayerOfRank& side, int salt) {
      side.fill(salt);
      const std::uint64_t before = group.counters().exchanges;
      require_ok(all_gather_matmul(group, side.call()));
      side.expect_right(fmt::format("call {}", salt));
      return group.counters().exchanges > before;
    };
    SymmetricMemory kept;
    const auto asks_in_fresh_memory = [&](int salt) {
      SymmetricMemory memory = take(group.allocate(kInPlaceBytes));
      LayerOfRank side(layer_in_place("pipelined_shift"), group,
                       static_cast<std::byte*>(memory.data()));
      const bool asked = asks(side, salt);
      EXPECT_FALSE(asks(side, salt + 1)) << salt;
      if (rank == 1) kept = std::move(memory);
      return asked;
    };
    int salt = 0;
    for (std::size_t i = 0; i < ShardPlaces::kMost; ++i) {
      EXPECT_TRUE(asks_in_fresh_memory(++salt)) << i;
    }
    EXPECT_FALSE(asks_in_fresh_memory(++salt)) << "it is copied";
    for (std::uint64_t i = 0; i < ShardPlaces::kCallsUntilForgotten; ++i) asks(plain, ++salt);
    EXPECT_TRUE(asks_in_fresh_memory(++salt)) << "it is read in place";
  });
}

TEST(ShardPlaces, TheOneThatWasNotReadForLongestIsForgotten) {
  ShardPlaces places;
  const auto place = [](std::size_t offset) { return ShardPlace{7, offset}; };
  const auto read = [&](std::size_t offset) {
    EXPECT_TRUE(places.admits(place(offset)));
    const ShardPlace there = place(offset);
    places.count_call(&there);
  };
  for (std::size_t i = 0; i < ShardPlaces::kMost; ++i) read(i);
  EXPECT_FALSE(places.admits(place(64)));
  EXPECT_TRUE(places.admits(place(0)));
  EXPECT_FALSE(places.knows({8, 0}));
  read(0);
  // Place 1 was read by the second call; 65 calls have been made.
  for (std::uint64_t i = 65; i < ShardPlaces::kCallsUntilForgotten + 1; ++i) {
    places.count_call(nullptr);
  }
  EXPECT_FALSE(places.admits(place(64)));
  places.count_call(nullptr);
  EXPECT_TRUE(places.knows(place(1)));
  read(64);
  EXPECT_FALSE(places.knows(place(1)));
  EXPECT_TRUE(places.knows(place(0)) && places.knows(place(2)) && places.knows(place(64)));
  places.count_call(nullptr);
  EXPECT_TRUE(places.admits(place(65))) << "in the place of 3";
}

// Of a call whose shards lie in symmetric memory, and of one whose shards do not.
TEST(PipelinedInPlace, GpusDoNotCopyTheirOwnShard) {
  for (const std::string_view algorithm : kInPlaceAlgorithms) {
    PipelinedGpus ranks(3);
    const GpuPipeline kind{.algorithm = algorithm, .pipeline = {.tiles = 2}};
    const auto copies_of = [&](bool in_place) {
      std::vector<SymmetricMemory> shards(3);
      std::vector<GpuCalls> sides;
      sides.reserve(3);
      for (int r = 0; r < 3; ++r) sides.push_back(ranks.calls(r, kind));
      int copies = 0;
      // The first call prepares the pipeline, or adds the place.
      for (const int number : {0, 1}) {
        copies = ranks.gpus.cuda.calls("copy_async");
        on_all_ranks(3, [&](int r) {
          const std::size_t at = PipelinedGpus::at(r);
          AllGatherMatmul call = sides[at].call(number, ranks.streams[at]);
          const std::size_t bytes = pipelines::shard_rows(kind.m, 3, r).count() * kGpuDepth * 2;
          if (number == 0) shards[at] = take(ranks.gpus.groups[at].allocate(KiB));
          std::memcpy(shards[at].data(), call.a, bytes);
          if (in_place) call.a = shards[at].data();
          require_ok(ranks.run(r, call));
          require_ok(ranks.end_of(r));
          EXPECT_EQ(sides[at].count_wrong(number), 0) << algorithm << ", rank " << r;
        });
        copies = ranks.gpus.cuda.calls("copy_async") - copies;
      }
      return copies;
    };
    const int in_place = copies_of(true), copied = copies_of(false);
    const int rows = algorithm == "pipelined_tiles" ? 0 : 3;  // its own tiles lie among the others'
    EXPECT_EQ(copied - in_place, rows) << algorithm;
  }
}

}  // namespace
}  // namespace tutti::test
