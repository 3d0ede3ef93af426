// What the simulated memory allows and what it calls a breach, in programs of a few lines.
#include <gtest/gtest.h>

#include <set>

#include "simulator/simulation.hpp"

namespace tutti::simulated {
namespace {

// Two ranks of one block share a few words and a flag per direction.
class Litmus : public ::testing::Test {
 protected:
  Litmus() : simulation_(2, 1) {
    memory().add_data(at(0), sizeof words_, "words");
    memory().add_flags(flags_, 2);
    memory().add_packets(packets_, 2);
  }

  WeakMemory& memory() { return simulation_.memory(); }
  std::byte* at(int word) { return reinterpret_cast<std::byte*>(words_ + word); }
  void store(int fiber, int word, int value) {
    simulation_.interrupt(fiber);
    memory().store(fiber, at(word), reinterpret_cast<const std::byte*>(&value), sizeof value);
  }
  int load(int fiber, int word) {
    simulation_.interrupt(fiber);
    int value = 0;
    memory().load(fiber, reinterpret_cast<std::byte*>(&value), at(word), sizeof value);
    return value;
  }
  void packet(int fiber, int word, std::uint64_t value) {
    simulation_.interrupt(fiber);
    memory().store_packet(fiber, packets_ + word, value, 1);
  }
  // The fiber's `epoch`-th flag for the other one.
  void signal(int fiber, Publish publish, std::uint64_t epoch = 1) {
    if (publish == Publish::kStores) memory().release(fiber);
    memory().send(fiber, publish);
    memory().store_flag(fiber, &flags_[1 - fiber], {epoch, epoch});
  }
  void wait(int fiber, bool acquire = true, std::uint64_t epoch = 1) {
    ASSERT_EQ(simulation_.wait_for_flag(fiber, &flags_[fiber], epoch), Waited::kArrived);
    if (acquire) memory().acquire(fiber, &flags_[fiber]);
  }

  using Program = std::function<void()>;
  // Both programs under one schedule, as kernels of their ranks.
  Breach run(Schedule& schedule, const Program& first, const Program& second) {
    std::fill(std::begin(words_), std::end(words_), 0);
    simulation_.run(schedule, [&](int rank, int) {
      memory().end_kernel(rank, 1);
      rank == 0 ? first() : second();
      simulation_.wait_until_delivered(rank);
    });
    return simulation_.violation().breach;
  }
  // Under many random schedules: all that came of it.
  std::set<Breach> run_many(const Program& first, const Program& second) {
    std::set<Breach> breaches;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      RandomSchedule schedule(seed, 2);
      breaches.insert(run(schedule, first, second));
    }
    return breaches;
  }

