// What every kind of group does in the same way: gathering, splitting, descriptors, limits.
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <tuple>

#include "base/units.hpp"
#include "unit/bootstrap/groups.hpp"

namespace tutti {
namespace {

using namespace testing;

class Collectives : public ::testing::TestWithParam<std::tuple<GroupKind, int>> {
 protected:
  GroupKind kind() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Groups, Collectives,
                         ::testing::Combine(::testing::Values(GroupKind::kInProcess,
                                                              GroupKind::kLocal, GroupKind::kTcp),
                                            ::testing::Values(1, 2, 3, 8)),
                         [](const auto& parameter) {
                           return name_of(std::get<0>(parameter.param)) + "_" +
                                  std::to_string(std::get<1>(parameter.param));
                         });

TEST_P(Collectives, KnowWhoIsWho) {
  with_group(kind(), size(), [&](Bootstrap& group) {
    ASSERT_EQ(group.size(), size());
    ASSERT_EQ(group.identities().size(), static_cast<std::size_t>(size()));
    for (const PeerIdentity& peer : group.identities()) {
      EXPECT_EQ(peer.process_id, ::getpid());
      EXPECT_EQ(peer.process_token, group.identities()[group.rank()].process_token);
      EXPECT_EQ(peer.host_id, group.identities()[group.rank()].host_id);
      EXPECT_NE(peer.host_id, 0u);
      EXPECT_EQ(peer.folder_id, group.identities()[group.rank()].folder_id);
    }
    EXPECT_TRUE(group.passes_descriptors());
  });
}

TEST_P(Collectives, GatherPartsOfAnyLength) {
  const std::vector<std::size_t> lengths{0, 1, 100, 70'000, MiB};
  with_group(kind(), size(), [&](Bootstrap& group) {
    for (std::size_t round = 0; round < lengths.size(); ++round) {
      const auto length = [&](int rank) { return lengths[(round + rank) % lengths.size()]; };
      const Bytes mine = pattern(group.rank(), length(group.rank()));
      const auto parts = group.all_gather(mine, soon());
      ASSERT_TRUE(parts.is_ok()) << parts.status().to_string();
      ASSERT_EQ(parts->size(), static_cast<std::size_t>(size()));
      for (int r = 0; r < size(); ++r) EXPECT_TRUE(is_pattern((*parts)[r], r, length(r)));
    }
  });
}

TEST_P(Collectives, TakeTheLargestMessageAndNoLarger) {
  if (size() > 3) GTEST_SKIP() << "needs much memory";
  with_group(kind(), size(), [&](Bootstrap& group) {
    const Bytes large(Bootstrap::kMaxMessageBytes + 1, std::byte{7});
    const auto refused = group.all_gather(large, soon());
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
    const auto parts = group.all_gather(ByteView(large).first(large.size() - 1), soon());
    ASSERT_TRUE(parts.is_ok()) << "a refused call must leave the group usable: "
                               << parts.status().to_string();
    for (const Bytes& part : *parts) EXPECT_EQ(part.size(), Bootstrap::kMaxMessageBytes);
  });
}

TEST_P(Collectives, ManyBarriersInARow) {
  std::atomic<int> arrived{0};
  with_group(kind(), size(), [&](Bootstrap& group) {
    for (int round = 1; round <= 50; ++round) {
      arrived.fetch_add(1);
      ASSERT_TRUE(group.barrier(soon()).is_ok());
      EXPECT_GE(arrived.load(), round * size());
    }
  });
}

TEST_P(Collectives, SplitByColourAndOrderByKey) {
  with_group(kind(), size(), [&](Bootstrap& group) {
    const int color = group.rank() % 2;
    auto half = group.split(color, -group.rank(), soon());  // the other way round
    ASSERT_TRUE(half.is_ok()) << half.status().to_string();
    ASSERT_NE(*half, nullptr);
    const auto ranks = (*half)->all_gather(view_of(group.rank()), soon());
    ASSERT_TRUE(ranks.is_ok()) << ranks.status().to_string();
    ASSERT_EQ((*half)->size(), (size() + 1 - color) / 2);
    for (int r = 0; r < (*half)->size(); ++r) {
      const int highest = (size() - 1) % 2 == color ? size() - 1 : size() - 2;
      EXPECT_EQ(from_bytes<int>((*ranks)[r]), highest - 2 * r);
    }
    EXPECT_EQ(from_bytes<int>((*ranks)[(*half)->rank()]), group.rank());
  });
}

TEST_P(Collectives, SplitWithANegativeColourGivesNothing) {
  with_group(kind(), size(), [&](Bootstrap& group) {
    auto rest = group.split(group.rank() == 0 ? -1 : 5, 0, soon());
    ASSERT_TRUE(rest.is_ok());
    EXPECT_EQ(*rest == nullptr, group.rank() == 0);
    if (*rest) {
      EXPECT_EQ((*rest)->size(), size() - 1);
      EXPECT_EQ((*rest)->rank(), group.rank() - 1);
      EXPECT_TRUE((*rest)->barrier(soon()).is_ok());
    }
  });
}

// Groups within groups, alive at the same time, used in turn: none takes another's messages.
TEST_P(Collectives, SplitsMayBeSplitAgain) {
  with_group(kind(), size(), [&](Bootstrap& group) {
    auto a = group.split(0, group.rank(), soon());
    auto b = group.split(0, -group.rank(), soon());
    ASSERT_TRUE(a.is_ok() && b.is_ok());
    auto c = (*a)->split(group.rank() < 2 ? 0 : 1, 0, soon());
    ASSERT_TRUE(c.is_ok());
    for (int round = 0; round < 5; ++round) {
      for (Bootstrap* each : {&group, a->get(), b->get(), c->get()}) {
        const auto parts = each->all_gather(view_of(each->rank() * 100 + round), soon());
        ASSERT_TRUE(parts.is_ok()) << parts.status().to_string();
        for (int r = 0; r < each->size(); ++r) {
          EXPECT_EQ(from_bytes<int>((*parts)[r]), r * 100 + round);
        }
      }
    }
    EXPECT_EQ((*b)->rank(), size() - 1 - group.rank());
  });
}

// Fast ranks use, leave and make groups while slow ones have not even made them.
TEST_P(Collectives, GroupsComeAndGoAtDifferentTimes) {
  with_group(kind(), size(), [&](Bootstrap& group) {
    for (int round = 0; round < 20; ++round) {
      auto half = group.split(group.rank() % 2, 0, soon());
      ASSERT_TRUE(half.is_ok());
      if (group.rank() == round % size()) std::this_thread::sleep_for(1ms);
      ASSERT_TRUE((*half)->barrier(soon()).is_ok());
      (*half)->leave({});
    }
  });
}

TEST_P(Collectives, ExchangeDescriptorsBetweenAllPairs) {
  with_group(kind(), size(), [&](Bootstrap& group) {
    for (int round = 0; round < 3; ++round) {
      std::vector<Fd> files;
      std::vector<std::vector<int>> outgoing(size());
      const auto count = [](int from, int to) { return (2 * from + to) % 3; };
      const auto text = [&](int from, int to, int i) {
        return std::to_string(round * 10000 + from * 1000 + to * 100 + i);
      };
      for (int to = 0; to < size(); ++to) {
        for (int i = 0; i < count(group.rank(), to); ++i) {
          files.push_back(file_with(text(group.rank(), to, i)));
          outgoing[to].push_back(files.back().get());
        }
      }
      const auto incoming = group.exchange_descriptors(outgoing, soon());
      ASSERT_TRUE(incoming.is_ok()) << incoming.status().to_string();
      for (int from = 0; from < size(); ++from) {
        ASSERT_EQ((*incoming)[from].size(), static_cast<std::size_t>(count(from, group.rank())));
        for (int i = 0; i < count(from, group.rank()); ++i) {
          EXPECT_EQ(content_of((*incoming)[from][i].get()), text(from, group.rank(), i));
        }
      }
      for (const Fd& file : files) EXPECT_EQ(content_of(file.get()).size() > 0, true);
    }
  });
}

TEST_P(Collectives, RefuseDescriptorsThatCannotBeSent) {
  with_group(kind(), size(), [&](Bootstrap& group) {
    std::vector<std::vector<int>> outgoing(size());
    outgoing[0] = {1 << 20};
    EXPECT_EQ(group.exchange_descriptors(outgoing, soon()).status().code(),
              StatusCode::kInvalidArgument);
    outgoing[0].assign(Bootstrap::kMaxDescriptors + 1, 0);
    EXPECT_EQ(group.exchange_descriptors(outgoing, soon()).status().code(),
              StatusCode::kInvalidArgument);
    outgoing.resize(size() + 1);
    EXPECT_EQ(group.exchange_descriptors(outgoing, soon()).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_TRUE(group.barrier(soon()).is_ok()) << "refused calls must leave the group usable";
  });
}

TEST_P(Collectives, TimeoutsNameWhoIsMissing) {
  if (size() < 2) return;
  with_group(kind(), size(), [&](Bootstrap& group) {
    ASSERT_TRUE(group.barrier(soon()).is_ok());
    if (group.rank() == 0) {
      const auto began = Deadline::Clock::now();
      const Status status = group.barrier(Deadline(50ms));
      EXPECT_EQ(status.code(), StatusCode::kTimeout) << status.to_string();
      EXPECT_GE(Deadline::Clock::now() - began, 50ms);
      EXPECT_NE(status.message().find("rank 0 waited"), std::string::npos) << status.to_string();
      EXPECT_NE(status.message().find(size() == 2 ? "from rank 1 of 2" : "ranks 1"),
                std::string::npos)
          << status.to_string();
      EXPECT_NE(status.message().find("all_gather #2"), std::string::npos) << status.to_string();
      EXPECT_EQ(group.barrier(soon()).code(), StatusCode::kTimeout) << "a failure is final";
      group.announce_failure({0, StatusCode::kAborted, "the test is over"});
    } else {
      std::mutex mutex;
      std::condition_variable changed;
      bool told = false;
      group.set_failure_handler([&](const GroupFailure& failure) {
        EXPECT_EQ(failure.text, "the test is over");
        const std::lock_guard lock(mutex);
        told = true;
        changed.notify_all();
      });
      std::unique_lock lock(mutex);
      EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return told; }));
      lock.unlock();
      group.set_failure_handler(nullptr);
      EXPECT_EQ(group.barrier(soon()).code(), StatusCode::kAborted);
    }
  });
}

TEST_P(Collectives, DifferentCallsAreAMismatch) {
  if (size() < 2) return;
  if (kind() == GroupKind::kTcp) GTEST_SKIP() << "descriptors go over connections of their own";
  with_group(kind(), size(), [&](Bootstrap& group) {
    const std::vector<std::vector<int>> none(size());
    const Status status = group.rank() == 0 ? group.exchange_descriptors(none, soon()).status()
                                            : group.barrier(soon());
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    EXPECT_NE(status.message().find("all_gather #1"), std::string::npos) << status.to_string();
    EXPECT_NE(status.message().find("exchange_descriptors #1"), std::string::npos);
  });
}

}  // namespace
}  // namespace tutti
