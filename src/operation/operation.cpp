#include "operation/operation.hpp"

#include <fmt/format.h>

namespace tutti {

std::string to_string(const Operation& operation) {
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

}  // namespace tutti
