#include "operation/group_order.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace tutti {
namespace {

// What messages of one operation have in common. Not the timeout, which may differ at both ends.
auto common_of(const RoutedMessage& message) {
  const CallOptions& options = message.call.options;
  return std::make_tuple(message.algorithm, options.algorithm, options.blocks, options.threads,
                         options.chunk_bytes, options.sm_budget);
}
using Common = decltype(common_of(std::declval<RoutedMessage>()));

// By distance, by call, by sender.
using Turn = std::tuple<int, int, int>;

struct Placed {
  Common common;
  Turn turn;
  RoutedMessage message;

  auto key() const { return std::tie(common, turn); }
};

// The longer one of two timeouts of calls; 0: `usual`.
std::chrono::milliseconds longer(std::chrono::milliseconds a, std::chrono::milliseconds b,
                                 std::chrono::milliseconds usual) {
  const auto length = [usual](std::chrono::milliseconds each) {
    return each.count() == 0 ? usual : each;
  };
  return length(a) < length(b) ? b : a;
}

}  // namespace

std::vector<Call> operations_in_order(MessagesOfRank given) {
  const int rank = given.rank;
  std::map<std::pair<int, bool>, int> calls;  // so far, of each peer and way
  std::vector<Placed> placed;
  placed.reserve(given.messages.size());
  for (RoutedMessage& message : given.messages) {
    const MessageCall& one = message.call.messages.front();
    const bool sent = one.input != nullptr;
    const int from = sent ? rank : one.peer, to = sent ? one.peer : rank;
    const Turn turn = {distance_of(from, to, given.ranks), calls[{one.peer, sent}]++, from};
    placed.push_back({common_of(message), turn, std::move(message)});
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return a.key() < b.key(); });

  std::vector<Call> operations;
  const Common* common = nullptr;  // of the last operation
  for (Placed& one : placed) {
    if (common == nullptr || *common != one.common ||
        operations.back().messages.size() == kMaxMessages) {
      operations.push_back(std::move(one.message.call));
    } else {
      Call& last = operations.back();
      last.messages.push_back(one.message.call.messages.front());
      last.options.timeout =
          longer(last.options.timeout, one.message.call.options.timeout, given.usual_timeout);
    }
    common = &one.common;
  }
  return operations;
}

}  // namespace tutti
