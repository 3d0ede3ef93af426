#include "operation/checks.hpp"

#include <limits>
#include <span>

#include "base/try.hpp"

namespace tutti {
namespace {

Status check_alignment(const Call& call, const void* buffer) {
  const std::size_t element = size_of(call.dtype);
  if (address(buffer) % element == 0) return Status::ok();
  return invalid(call,
                 fmt::format("buffers must be aligned to the element size, {} bytes", element));
}

Status check_device_scalar(const Call& call) {
  if (call.op.device_scalar == nullptr) return Status::ok();
  if (call.op.kind != OpKind::kPreMulSum) {
    return invalid(call, fmt::format("device_scalar is the multiplier of premulsum: with {} it "
                                     "must be null",
                                     to_string(call.op.kind)));
  }
  const std::size_t element = size_of(call.dtype);
  if (address(call.op.device_scalar) % element == 0) return Status::ok();
  return invalid(
      call, fmt::format("device_scalar must be aligned to the element size, {} bytes", element));
}

// Blocks that begin late would read what earlier ones have stored.
Status check_scalar_outside(const Call& call, std::size_t output_bytes) {
  if (call.op.device_scalar == nullptr || call.output == nullptr) return Status::ok();
  const std::uintptr_t scalar = address(call.op.device_scalar), output = address(call.output);
  if (scalar + size_of(call.dtype) <= output || output + output_bytes <= scalar) {
    return Status::ok();
  }
  return invalid(call, "device_scalar lies in the output: use other memory");
}

// `call.count` is as the user gave it.
Status check_values(const Call& call, int ranks) {
  TUTTI_TRY(check_types(call));
  if (has_root(call.collective) && (call.root < 0 || call.root >= ranks)) {
    return invalid(call, fmt::format("root {}: there are {} ranks", call.root, ranks));
  }
  const bool pieces = has_pieces(call.collective);
  const std::size_t all = size_of(call.dtype) * static_cast<std::size_t>(pieces ? ranks : 1);
  if (call.count <= kMostBytes / all) return Status::ok();
  return invalid(call, pieces ? "ranks x count overflows" : "count overflows");
}

// Why input and output, which overlap, may not lie as they do.
std::string_view why_apart(const Call& call) {
  const Collective collective = call.collective;
  if (has_root(collective)) {
    return has_pieces(collective)
               ? "the root's input and output overlap: it does not run in place"
               : "the root's input and output overlap in part: use the same buffer, or two";
  }
  if (!has_pieces(collective)) {
    return "input and output overlap in part: use the same buffer, or two";
  }
  if (is_uneven(collective)) {
    return call.lengths.are_on_device()
               ? "input and output overlap: with counts on the device it does not run in place"
           : runs_in_place(collective)
               ? "input and output overlap: in place, the smaller one lies where this rank's piece "
                 "of the larger one does, and else it lies outside"
               : "input and output overlap: it does not run in place";
  }
  if (call.norm.hidden > 0) {
    return "input and output overlap: where rows are split it does not run in place";
  }
  if (!runs_in_place(collective)) {
    return "input and output overlap: it does not run in place, since other ranks' pieces would "
           "come to where this rank's own have not left: use two buffers";
  }
  return input_is_piece(collective)
             ? "input and output overlap: in place, input is output + rank * count elements, and "
               "else it lies outside"
             : "input and output overlap: in place, output is input + rank * count elements, and "
               "else it lies outside";
}

// Counts travel between ranks in 32 bits.
constexpr std::size_t kMostCount = std::numeric_limits<std::uint32_t>::max() - 1;

Status check_lengths(const Call& call, std::span<const std::size_t> lengths, std::size_t most) {
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    if (lengths[r] <= most) continue;
    return invalid(
        call, fmt::format("the count of rank {} is {}, and the most is {}", r, lengths[r], most));
  }
  return Status::ok();
}

// `call.count` is of the longest piece by now.
Status check_uneven_buffers(const Call& call, int rank, int ranks) {
  const Sides sides = call.sides(rank, ranks);
  if (sides.input > 0) TUTTI_TRY(check_buffer(call, call.input));
  if (sides.output > 0) TUTTI_TRY(check_buffer(call, call.output));
  return check_overlap(call, rank, ranks);
}

// Whether the smaller of two buffers may lie in the larger one, at its place.
bool may_be_in_place(const Call& call) {
  if (has_root(call.collective)) return !has_pieces(call.collective);
  return runs_in_place(call.collective) && !call.lengths.are_on_device() && call.norm.hidden == 0;
}

}  // namespace

Status check_types(const Call& call) {
  if (static_cast<std::size_t>(call.dtype) >= kAllDataTypes.size()) {
    return invalid(call, "unknown dtype");
  }
  if (static_cast<std::size_t>(call.op.kind) >= kAllOps.size()) return invalid(call, "unknown op");
  return check_device_scalar(call);
}

Status check_options(std::string_view operation, const CallOptions& options) {
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

Status check_buffer(const Call& call, const void* buffer) {
  return buffer == nullptr ? invalid(call, "null buffer") : check_alignment(call, buffer);
}

Status check_overlap(const Call& call, int rank, int ranks) {
  const Sides sides = call.sides(rank, ranks);
  TUTTI_TRY(check_scalar_outside(call, sides.output));
  if (sides.input == 0 || sides.output == 0) return Status::ok();
  const std::uintptr_t input = address(call.input), output = address(call.output);
  if (input + sides.input <= output || output + sides.output <= input) return Status::ok();
  if (may_be_in_place(call) && sides.are_in_place(call.input, call.output)) return Status::ok();
  return invalid(call, why_apart(call));
}

Result<Call> checked(Call call, int rank, int ranks, bool has_both) {
  TUTTI_TRY(check_values(call, ranks));
  const RootSide alone = root_side(call.collective);
  const bool is_root = alone != RootSide::kNone && rank == call.root;
  const bool has_input = alone != RootSide::kInput || is_root || has_both;
  const bool has_output = alone != RootSide::kOutput || is_root || has_both;
  if (!has_input) call.input = nullptr;
  if (!has_output) call.output = nullptr;
  if (has_pieces(call.collective)) call.count *= static_cast<std::size_t>(ranks);
  if (call.count == 0) {
    if (alone != RootSide::kNone) call.input = call.output = nullptr;  // alike on all ranks
    return call;
  }
  if (has_input && has_output && (call.input == nullptr || call.output == nullptr)) {
    return invalid(call, "null buffer");
  }
  if (has_input) TUTTI_TRY(check_buffer(call, call.input));
  if (has_output) TUTTI_TRY(check_buffer(call, call.output));
  if (alone == RootSide::kNone || is_root) TUTTI_TRY(check_overlap(call, rank, ranks));
  return call;
}

Result<Call> checked_uneven(Call call, std::size_t most, int rank, int ranks) {
  TUTTI_TRY(check_types(call));
  if (most > kMostCount) {
    return invalid(call, fmt::format("a count of {}: below 2^32 - 1 are taken", most));
  }
  TUTTI_TRY(check_lengths(call, call.lengths.sent, most));
  TUTTI_TRY(check_lengths(call, call.lengths.taken, most));
  call.count = most * static_cast<std::size_t>(ranks);
  if (most == 0) call.input = call.output = nullptr;
  TUTTI_TRY(check_uneven_buffers(call, rank, ranks));
  return call;
}

}  // namespace tutti
