#include "tutti/status.hpp"

#include <fmt/core.h>

#include "base/guard.hpp"

namespace tutti {

std::string_view to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kTimeout:
      return "timeout";
    case StatusCode::kPeerFailed:
      return "peer failed";
    case StatusCode::kMismatch:
      return "mismatch";
    case StatusCode::kAborted:
      return "aborted";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kPermission:
      return "permission denied";
    case StatusCode::kSystem:
      return "system error";
    case StatusCode::kCuda:
      return "CUDA error";
    case StatusCode::kNccl:
      return "NCCL error";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown code";
}

std::string Status::to_string() const {
  if (is_ok()) return "ok";
  return guarded_text([&] { return fmt::format("{}: {}", tutti::to_string(code_), message_); });
}

Status Status::with_context(std::string_view context) const {
  if (is_ok()) return {};
  // Without memory for a longer text it is still the same kind of failure.
  return guarded_by(
      [&]() -> Status {
        return {code_, fmt::format("{}: {}", context, message_), where_};
      },
      [&](const Status& failure) -> Status {
        return {code_, failure.message(), where_};
      });
}

}  // namespace tutti
