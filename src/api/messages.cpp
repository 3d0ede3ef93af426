// Calls between pairs of ranks.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>

#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "operation/checks.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

template <class AnyCall>
Status check(std::string_view name, const AnyCall& call, int ranks) {
  if (static_cast<std::size_t>(call.dtype) >= kAllDataTypes.size()) {
    return invalid(name, "unknown dtype");
  }
  if (call.peer < 0 || call.peer >= ranks) {
    return invalid(name, fmt::format("rank {}: there are {} ranks", call.peer, ranks));
  }
  const std::size_t element = size_of(call.dtype);
  if (call.count > kMostBytes / element) {
    return invalid(name, "count overflows");
  }
  if (call.count == 0) return Status::ok();
  if (call.buffer == nullptr) return invalid(name, "null buffer");
  if (reinterpret_cast<std::uintptr_t>(call.buffer) % element == 0) return Status::ok();
  return invalid(name,
                 fmt::format("buffers must be aligned to the element size, {} bytes", element));
}

template <class AnyCall>
Status submit_message(Communicator& communicator, const AnyCall& call, const MessageCall& message) {
  if (call.count == 0) return Status::ok();
  return submit(communicator, {.collective = Collective::kSendRecv,
                               .dtype = DataType::kUint8,
                               .stream = call.stream,
                               .options = call.options,
                               .messages = {message}});
}

// The k-th message that the rank sends to itself is the k-th that it takes from there.
Status join_own(int rank, std::vector<Call>& calls) {
  const auto next = [&](std::size_t from, bool sent) {
    while (from < calls.size()) {
      const MessageCall& message = calls[from].messages.front();
      const bool whole = message.input != nullptr && message.output != nullptr;
      if (message.peer == rank && !whole && (message.input != nullptr) == sent) break;
      ++from;
    }
    return from;
  };
  for (;;) {
    const std::size_t sent = next(0, true), taken = next(0, false);
    if (sent == calls.size() && taken == calls.size()) return Status::ok();
    if (sent == calls.size() || taken == calls.size()) {
      return invalid(sent == calls.size() ? "recv" : "send",
                     "of a rank's message to itself both ends belong into one group");
    }
    MessageCall& whole = calls[sent].messages.front();
    const MessageCall& end = calls[taken].messages.front();
    if (whole.count != end.count || whole.dtype != end.dtype) {
      return invalid("recv", "a rank's message to itself differs in count or dtype");
    }
    whole.output = end.output;
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(taken));
  }
}

// In an order that both ends of each message know, whatever order the calls were made in: then no
// operation, where there are several, waits for what the other end has in a later one.
void sort_alike(int rank, std::vector<Call>& calls) {
  using Place = std::tuple<int, int, int, int>;  // which of its pair and way, the pair, the sender
  std::map<std::pair<int, bool>, int> seen;
  std::vector<std::pair<Place, Call>> placed;
  placed.reserve(calls.size());
  for (Call& call : calls) {
    const MessageCall& message = call.messages.front();
    const bool sent = message.input != nullptr;
    const Place place = {seen[{message.peer, sent}]++, std::min(rank, message.peer),
                         std::max(rank, message.peer), sent ? rank : message.peer};
    placed.emplace_back(place, std::move(call));
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i] = std::move(placed[i].second);
}

}  // namespace

Result<std::vector<Call>> operations_of(CommunicatorImpl& communicator,
                                        const std::vector<Call>& messages) {
  std::vector<Call> calls = messages;
  TUTTI_TRY(join_own(communicator.rank(), calls));
  sort_alike(communicator.rank(), calls);
  std::map<std::string_view, std::vector<Call>>
      by_row;  // both ends go through the rows in one order
  for (const Call& call : calls) {
    TUTTI_ASSIGN(const OperationPlan plan, communicator.plan_message(call.messages.front(), call));
    std::vector<Call>& row = by_row[plan.algorithm->id];
    if (row.empty() || row.back().messages.size() == kMaxMessages) {
      row.push_back(call);
    } else {
      row.back().messages.push_back(call.messages.front());
    }
  }
  std::vector<Call> operations;
  for (auto& [name, row] : by_row) operations.insert(operations.end(), row.begin(), row.end());
  return operations;
}

Status send(Communicator& communicator, const Send& call) {
  return guarded(communicator, [&]() -> Status {
    TUTTI_TRY(check("send", call, communicator.size()));
    return submit_message(
        communicator, call,
        {.input = call.buffer, .count = call.count, .dtype = call.dtype, .peer = call.peer});
  });
}

Status recv(Communicator& communicator, const Recv& call) {
  return guarded(communicator, [&]() -> Status {
    TUTTI_TRY(check("recv", call, communicator.size()));
    return submit_message(
        communicator, call,
        {.output = call.buffer, .count = call.count, .dtype = call.dtype, .peer = call.peer});
  });
}

}  // namespace tutti
