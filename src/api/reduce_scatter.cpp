#include "api/pieces.hpp"
#include "communicator/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {

Status reduce_scatter(Communicator& communicator, const ReduceScatter& call) {
  return submit_pieces(communicator, {.collective = Collective::kReduceScatter,
                                      .input = call.input,
                                      .output = call.output,
                                      .count = call.count,
                                      .dtype = call.dtype,
                                      .op = call.op,
                                      .stream = call.stream,
                                      .options = call.options});
}

}  // namespace tutti
