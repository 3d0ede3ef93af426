#include <fmt/format.h>

#include <cstdint>

#include "api/checks.hpp"
#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

constexpr std::string_view kName = "all_reduce";

// What can be seen to be wrong without asking anybody. Equal arguments give equal answers on every
// rank, so that a refused call leaves the communicator usable.
Status check(const AllReduce& call) {
  const auto dtype = static_cast<std::size_t>(call.dtype);
  if (dtype >= kAllDataTypes.size()) return invalid(kName, "unknown dtype");
  if (static_cast<std::size_t>(call.op.kind) >= kAllOps.size()) return invalid(kName, "unknown op");
  if (call.count == 0) return Status::ok();
  const std::size_t element = size_of(call.dtype);
  if (call.count > kMostBytes / element) return invalid(kName, "count overflows");
  if (call.input == nullptr || call.output == nullptr) return invalid(kName, "null buffer");
  const auto input = reinterpret_cast<std::uintptr_t>(call.input);
  const auto output = reinterpret_cast<std::uintptr_t>(call.output);
  if (input % element != 0 || output % element != 0) {
    return invalid(kName,
                   fmt::format("buffers must be aligned to the element size, {} bytes", element));
  }
  const std::size_t bytes = call.count * element;
  const std::size_t apart = input < output ? output - input : input - output;
  if (apart != 0 && apart < bytes) {
    return invalid(kName, "input and output overlap in part: use the same buffer, or two");
  }
  return Status::ok();
}

}  // namespace

Status all_reduce(Communicator& communicator, const AllReduce& call) {
  return guarded(communicator, [&]() -> Status {
    TUTTI_TRY(check(call));
    return submit(communicator, {.collective = Collective::kAllReduce,
                                 .input = call.input,
                                 .output = call.output,
                                 .count = call.count,
                                 .dtype = call.dtype,
                                 .op = call.op,
                                 .stream = call.stream,
                                 .options = call.options});
  });
}

}  // namespace tutti
