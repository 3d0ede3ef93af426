// The order of a group's operations, as a pure function of what all ranks know: whatever order each
// rank lists its calls in, no rank waits for what another one has behind something that waits for
// it. Ranks are run here as what waits for what.
#include "operation/group_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti::test {
namespace {

using Random = std::mt19937_64;
using std::chrono::milliseconds;

constexpr std::array<std::string_view, 2> kAlgorithms = {"send_recv/nccl", "send_recv/push"};

// A message of a group; `number` counts those of its pair and algorithm.
struct Traffic {
  int from, to;
  std::size_t algorithm;
  int blocks;  // an option: equal at both ends
};

std::vector<Traffic> traffic_of(Random& random, int ranks, std::size_t messages) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  std::vector<Traffic> all;
  while (all.size() < messages) {
    const Traffic one{below(ranks), below(ranks), random() % kAlgorithms.size(), below(2)};
    if (one.from != one.to) all.push_back(one);
  }
  return all;
}

// Addresses stand for messages: each end is given the same one.
RoutedMessage end_of(const std::vector<Traffic>& all, std::size_t index, bool sent) {
  auto* const place = reinterpret_cast<char*>(index * 16 + 16);
  const Traffic& one = all[index];
  RoutedMessage message{.call = {.collective = Collective::kSendRecv},
                        .algorithm = kAlgorithms[one.algorithm]};
  message.call.options.blocks = one.blocks;
  message.call.messages = {{.input = sent ? place : nullptr,
                            .output = sent ? nullptr : place,
                            .count = 1,
                            .peer = sent ? one.to : one.from}};
  return message;
}
std::size_t index_of(const MessageCall& message) {
  const void* const place = message.input != nullptr ? message.input : message.output;
  return reinterpret_cast<std::uintptr_t>(place) / 16 - 1;
}

// What a rank lists: messages to one peer, and from one, in their order, all else at random.
std::vector<RoutedMessage> listed_by(int rank, const std::vector<Traffic>& all, Random& random) {
  std::map<std::pair<int, bool>, std::vector<RoutedMessage>> queues;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].from == rank) queues[{all[k].to, true}].push_back(end_of(all, k, true));
    if (all[k].to == rank) queues[{all[k].from, false}].push_back(end_of(all, k, false));
  }
  std::vector<RoutedMessage> listed;
  while (!queues.empty()) {
    const auto queue =
        std::next(queues.begin(), static_cast<std::ptrdiff_t>(random() % queues.size()));
    listed.push_back(std::move(queue->second.front()));
    queue->second.erase(queue->second.begin());
    if (queue->second.empty()) queues.erase(queue);
  }
  return listed;
}

using Order = std::function<std::vector<Call>(MessagesOfRank)>;

// Whether every rank ends: an operation is over when both ends of all its messages have begun.
bool all_end(const std::vector<std::vector<Call>>& ranks, std::size_t messages) {
  std::vector<std::size_t> at(ranks.size());
  for (;;) {
    std::vector<int> ends(messages);
    const auto each_current = [&](std::size_t r, auto&& f) {
      for (std::size_t k = 0; k <= at[r] && k < ranks[r].size(); ++k) {
        for (const MessageCall& message : ranks[r][k].messages) f(index_of(message), k == at[r]);
      }
    };
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      each_current(r, [&](std::size_t message, bool) { ++ends[message]; });
    }
    bool moved = false, over = true;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (at[r] == ranks[r].size()) continue;
      over = false;
      bool waits = false;
      each_current(r, [&](std::size_t message, bool current) {
        waits = waits || (current && ends[message] < 2);
      });
      if (!waits) {
        ++at[r];
        moved = true;
      }
    }
    if (over || !moved) return over;
  }
}

// How many of so many random groups hang.
int hanging(const Order& order, int groups) {
  int hangs = 0;
  for (int seed = 1; seed <= groups; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const int ranks = 2 + seed % 4;
    const auto all = traffic_of(random, ranks, 30 + random() % 200);
    std::vector<std::vector<Call>> operations;
    for (int rank = 0; rank < ranks; ++rank) {
      operations.push_back(
          order({.rank = rank, .ranks = ranks, .messages = listed_by(rank, all, random)}));
    }
    if (!all_end(operations, all.size())) ++hangs;
  }
  return hangs;
}

