#include "api/guard.hpp"
#include "api/pieces.hpp"
#include "group/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {

Status all_to_all(Communicator& communicator, const AllToAll& call) {
  return guarded(communicator, [&]() -> Status {
    return submit_pieces(communicator, {.collective = Collective::kAllToAll,
                                        .input = call.input,
                                        .output = call.output,
                                        .count = call.count,
                                        .dtype = call.dtype,
                                        .stream = call.stream,
                                        .options = call.options});
  });
}

}  // namespace tutti
