// One operation of a sample, of whatever collective is measured.
#pragma once

#include <variant>

#include "tutti/collectives.hpp"

namespace tutti::cli {

using Operation = std::variant<AllReduce, AllReduceResidualRmsNorm, AllGather, ReduceScatter,
                               AllToAll, Broadcast, Reduce, Gather, Scatter, Barrier>;

inline Status run(Communicator& communicator, const AllReduce& call) {
  return all_reduce(communicator, call);
}
inline Status run(Communicator& communicator, const AllReduceResidualRmsNorm& call) {
  return all_reduce_residual_rms_norm(communicator, call);
}
inline Status run(Communicator& communicator, const AllGather& call) {
  return all_gather(communicator, call);
}
inline Status run(Communicator& communicator, const ReduceScatter& call) {
  return reduce_scatter(communicator, call);
}
inline Status run(Communicator& communicator, const AllToAll& call) {
  return all_to_all(communicator, call);
}
inline Status run(Communicator& communicator, const Broadcast& call) {
  return broadcast(communicator, call);
}
inline Status run(Communicator& communicator, const Reduce& call) {
  return reduce(communicator, call);
}
inline Status run(Communicator& communicator, const Gather& call) {
  return gather(communicator, call);
}
inline Status run(Communicator& communicator, const Scatter& call) {
  return scatter(communicator, call);
}
inline Status run(Communicator& communicator, const Barrier& call) {
  return barrier(communicator, call);
}
inline Status run(Communicator& communicator, const Operation& operation) {
  return std::visit([&](const auto& call) { return run(communicator, call); }, operation);
}

inline void set_stream(Operation& operation, Stream stream) {
  std::visit([stream](auto& call) { call.stream = stream; }, operation);
}

}  // namespace tutti::cli
