// Calls between pairs of ranks.

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "operation/checks.hpp"
#include "operation/group_order.hpp"
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

}  // namespace

Result<std::vector<Call>> operations_of(CommunicatorImpl& communicator,
                                        std::vector<Call> messages) {
  MessagesOfRank mine{.rank = communicator.rank(),
                      .ranks = communicator.size(),
                      .usual_timeout = communicator.timeout_of(Operation{}).value};
  TUTTI_TRY(join_own(mine.rank, messages));
  mine.messages.reserve(messages.size());
  for (Call& call : messages) {
    TUTTI_ASSIGN(const OperationPlan plan, communicator.plan_message(call.messages.front(), call));
    mine.messages.push_back({std::move(call), plan.algorithm->id});
  }
  return operations_in_order(std::move(mine));
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
