// What can be seen to be wrong with a call, without asking anybody: by the shape of its collective.
// Equal arguments give equal answers on every rank, but for what is wrong with buffers that only
// the root has, so that a refused call leaves the group usable.
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

Status check_options(std::string_view operation, const CallOptions& options);
Status check_types(const Call& call);
// Of a buffer that holds anything.
Status check_buffer(const Call& call, const void* buffer);
// Of input and output where both hold anything, and of the output and a multiplier in memory;
// `call.count` is of the larger one.
Status check_overlap(const Call& call, int rank, int ranks);

// The call as the group takes it: `count` is of the larger buffer (the user's is of one rank's
// piece where the collective has pieces), and a buffer that only the root has is null on other
// ranks, as both are where there is nothing to do. `has_both`: other ranks than the root have
// theirs, too.
Result<Call> checked(Call call, int rank, int ranks, bool has_both = false);
// The same of uneven pieces, with their lengths. `most`: the longest piece of any rank.
Result<Call> checked_uneven(Call call, std::size_t most, int rank, int ranks);

}  // namespace tutti
