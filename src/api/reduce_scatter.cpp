#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "api/group.hpp"
#include "communicator/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

Status invalid(std::string_view text) {
  return {StatusCode::kInvalidArgument, fmt::format("reduce_scatter: {}", text)};
}

Status check_overlap(const ReduceScatter& call, std::size_t piece, int rank, int ranks) {
  const auto input = reinterpret_cast<std::uintptr_t>(call.input);
  const auto output = reinterpret_cast<std::uintptr_t>(call.output);
  const std::uintptr_t in_place = input + piece * static_cast<std::size_t>(rank);
  const std::uintptr_t end = input + piece * static_cast<std::size_t>(ranks);
  if (output == in_place || output + piece <= input || output >= end) return Status::ok();
  return invalid(
      "input and output overlap: in place, output is input + rank * count elements, and else it "
      "lies outside");
}

// What can be seen to be wrong without asking anybody. Equal arguments give equal answers on every
// rank, so that a refused call leaves the communicator usable.
Status check(const ReduceScatter& call, int rank, int ranks) {
  if (static_cast<std::size_t>(call.dtype) >= kAllDataTypes.size()) return invalid("unknown dtype");
  if (static_cast<std::size_t>(call.op.kind) >= kAllOps.size()) return invalid("unknown op");
  if (call.count == 0) return Status::ok();
  const std::size_t element = size_of(call.dtype);
  const std::size_t all = element * static_cast<std::size_t>(ranks);
  if (call.count > std::numeric_limits<std::size_t>::max() / all) {
    return invalid("ranks x count overflows");
  }
  if (call.input == nullptr || call.output == nullptr) return invalid("null buffer");
  if (reinterpret_cast<std::uintptr_t>(call.input) % element != 0 ||
      reinterpret_cast<std::uintptr_t>(call.output) % element != 0) {
    return invalid(fmt::format("buffers must be aligned to the element size, {} bytes", element));
  }
  return check_overlap(call, call.count * element, rank, ranks);
}

}  // namespace

Status reduce_scatter(Communicator& communicator, const ReduceScatter& call) {
  const Status checked = check(call, communicator.rank(), communicator.size());
  if (!checked.is_ok()) return checked;
  return submit(communicator, {.collective = Collective::kReduceScatter,
                               .input = call.input,
                               .output = call.output,
                               .count = call.count * static_cast<std::size_t>(communicator.size()),
                               .dtype = call.dtype,
                               .op = call.op,
                               .stream = call.stream,
                               .options = call.options});
}

std::string explain_reduce_scatter(const Communicator& communicator,
                                   const Communicator::Query& query) {
  CommunicatorImpl& impl = communicator.impl();
  return explain(impl.request_for(Collective::kReduceScatter, query), impl.topology(),
                 impl.table());
}

}  // namespace tutti
