// What can be seen to be wrong with a call of any collective, without asking anybody.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "base/units.hpp"
#include "operation/call.hpp"

namespace tutti {

inline Status invalid(std::string_view operation, std::string_view text) {
  return {StatusCode::kInvalidArgument, fmt::format("{}: {}", operation, text)};
}
inline Status invalid(const Call& call, std::string_view text) {
  return invalid(to_string(call.collective), text);
}

inline std::uintptr_t address(const void* buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer);
}

inline Status check_types(const Call& call) {
  if (static_cast<std::size_t>(call.dtype) >= kAllDataTypes.size()) {
    return invalid(call, "unknown dtype");
  }
  if (static_cast<std::size_t>(call.op.kind) >= kAllOps.size()) return invalid(call, "unknown op");
  return Status::ok();
}

inline Status check_alignment(const Call& call, const void* buffer) {
  const std::size_t element = size_of(call.dtype);
  if (address(buffer) % element == 0) return Status::ok();
  return invalid(call,
                 fmt::format("buffers must be aligned to the element size, {} bytes", element));
}

inline Status check_options(std::string_view operation, const CallOptions& options) {
  if (options.timeout.count() < 0) return invalid(operation, "a timeout must not be negative");
  if (options.blocks < 0 || options.threads < 0) {
    return invalid(operation, "blocks and threads must not be negative");
  }
  if (options.sm_budget.value_or(0) < 0) {
    return invalid(operation,
                   fmt::format("sm_budget is {}: a number of SMs from 0 on, or none for no limit",
                               *options.sm_budget));
  }
  if (options.chunk_bytes <= kMostChunkBytes) return Status::ok();
  return invalid(operation,
                 fmt::format("chunk_bytes {}: at most {}", options.chunk_bytes, kMostChunkBytes));
}

// Of one that holds anything.
inline Status check_buffer(const Call& call, const void* buffer) {
  return buffer == nullptr ? invalid(call, "null buffer") : check_alignment(call, buffer);
}

}  // namespace tutti
