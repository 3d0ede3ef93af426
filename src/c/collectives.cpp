#include "tutti/collectives.hpp"

#include "c/arguments.hpp"
#include "c/failure.hpp"
#include "tutti/one_sided.hpp"

namespace tutti::c {
namespace {

template <class To, class From>
tutti_status_t call_on(const char* name, tutti_communicator_t* communicator, const From* given,
                       Status (*function)(Communicator&, const To&)) noexcept {
  return run_on(name, communicator, [&](OpenCommunicator& open) -> Status {
    Arguments in(name);
    From own;
    const To to = made_of<To>(in.read(given, own), in);
    return in.is_ok() ? function(open.communicator, to) : in.status();
  });
}

AllReduceResidualRmsNorm norm_of(const tutti_all_reduce_residual_rms_norm_t& from, Arguments& in) {
  AllReduceResidualRmsNorm to{.input = from.input,
                              .residual = from.residual,
                              .weight = from.weight,
                              .residual_output = from.residual_output,
                              .output = from.output,
                              .tokens = from.tokens,
                              .hidden = from.hidden,
                              .dtype = in.data_type(from.dtype),
                              .epsilon = from.epsilon,
                              .scale = from.scale,
                              .stream = from.stream,
                              .options = in.options(from.options)};
  if (from.output_dtype != -1) to.output_dtype = in.data_type(from.output_dtype);
  return to;
}

}  // namespace
}  // namespace tutti::c

using namespace tutti::c;  // NOLINT(google-build-using-namespace)

extern "C" {

tutti_status_t tutti_all_reduce(tutti_communicator_t* communicator,
                                const tutti_all_reduce_t* call) {
  return call_on<tutti::AllReduce>(__func__, communicator, call, tutti::all_reduce);
}
tutti_status_t tutti_all_gather(tutti_communicator_t* communicator,
                                const tutti_all_gather_t* call) {
  return call_on<tutti::AllGather>(__func__, communicator, call, tutti::all_gather);
}
tutti_status_t tutti_reduce_scatter(tutti_communicator_t* communicator,
                                    const tutti_reduce_scatter_t* call) {
  return call_on<tutti::ReduceScatter>(__func__, communicator, call, tutti::reduce_scatter);
}
tutti_status_t tutti_all_to_all(tutti_communicator_t* communicator,
                                const tutti_all_to_all_t* call) {
  return call_on<tutti::AllToAll>(__func__, communicator, call, tutti::all_to_all);
}
tutti_status_t tutti_broadcast(tutti_communicator_t* communicator, const tutti_broadcast_t* call) {
  return call_on<tutti::Broadcast>(__func__, communicator, call, tutti::broadcast);
}
tutti_status_t tutti_reduce(tutti_communicator_t* communicator, const tutti_reduce_t* call) {
  return call_on<tutti::Reduce>(__func__, communicator, call, tutti::reduce);
}
tutti_status_t tutti_gather(tutti_communicator_t* communicator, const tutti_gather_t* call) {
  return call_on<tutti::Gather>(__func__, communicator, call, tutti::gather);
}
tutti_status_t tutti_scatter(tutti_communicator_t* communicator, const tutti_scatter_t* call) {
  return call_on<tutti::Scatter>(__func__, communicator, call, tutti::scatter);
}
tutti_status_t tutti_all_gather_v(tutti_communicator_t* communicator,
                                  const tutti_all_gather_v_t* call) {
  return call_on<tutti::AllGatherV>(__func__, communicator, call, tutti::all_gather_v);
}
tutti_status_t tutti_reduce_scatter_v(tutti_communicator_t* communicator,
                                      const tutti_reduce_scatter_v_t* call) {
  return call_on<tutti::ReduceScatterV>(__func__, communicator, call, tutti::reduce_scatter_v);
}
tutti_status_t tutti_all_to_all_v(tutti_communicator_t* communicator,
                                  const tutti_all_to_all_v_t* call) {
  return call_on<tutti::AllToAllV>(__func__, communicator, call, tutti::all_to_all_v);
}
tutti_status_t tutti_send(tutti_communicator_t* communicator, const tutti_send_t* call) {
  return call_on<tutti::Send>(__func__, communicator, call, tutti::send);
}
tutti_status_t tutti_recv(tutti_communicator_t* communicator, const tutti_recv_t* call) {
  return call_on<tutti::Recv>(__func__, communicator, call, tutti::recv);
}
tutti_status_t tutti_barrier(tutti_communicator_t* communicator, const tutti_barrier_t* call) {
  const tutti_barrier_t defaults = tutti_barrier_init();
  return call_on<tutti::Barrier>(__func__, communicator, call == nullptr ? &defaults : call,
                                 tutti::barrier);
}

tutti_status_t tutti_all_reduce_residual_rms_norm(
    tutti_communicator_t* communicator, const tutti_all_reduce_residual_rms_norm_t* call) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) -> tutti::Status {
    Arguments in(name);
    tutti_all_reduce_residual_rms_norm_t own;
    const tutti::AllReduceResidualRmsNorm to = norm_of(in.read(call, own), in);
    return in.is_ok() ? all_reduce_residual_rms_norm(open.communicator, to) : in.status();
  });
}

tutti_status_t tutti_group_start(void) {
  return run([] {
    tutti::group_start();
    return tutti::Status::ok();
  });
}
tutti_status_t tutti_group_end(void) {
  return run([] { return tutti::group_end(); });
}

tutti_status_t tutti_put(tutti_communicator_t* communicator, const tutti_put_t* call) {
  return call_on<tutti::Put>(__func__, communicator, call, tutti::put);
}
tutti_status_t tutti_put_signal(tutti_communicator_t* communicator, const tutti_put_t* call) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) -> tutti::Status {
    Arguments in(name);
    tutti_put_t own;
    const tutti_put_t& from = in.read(call, own);
    const auto to = made_of<tutti::Put>(from, in);
    return in.is_ok() ? put_signal(open.communicator, to, from.channel) : in.status();
  });
}
tutti_status_t tutti_get(tutti_communicator_t* communicator, const tutti_get_t* call) {
  return call_on<tutti::Get>(__func__, communicator, call, tutti::get);
}
tutti_status_t tutti_signal(tutti_communicator_t* communicator, const tutti_signal_t* call) {
  return call_on<tutti::Signal>(__func__, communicator, call, tutti::signal);
}
tutti_status_t tutti_wait_signal(tutti_communicator_t* communicator,
                                 const tutti_wait_signal_t* call) {
  return call_on<tutti::WaitSignal>(__func__, communicator, call, tutti::wait_signal);
}

tutti_status_t tutti_device_peers(tutti_communicator_t* communicator, tutti_memory_t* memory,
                                  tutti_device_peers_t* peers) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) -> tutti::Status {
    const tutti::SymmetricMemory* const of = find(memory);
    if (of == nullptr) return no_handle(name, "memory", memory == nullptr);
    if (peers == nullptr) return invalid(name, "`peers` is null");
    const auto made = device_peers(open.communicator, *of);
    if (!made.is_ok()) return made.status();
    static_assert(sizeof(tutti_device_peers_t) == sizeof(tutti::device::Peers));
    std::memcpy(peers, &*made, sizeof *peers);
    return tutti::Status::ok();
  });
}
}