TEST(GroupOrder, NoMessageWaitsForOneBehindIt) { EXPECT_EQ(hanging(operations_in_order, 200), 0); }

// Each of these orders is known to one end alone, or cut where the other end does not.
TEST(GroupOrder, OrdersThatOneEndKnowsHang) {
  const auto cut = [](std::vector<RoutedMessage> messages) {
    std::vector<Call> operations;
    for (RoutedMessage& message : messages) {
      const bool fresh = operations.empty() || operations.back().messages.size() == kMaxMessages;
      if (fresh) {
        operations.push_back(std::move(message.call));
      } else {
        operations.back().messages.push_back(message.call.messages.front());
      }
    }
    return operations;
  };
  const auto sorted_by = [&](auto key) {
    return [&cut, key](MessagesOfRank given) {
      std::stable_sort(given.messages.begin(), given.messages.end(),
                       [&](const RoutedMessage& a, const RoutedMessage& b) {
                         return key(given, a.call.messages.front()) <
                                key(given, b.call.messages.front());
                       });
      return cut(std::move(given.messages));
    };
  };
  const Order as_listed = [&](MessagesOfRank given) { return cut(std::move(given.messages)); };
  const Order by_peer =
      sorted_by([](const MessagesOfRank&, const MessageCall& message) { return message.peer; });
  const Order sends_first = sorted_by([](const MessagesOfRank&, const MessageCall& message) {
    return message.input == nullptr ? 1 : 0;
  });
  // Of its own view: to the right, and from the right.
  const Order by_own_distance =
      sorted_by([](const MessagesOfRank& given, const MessageCall& message) {
        return distance_of(given.rank, message.peer, given.ranks);
      });
  EXPECT_GT(hanging(as_listed, 60), 0);
  EXPECT_GT(hanging(by_peer, 60), 0);
  EXPECT_GT(hanging(sends_first, 60), 0);
  EXPECT_GT(hanging(by_own_distance, 60), 0);
}

TEST(GroupOrder, IsByDistanceThenByCall) {
  const auto message = [](int peer, bool sent, std::size_t count) {
    static char place;
    RoutedMessage made{.call = {.collective = Collective::kSendRecv}, .algorithm = kAlgorithms[0]};
    made.call.messages = {{.input = sent ? &place : nullptr,
                           .output = sent ? nullptr : &place,
                           .count = count,
                           .peer = peer}};
    return made;
  };
  const auto operations = operations_in_order(
      {.rank = 1,
       .ranks = 4,
       .messages = {message(0, true, 1), message(0, false, 2), message(2, true, 3),
                    message(2, true, 4), message(3, false, 5), message(0, false, 6)}});
  ASSERT_EQ(operations.size(), 1U);
  std::vector<std::size_t> counts;
  for (const MessageCall& each : operations.front().messages) counts.push_back(each.count);
  EXPECT_EQ(counts, (std::vector<std::size_t>{2, 3, 6, 4, 5, 1}));
}

TEST(GroupOrder, AnOperationHasOneAlgorithmOneSetOfOptionsAndTheLongestTimeout) {
  const std::vector<Traffic> all = {{0, 1, 1, 0}, {0, 1, 0, 0}, {0, 1, 1, 8}, {0, 1, 1, 0}};
  MessagesOfRank given{.rank = 0, .ranks = 2, .usual_timeout = milliseconds(50), .messages = {}};
  for (std::size_t k = 0; k < all.size(); ++k) given.messages.push_back(end_of(all, k, true));
  given.messages[0].call.options.timeout = milliseconds(10);
  const auto three = operations_in_order(given);
  ASSERT_EQ(three.size(), 3U);
  EXPECT_EQ(index_of(three[0].messages.front()), 1U);
  ASSERT_EQ(three[1].messages.size(), 2U);
  EXPECT_EQ(three[1].options.timeout, milliseconds(0)) << "the communicator's is longer";
  EXPECT_EQ(three[2].options.blocks, 8);
  given.usual_timeout = milliseconds(5);
  EXPECT_EQ(operations_in_order(given)[1].options.timeout, milliseconds(10));
}

