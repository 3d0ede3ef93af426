#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "api/group.hpp"
#include "communicator/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

Status invalid(std::string_view text) {
  return {StatusCode::kInvalidArgument, fmt::format("all_to_all: {}", text)};
}

// What can be seen to be wrong without asking anybody. Equal arguments give equal answers on every
// rank, so that a refused call leaves the communicator usable.
Status check(const AllToAll& call, int ranks) {
  if (static_cast<std::size_t>(call.dtype) >= kAllDataTypes.size()) return invalid("unknown dtype");
  if (call.count == 0) return Status::ok();
  const std::size_t element = size_of(call.dtype);
  const std::size_t all = element * static_cast<std::size_t>(ranks);
  if (call.count > std::numeric_limits<std::size_t>::max() / all) {
    return invalid("ranks x count overflows");
  }
  if (call.input == nullptr || call.output == nullptr) return invalid("null buffer");
  const auto input = reinterpret_cast<std::uintptr_t>(call.input);
  const auto output = reinterpret_cast<std::uintptr_t>(call.output);
  if (input % element != 0 || output % element != 0) {
    return invalid(fmt::format("buffers must be aligned to the element size, {} bytes", element));
  }
  const std::size_t apart = input < output ? output - input : input - output;
  if (apart < call.count * all) {
    return invalid(
        "input and output overlap: it does not run in place, since other ranks' pieces would come "
        "to where this rank's own have not left: use two buffers");
  }
  return Status::ok();
}

}  // namespace

Status all_to_all(Communicator& communicator, const AllToAll& call) {
  const Status checked = check(call, communicator.size());
  if (!checked.is_ok()) return checked;
  return submit(communicator, {.collective = Collective::kAllToAll,
                               .input = call.input,
                               .output = call.output,
                               .count = call.count * static_cast<std::size_t>(communicator.size()),
                               .dtype = call.dtype,
                               .stream = call.stream,
                               .options = call.options});
}

std::string explain_all_to_all(const Communicator& communicator, const Communicator::Query& query) {
  CommunicatorImpl& impl = communicator.impl();
  return explain(impl.request_for(Collective::kAllToAll, query), impl.topology(), impl.table());
}

}  // namespace tutti
