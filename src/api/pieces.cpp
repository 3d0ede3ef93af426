#include "api/pieces.hpp"

#include <fmt/format.h>

#include "api/checks.hpp"
#include "base/try.hpp"

namespace tutti {
namespace {

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
  TUTTI_TRY(check_types(call));
  if (call.count == 0) return Status::ok();
  const std::size_t element = size_of(call.dtype);
  const std::size_t all = element * static_cast<std::size_t>(ranks);
  if (call.count > kMostBytes / all) {
    return invalid(call, "ranks x count overflows");
  }
  if (call.input == nullptr || call.output == nullptr) return invalid(call, "null buffer");
  TUTTI_TRY(check_alignment(call, call.input));
  return check_alignment(call, call.output);
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
