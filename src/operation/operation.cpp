#include "operation/operation.hpp"

#include <fmt/format.h>

namespace tutti {
namespace {

std::string step_text(const Operation& operation) {
  if (operation.row == nullptr) return fmt::format("pipeline #{}", operation.sequence);
  const Collective collective = operation.row->collective;
  if (operation.messages > 1) {
    return fmt::format("{} #{} ({} messages, {} bytes)", operation.row->id, operation.sequence,
                       operation.messages, operation.count);
  }
  if (operation.messages == 1) {
    return fmt::format("{} #{} ({} x {}, {} rank {})", operation.row->id, operation.sequence,
                       operation.count, to_string(operation.dtype), operation.sends ? "to" : "from",
                       operation.peer);
  }
  if (is_uneven(collective)) {
    return fmt::format("{} #{} (up to {} x {} of a rank)", operation.row->id, operation.sequence,
                       operation.count, elements_text(collective, operation.dtype, operation.op));
  }
  const std::string root = has_root(collective) ? fmt::format(", root {}", operation.root) : "";
  return fmt::format("{} #{} ({} x {}{})", operation.row->id, operation.sequence, operation.count,
                     elements_text(collective, operation.dtype, operation.op), root);
}

}  // namespace

Operation describe(const Call& call, int ranks) {
  if (call.messages.empty()) {
    const bool uneven = is_uneven(call.collective);
    return {.count = uneven ? call.count / static_cast<std::size_t>(ranks) : call.count,
            .dtype = call.dtype,
            .op = call.op.kind,
            .root = call.root,
            .step_of = call.step_of};
  }
  const MessageCall& first = call.messages.front();
  const bool alone = call.messages.size() == 1;
  std::size_t bytes = 0;
  for (const MessageCall& message : call.messages) bytes += message.bytes();
  return {.count = alone ? first.count : bytes,
          .dtype = alone ? first.dtype : DataType::kUint8,
          .messages = static_cast<int>(call.messages.size()),
          .peer = first.peer,
          .sends = first.input != nullptr};
}

std::string to_string(const Operation& operation) {
  const std::string step = step_text(operation);
  return operation.step_of == nullptr ? step : fmt::format("{} of {}", step, *operation.step_of);
}

}  // namespace tutti
