#include "api/guard.hpp"
#include "api/pieces.hpp"
#include "group/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {

Status all_gather(Communicator& communicator, const AllGather& call) {
  return guarded(communicator, [&]() -> Status {
    return submit_pieces(communicator, {.collective = Collective::kAllGather,
                                        .input = call.input,
                                        .output = call.output,
                                        .count = call.count,
                                        .dtype = call.dtype,
                                        .stream = call.stream,
                                        .options = call.options});
  });
}

}  // namespace tutti
