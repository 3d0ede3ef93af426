#include <fmt/format.h>

#include <limits>

#include "api/guard.hpp"
#include "api/pieces.hpp"
#include "group/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

constexpr std::size_t kLongestRow = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Status reduce_scatter(Communicator& communicator, const ReduceScatter& call) {
  return guarded(communicator, [&]() -> Status {
    if (call.rows == 0 || call.count % call.rows != 0) {
      return {StatusCode::kInvalidArgument,
              fmt::format("reduce_scatter: {} rows do not divide a count of {}", call.rows,
                          call.count)};
    }
    const std::size_t columns = call.count / call.rows;
    if (columns > kLongestRow / static_cast<std::size_t>(communicator.size()) && call.rows > 1) {
      return {StatusCode::kInvalidArgument, "reduce_scatter: a row has 2^32 elements or more"};
    }
    Call all{.collective = Collective::kReduceScatter,
             .input = call.input,
             .output = call.output,
             .count = call.count,
             .dtype = call.dtype,
             .op = call.op,
             .stream = call.stream,
             .options = call.options};
    if (call.rows > 1 && call.count > 0) {
      all.norm.hidden =
          static_cast<std::uint32_t>(columns) * static_cast<std::uint32_t>(communicator.size());
    }
    return submit_pieces(communicator, all);
  });
}

}  // namespace tutti
