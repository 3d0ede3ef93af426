#include "api/pieces.hpp"
#include "communicator/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti {

Status all_gather(Communicator& communicator, const AllGather& call) {
  return submit_pieces(communicator, {.collective = Collective::kAllGather,
                                      .input = call.input,
                                      .output = call.output,
                                      .count = call.count,
                                      .dtype = call.dtype,
                                      .stream = call.stream,
                                      .options = call.options});
}

std::string explain_all_gather(const Communicator& communicator, const Communicator::Query& query) {
  CommunicatorImpl& impl = communicator.impl();
  return explain(impl.request_for(Collective::kAllGather, query), impl.topology(), impl.table());
}

}  // namespace tutti