  static constexpr std::uint64_t kSeeds = 2000;
  Simulation simulation_;
  alignas(16) int words_[16] = {};
  Flag flags_[2] = {};
  std::uint64_t packets_[2] = {};
};

using Breaches = std::set<Breach>;

// --- messages: data, then a flag ---

TEST_F(Litmus, AReleasedMessageIsSeenWhole) {
  std::set<int> seen;
  const auto breaches = run_many([&] { store(0, 0, 7), signal(0, Publish::kStores); },
                                 [&] { wait(1), seen.insert(load(1, 0)); });
  EXPECT_EQ(breaches, Breaches{Breach::kNone});
  EXPECT_EQ(seen, std::set<int>{7});
}

TEST_F(Litmus, AFlagOvertakesWhatItDoesNotRelease) {
  std::set<int> seen;
  const auto breaches = run_many([&] { store(0, 0, 7), signal(0, Publish::kLoads); },
                                 [&] { wait(1), seen.insert(load(1, 0)); });
  EXPECT_EQ(breaches, Breaches{Breach::kEarlyLoad}) << "whatever the order of delivery was";
  EXPECT_EQ(seen, (std::set<int>{0, 7})) << "and in some orders the bytes are wrong";
}

TEST_F(Litmus, AMessageIsOnlyReadAfterAnAcquire) {
  const auto breaches = run_many([&] { store(0, 0, 7), signal(0, Publish::kStores); },
                                 [&] { wait(1, false), load(1, 0); });
  EXPECT_EQ(breaches, Breaches{Breach::kEarlyLoad});
}

TEST_F(Litmus, WhatAKernelBeforeWroteNeedsNoRelease) {
  const auto breaches = run_many(
      [&] {
        store(0, 0, 7);
        simulation_.wait_until_delivered(0);
        memory().end_kernel(0, 1);
        signal(0, Publish::kEarlierKernels);
      },
      [&] {
        wait(1);
        EXPECT_EQ(load(1, 0), 7);
      });
  EXPECT_EQ(breaches, Breaches{Breach::kNone});
}

TEST_F(Litmus, ALaterFlagReleasesToo) {
  const auto breaches = run_many(
      [&] {
        store(0, 0, 7);
        signal(0, Publish::kStores, 1);
        signal(0, Publish::kLoads, 2);
      },
      [&] {
        wait(1, true, 2);
        EXPECT_EQ(load(1, 0), 7);
      });
  EXPECT_EQ(breaches, Breaches{Breach::kNone});
}

// --- reuse: data is read, then overwritten ---

TEST_F(Litmus, AWordIsOverwrittenOnceItsLoadsAreOver) {
  const auto breaches =
      run_many([&] { load(0, 0), signal(0, Publish::kLoads); }, [&] { wait(1), store(1, 0, 7); });
  EXPECT_EQ(breaches, Breaches{Breach::kNone});
}

TEST_F(Litmus, AWordIsNotOverwrittenWhileItMayBeRead) {
  const auto breaches = run_many([&] { load(0, 0), signal(0, Publish::kEarlierKernels); },
                                 [&] { wait(1), store(1, 0, 7); });
  EXPECT_EQ(breaches, Breaches{Breach::kEarlyStore});
}

TEST_F(Litmus, TwoWritersMustBeOrdered) {
  const auto breaches = run_many([&] { store(0, 0, 6); }, [&] { store(1, 0, 7); });
  EXPECT_EQ(breaches, Breaches{Breach::kUnorderedStore});
}

// --- orders of delivery ---

class Overtaking : public Litmus {
 protected:
  using Pairs = std::set<std::pair<std::uint64_t, std::uint64_t>>;
  // All pairs of values that rank 1 can see of packets 0 and 1, the second looked at first.
  Pairs pairs_seen(const Program& writer) {
    Pairs seen;
    run_many(writer, [&] {
      for (int look = 0; look < 8; ++look) {
        const std::uint64_t second = packets_[1];
        simulation_.interrupt(1);
        seen.insert({packets_[0], second});
        simulation_.interrupt(1);
      }
    });
    return seen;
  }
};

TEST_F(Overtaking, PacketsMayArriveInAnyOrder) {
  const auto seen = pairs_seen([&] { packet(0, 0, 1), packet(0, 1, 1); });
  EXPECT_TRUE(seen.contains({0, 1})) << "the second before the first";
  EXPECT_TRUE(seen.contains({1, 0}));
}

TEST_F(Overtaking, NotAcrossARelease) {
  const auto seen = pairs_seen([&] { packet(0, 0, 1), memory().release(0), packet(0, 1, 1); });
  EXPECT_FALSE(seen.contains({0, 1}));
  EXPECT_TRUE(seen.contains({1, 1}));
}

TEST_F(Overtaking, NotAtTheSamePlace) {
  run_many([&] { packet(0, 0, 1), packet(0, 0, 2); },
           [&] {
             std::uint64_t before = 0;
             for (int look = 0; look < 8; ++look) {
               EXPECT_GE(packets_[0], before);
               before = packets_[0];
               simulation_.interrupt(1);
             }
           });
}

TEST_F(Litmus, TheWordsOfAFlagMayArriveApart) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  run_many([&] { signal(0, Publish::kLoads); },
           [&] {
             for (int look = 0; look < 8; ++look) {
               seen.insert({flags_[1].epoch, flags_[1].check});
               simulation_.interrupt(1);
             }
           });
  EXPECT_TRUE(seen.contains({0, 1}));
  EXPECT_TRUE(seen.contains({1, 0}));
}

TEST_F(Litmus, AFiberSeesItsOwnStores) {
  run_many(
      [&] {
        store(0, 0, 1), store(0, 0, 2);
        EXPECT_EQ(load(0, 0), 2);
      },
      [] {});
}

// --- bulk copies ---

