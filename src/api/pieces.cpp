#include "api/pieces.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

namespace tutti {
namespace {

Status invalid(const Call& call, std::string_view text) {
  return {StatusCode::kInvalidArgument, fmt::format("{}: {}", to_string(call.collective), text)};
}

std::uintptr_t address(const void* buffer) { return reinterpret_cast<std::uintptr_t>(buffer); }

// `call.count` is of all pieces by now.
Status check_overlap(const Call& call, int rank, int ranks) {
  const Sides sides = call.sides(rank, ranks);
  const std::uintptr_t input = address(call.input), output = address(call.output);
  const bool apart = input + sides.input <= output || output + sides.output <= input;
  if (apart) return Status::ok();
  if (call.norm.hidden > 0) {
    return invalid(call, "input and output overlap: where rows are split it does not run in place");
  }
  if (!runs_in_place(call.collective)) {
    return invalid(call,
                   "input and output overlap: it does not run in place, since other ranks' pieces "
                   "would come to where this rank's own have not left: use two buffers");
  }
  if (sides.are_in_place(call.input, call.output)) return Status::ok();
  const bool scatters = sides.input > sides.output;
  return invalid(call, fmt::format("input and output overlap: in place, {} + rank * count "
                                   "elements, and else it lies outside",
                                   scatters ? "output is input" : "input is output"));
}

Status check(const Call& call, int ranks) {
  if (static_cast<std::size_t>(call.dtype) >= kAllDataTypes.size()) {
    return invalid(call, "unknown dtype");
  }
  if (static_cast<std::size_t>(call.op.kind) >= kAllOps.size()) return invalid(call, "unknown op");
  if (call.count == 0) return Status::ok();
  const std::size_t element = size_of(call.dtype);
  const std::size_t all = element * static_cast<std::size_t>(ranks);
  if (call.count > std::numeric_limits<std::size_t>::max() / all) {
    return invalid(call, "ranks x count overflows");
  }
  if (call.input == nullptr || call.output == nullptr) return invalid(call, "null buffer");
  if (address(call.input) % element != 0 || address(call.output) % element != 0) {
    return invalid(call,
                   fmt::format("buffers must be aligned to the element size, {} bytes", element));
  }
  return Status::ok();
}

}  // namespace

Status submit_pieces(Communicator& communicator, Call call) {
  const int ranks = communicator.size();
  Status checked = check(call, ranks);
  if (!checked.is_ok()) return checked;
  call.count *= static_cast<std::size_t>(ranks);
  if (call.count > 0) checked = check_overlap(call, communicator.rank(), ranks);
  return checked.is_ok() ? submit(communicator, call) : checked;
}

}  // namespace tutti
