#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "api/group.hpp"
#include "communicator/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

Status invalid(std::string_view text) {
  return {StatusCode::kInvalidArgument, fmt::format("all_gather: {}", text)};
}

// The places of both buffers, in bytes; `in_place`: where an input in place begins.
Status check_overlap(const AllGather& call, std::size_t piece, int rank, int ranks) {
  const auto input = reinterpret_cast<std::uintptr_t>(call.input);
  const auto output = reinterpret_cast<std::uintptr_t>(call.output);
  const std::uintptr_t in_place = output + piece * static_cast<std::size_t>(rank);
  const std::uintptr_t end = output + piece * static_cast<std::size_t>(ranks);
  if (input == in_place || input + piece <= output || input >= end) return Status::ok();
  return invalid(
      "input and output overlap: in place, input is output + rank * count elements, and else it "
      "lies outside");
}

// What can be seen to be wrong without asking anybody. Equal arguments give equal answers on every
// rank, so that a refused call leaves the communicator usable.
Status check(const AllGather& call, int rank, int ranks) {
  if (static_cast<std::size_t>(call.dtype) >= kAllDataTypes.size()) return invalid("unknown dtype");
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

Status all_gather(Communicator& communicator, const AllGather& call) {
  const Status checked = check(call, communicator.rank(), communicator.size());
  if (!checked.is_ok()) return checked;
  return submit(communicator, {.collective = Collective::kAllGather,
                               .input = call.input,
                               .output = call.output,
                               .count = call.count * static_cast<std::size_t>(communicator.size()),
                               .dtype = call.dtype,
                               .stream = call.stream,
                               .options = call.options});
}

std::string explain_all_gather(const Communicator& communicator, const Communicator::Query& query) {
  CommunicatorImpl& impl = communicator.impl();
  return explain(impl.request_for(Collective::kAllGather, query), impl.topology(), impl.table());
}

}  // namespace tutti