class Bulk : public Litmus {
 protected:
  // Rank 0 fills words 0..3 and copies them to words 8..11, which rank 1 reads.
  void fill_and_fence(bool fence = true) {
    for (int word = 0; word < 4; ++word) store(0, word, 7);
    if (fence) memory().proxy_fence(0);
  }
  void copy() { memory().bulk_copy(0, at(8), at(0), 4 * sizeof(int)); }
  Breaches read_by_rank_1(const Program& writer) {
    return run_many(writer, [&] {
      wait(1);
      EXPECT_EQ(load(1, 8), 7);
    });
  }
};

TEST_F(Bulk, ArrivesOnceItWasWaitedFor) {
  EXPECT_EQ(read_by_rank_1([&] {
              fill_and_fence(), copy(), memory().wait_written(0), signal(0, Publish::kStores);
            }),
            Breaches{Breach::kNone});
}

TEST_F(Bulk, IsNotHeldBackByARelease) {
  const auto breaches = run_many([&] { fill_and_fence(), copy(), signal(0, Publish::kStores); },
                                 [&] { wait(1), load(1, 8); });
  EXPECT_TRUE(breaches.contains(Breach::kBulkTarget));
}

TEST_F(Bulk, SeesOrdinaryStoresOnlyAcrossAProxyFence) {
  const auto breaches = run_many([&] { fill_and_fence(false), copy(); }, [] {});
  EXPECT_EQ(breaches, Breaches{Breach::kBulkSource});
}

TEST_F(Bulk, ReadsItsSourceLate) {
  const auto breaches = run_many([&] { fill_and_fence(), copy(), store(0, 0, 9); }, [] {});
  EXPECT_TRUE(breaches.contains(Breach::kBulkSource));
}

TEST_F(Bulk, TheSourceIsFreeOnceItWasWaitedFor) {
  EXPECT_EQ(read_by_rank_1([&] {
              fill_and_fence(), copy(), memory().wait_source_free(0), store(0, 0, 9);
              memory().wait_written(0), signal(0, Publish::kStores);
            }),
            Breaches{Breach::kNone});
}

TEST_F(Bulk, FromSharedMemoryIsAsLateButKeepsItsBytes) {
  const auto store_in_bulk = [this] {
    const std::vector<int> shared(4, 7);  // which is gone before the copy is complete
    memory().bulk_store(0, at(8), reinterpret_cast<const std::byte*>(shared.data()), 16);
    EXPECT_TRUE(memory().copies_in_bulk(0));
  };
  EXPECT_EQ(read_by_rank_1([&] {
              store_in_bulk(), memory().wait_written(0), signal(0, Publish::kStores);
              EXPECT_FALSE(memory().copies_in_bulk(0));
            }),
            Breaches{Breach::kNone});
  const auto breaches =
      run_many([&] { store_in_bulk(), signal(0, Publish::kStores); }, [&] { wait(1), load(1, 8); });
  EXPECT_TRUE(breaches.contains(Breach::kBulkTarget));
}

// --- waiting ---

TEST_F(Litmus, WhoWaitsForEachOtherIsSaid) {
  RandomSchedule schedule(1, 2);
  EXPECT_EQ(run(
                schedule, [&] { simulation_.wait_for_flag(0, &flags_[0], 1); },
                [&] { simulation_.wait_for_flag(1, &flags_[1], 3); }),
            Breach::kDeadlock);
  EXPECT_EQ(simulation_.violation().text,
            "all wait: rank 0 block 0 for flag 0 (epoch 1 expected, 0 seen); rank 1 block 0 for "
            "flag 1 (epoch 3 expected, 0 seen);");
}

TEST_F(Litmus, TheSameSeedTellsTheSameStory) {
  const auto story_of = [&](std::uint64_t seed) {
    std::vector<std::string> story;
    simulation_.tell(&story);
    RandomSchedule schedule(seed, 2);
    run(
        schedule, [&] { store(0, 0, 7), store(0, 1, 7), signal(0, Publish::kStores); },
        [&] { wait(1), load(1, 0), load(1, 1); });
    simulation_.tell(nullptr);
    return story;
  };
  std::set<std::vector<std::string>> different;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(story_of(seed), story_of(seed));
    different.insert(story_of(seed));
  }
  EXPECT_GT(different.size(), 10u);
}

}  // namespace
}  // namespace tutti::simulated
