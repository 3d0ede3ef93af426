// Calls of collectives of which one rank, the root, has an input or an output alone; and barrier.
#include <fmt/format.h>

#include <limits>

#include "algorithms/catalogue.hpp"
#include "api/checks.hpp"
#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

// On the root, which alone has both sides. `call.count` is of the larger one.
Status check_overlap(const Call& call, int ranks) {
  const Sides sides = call.sides(call.root, ranks);
  const std::uintptr_t input = address(call.input), output = address(call.output);
  const bool apart = input + sides.input <= output || output + sides.output <= input;
  if (apart || (input == output && !has_pieces(call.collective))) return Status::ok();
  return invalid(call, has_pieces(call.collective)
                           ? "the root's input and output overlap: it does not run in place"
                           : "the root's input and output overlap in part: use the same buffer, or "
                             "two");
}

Status check_values(const Call& call, int ranks) {
  TUTTI_TRY(check_types(call));
  if (call.root < 0 || call.root >= ranks) {
    return invalid(call, fmt::format("root {}: there are {} ranks", call.root, ranks));
  }
  const std::size_t element = size_of(call.dtype);
  const std::size_t pieces = has_pieces(call.collective) ? static_cast<std::size_t>(ranks) : 1;
  if (call.count > kMostBytes / (element * pieces)) {
    return invalid(call, pieces > 1 ? "ranks x count overflows" : "count overflows");
  }
  return Status::ok();
}

// NCCL's copy engines find the root's side by where each rank has its own of the same.
bool takes_both_sides(const Call& call) {
  const auto row = find_algorithm(call.collective, call.options.algorithm);
  return row.is_ok() && ((*row)->needs & kNeedsNcclCopyEngines) != 0;
}

// `call.count` is as the user gave it. Equal arguments give equal answers on every rank, but for
// what is wrong with the root's own buffers.
Status submit_rooted(Communicator& communicator, Call call) {
  const int ranks = communicator.size();
  Status checked = check_values(call, ranks);
  if (!checked.is_ok()) return checked;
  const bool is_root = communicator.rank() == call.root;
  const RootSide alone = root_side(call.collective);
  const bool has_both = is_root || takes_both_sides(call);
  if (!has_both && alone == RootSide::kInput) call.input = nullptr;
  if (!has_both && alone == RootSide::kOutput) call.output = nullptr;
  if (has_pieces(call.collective)) call.count *= static_cast<std::size_t>(ranks);
  if (call.count == 0) {
    call.input = call.output = nullptr;  // where they lie must not make a difference between ranks
    return submit(communicator, call);
  }
  if (has_both || alone != RootSide::kInput) checked = check_buffer(call, call.input);
  if (checked.is_ok() && (has_both || alone != RootSide::kOutput)) {
    checked = check_buffer(call, call.output);
  }
  if (checked.is_ok() && is_root) checked = check_overlap(call, ranks);
  return checked.is_ok() ? submit(communicator, call) : checked;
}

// Of what all of them have.
template <class AnyCall>
Call as_rooted_call(Collective collective, const AnyCall& call) {
  return {.collective = collective,
          .input = call.input,
          .output = call.output,
          .count = call.count,
          .dtype = call.dtype,
          .root = call.root,
          .stream = call.stream,
          .options = call.options};
}

}  // namespace

Status broadcast(Communicator& communicator, const Broadcast& call) {
  return guarded(communicator, [&]() -> Status {
    return submit_rooted(communicator, as_rooted_call(Collective::kBroadcast, call));
  });
}

Status reduce(Communicator& communicator, const Reduce& call) {
  return guarded(communicator, [&]() -> Status {
    Call reduction = as_rooted_call(Collective::kReduce, call);
    reduction.op = call.op;
    return submit_rooted(communicator, reduction);
  });
}

Status gather(Communicator& communicator, const Gather& call) {
  return guarded(communicator, [&]() -> Status {
    return submit_rooted(communicator, as_rooted_call(Collective::kGather, call));
  });
}

Status scatter(Communicator& communicator, const Scatter& call) {
  return guarded(communicator, [&]() -> Status {
    return submit_rooted(communicator, as_rooted_call(Collective::kScatter, call));
  });
}

Status barrier(Communicator& communicator, const Barrier& call) {
  return guarded(communicator, [&]() -> Status {
    return submit(communicator, {.collective = Collective::kBarrier,
                                 .dtype = DataType::kUint8,
                                 .stream = call.stream,
                                 .options = call.options});
  });
}

}  // namespace tutti
