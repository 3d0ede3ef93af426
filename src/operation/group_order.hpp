// The order in which the operations of a group of calls run. It follows from what all ranks, or
// both ends of a message, know: never from the order in which a rank lists its communicators, or
// its messages to different peers. So no rank waits for what another one has behind something that
// waits for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "operation/call.hpp"

namespace tutti {

// An operation among those of a group. Operations run by growing places: communicator after
// communicator; of each its collectives, in the order of their calls, then its messages. Places of
// one communicator's ranks are neighbours, so that one thread can submit all of them together.
struct OperationPlace {
  std::uint64_t communicator = 0;  // a number that all of its ranks know
  std::string_view messages_by;    // the algorithm of messages; empty: a collective
  std::size_t index = 0;           // among these of its rank
  int rank = 0;

  friend bool operator<(const OperationPlace& a, const OperationPlace& b) {
    return std::tie(a.communicator, a.messages_by, a.index, a.rank) <
           std::tie(b.communicator, b.messages_by, b.index, b.rank);
  }
};

// How far the receiver of a message is behind its sender, counted in ranks.
constexpr int distance_of(int from, int to, int ranks) { return (to - from + ranks) % ranks; }

// A call of one message, and the algorithm that runs it: the same at both ends.
struct RoutedMessage {
  Call call;
  std::string_view algorithm;  // Algorithm::id
};

// Of one rank, in the order of its calls.
struct MessagesOfRank {
  int rank = 0, ranks = 1;
  std::chrono::milliseconds usual_timeout{0};  // of calls that have none of their own
  std::vector<RoutedMessage> messages;
};

// As operations of up to kMaxMessages, which have one algorithm and equal options. Their order is
// by algorithm and options, then by distance, then by call, then by sender. Both ends of a message
// know all of that, and no two messages are equal in it: where each rank cuts its own list into
// operations, a message waits only for messages before it. An operation waits as long as the most
// patient of its messages, and is in the stream of its first one.
std::vector<Call> operations_in_order(MessagesOfRank given);

}  // namespace tutti
