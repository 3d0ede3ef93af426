// One operation of a sample, of whatever is measured.
#pragma once

#include <variant>

#include "tutti/collectives.hpp"
#include "tutti/one_sided.hpp"

namespace tutti::cli {

// Every rank sends to the next one and takes from the one before.
struct SendRecv {
  const void* input = nullptr;  // `count` elements each
  void* output = nullptr;
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  Stream stream = nullptr;
  CallOptions options = {};
};

// A put, and a wait for the one that this rank gets at the same time: each ends with a signal.
struct PutAndWait {
  Put put;
  int from = 0;  // the rank whose put is waited for
  int channel = 0;
  Stream stream = nullptr;
};

using Operation = std::variant<AllReduce, AllReduceResidualRmsNorm, AllGather, ReduceScatter,
                               AllToAll, Broadcast, Reduce, Gather, Scatter, Barrier, SendRecv,
                               AllGatherV, ReduceScatterV, AllToAllV, PutAndWait, Get>;

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
inline Status run(Communicator& communicator, const AllGatherV& call) {
  return all_gather_v(communicator, call);
}
inline Status run(Communicator& communicator, const ReduceScatterV& call) {
  return reduce_scatter_v(communicator, call);
}
inline Status run(Communicator& communicator, const AllToAllV& call) {
  return all_to_all_v(communicator, call);
}
inline Status run(Communicator& communicator, const Barrier& call) {
  return barrier(communicator, call);
}
inline Status run(Communicator& communicator, const SendRecv& call) {
  const int rank = communicator.rank(), ranks = communicator.size();
  group_start();
  const Status sent = send(communicator, {.buffer = call.input,
                                          .count = call.count,
                                          .dtype = call.dtype,
                                          .peer = (rank + 1) % ranks,
                                          .stream = call.stream,
                                          .options = call.options});
  const Status taken = recv(communicator, {.buffer = call.output,
                                           .count = call.count,
                                           .dtype = call.dtype,
                                           .peer = (rank + ranks - 1) % ranks,
                                           .stream = call.stream,
                                           .options = call.options});
  const Status ended = group_end();
  return !sent.is_ok() ? sent : !taken.is_ok() ? taken : ended;
}
inline Status run(Communicator& communicator, const PutAndWait& call) {
  Put put = call.put;
  put.stream = call.stream;
  const Status status = put_signal(communicator, put, call.channel);
  if (!status.is_ok()) return status;
  return wait_signal(communicator,
                     {.peer = call.from, .channel = call.channel, .stream = call.stream});
}
inline Status run(Communicator& communicator, const Get& call) { return get(communicator, call); }
inline Status run(Communicator& communicator, const Operation& operation) {
  return std::visit([&](const auto& call) { return run(communicator, call); }, operation);
}

inline void set_stream(Operation& operation, Stream stream) {
  std::visit([stream](auto& call) { call.stream = stream; }, operation);
}

}  // namespace tutti::cli