// ---- Of communicators, whose operations share each rank's one stream

struct Part {
  std::uint64_t communicator;
  std::vector<int> ranks;
};

// Whether every rank ends whose operations run one after another, each with all of its ranks.
bool all_end(const std::vector<std::vector<OperationPlace>>& ranks,
             const std::vector<Part>& parts) {
  std::vector<std::size_t> at(ranks.size());
  const auto current = [&](int rank) -> const OperationPlace* {
    const auto r = static_cast<std::size_t>(rank);
    return at[r] < ranks[r].size() ? &ranks[r][at[r]] : nullptr;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (const Part& part : parts) {
      const OperationPlace* const first = current(part.ranks.front());
      const bool together = std::all_of(part.ranks.begin(), part.ranks.end(), [&](int rank) {
        const OperationPlace* const one = current(rank);
        return one != nullptr && first != nullptr && one->communicator == part.communicator &&
               one->index == first->index;
      });
      if (!together) continue;
      for (const int rank : part.ranks) ++at[static_cast<std::size_t>(rank)];
      moved = true;
    }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (at[r] < ranks[r].size()) return false;
  }
  return true;
}

// Each rank lists the communicators it is in, in its own order, with `calls` collectives of each.
template <class Compare>
int hanging_communicators(const Compare& earlier, int groups) {
  constexpr int kRanks = 4;
  int hangs = 0;
  for (int seed = 1; seed <= groups; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    std::vector<Part> parts(3);
    std::vector<std::vector<OperationPlace>> ranks(kRanks);
    for (Part& part : parts) {
      part.communicator = random();
      for (int rank = 0; rank < kRanks; ++rank) {
        if (random() % 4 != 0) part.ranks.push_back(rank);
      }
      if (part.ranks.empty()) part.ranks.push_back(0);
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      auto& list = ranks[static_cast<std::size_t>(rank)];
      std::vector<Part> own = parts;
      std::shuffle(own.begin(), own.end(), random);
      for (const Part& part : own) {
        const auto place = std::find(part.ranks.begin(), part.ranks.end(), rank);
        if (place == part.ranks.end()) continue;
        for (std::size_t k = 0; k < 2; ++k) {
          list.push_back({.communicator = part.communicator,
                          .index = k,
                          .rank = static_cast<int>(place - part.ranks.begin())});
        }
      }
      std::stable_sort(list.begin(), list.end(), earlier);
    }
    if (!all_end(ranks, parts)) ++hangs;
  }
  return hangs;
}

TEST(GroupOrder, CommunicatorsAreInOneOrderOnAllRanks) {
  using Place = OperationPlace;
  EXPECT_EQ(hanging_communicators(std::less<>(), 500), 0);
  EXPECT_GT(hanging_communicators([](const Place&, const Place&) { return false; }, 100), 0);
  EXPECT_GT(
      hanging_communicators([](const Place& a, const Place& b) { return a.rank < b.rank; }, 100),
      0);
}

TEST(GroupOrder, CollectivesComeFirstAndRanksOfOneThreadBesideEachOther) {
  const OperationPlace collective{.communicator = 2, .index = 1, .rank = 3};
  const OperationPlace message{.communicator = 2, .messages_by = kAlgorithms[0], .rank = 0};
  EXPECT_LT(collective, message);
  EXPECT_LT((OperationPlace{.communicator = 1, .messages_by = kAlgorithms[1]}), collective);
  EXPECT_LT((OperationPlace{.communicator = 2, .index = 1, .rank = 2}), collective);
  EXPECT_LT((OperationPlace{.communicator = 2, .index = 0, .rank = 7}), collective);
}

}  // namespace
}  // namespace tutti::test
