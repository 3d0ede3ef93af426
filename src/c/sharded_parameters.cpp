#include "tutti/sharded_parameters.hpp"

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "c/arguments.hpp"
#include "c/failure.hpp"

namespace tutti::c {
namespace {

ShardedOptions sharded_options_of(const tutti_sharded_options_t* given, Arguments& in) {
  tutti_sharded_options_t own;
  const tutti_sharded_options_t& from = in.read_optional(given, own);
  in.check(from.depth <= std::numeric_limits<int>::max(), "`depth` is too large");
  if (!in.is_ok()) return {};
  return {.depth = static_cast<int>(from.depth),
          .gather = in.options(from.gather),
          .reduce = in.options(from.reduce)};
}

std::vector<ShardedLayer> layers_of(const tutti_sharded_layer_t* layers, std::size_t count,
                                    Arguments& in) {
  std::vector<ShardedLayer> made;
  in.check(layers != nullptr || count == 0, "`layers` is null, and `count` is not 0");
  if (!in.is_ok()) return made;
  made.reserve(count);
  for (const tutti_sharded_layer_t& layer : std::span(layers, count)) {
    made.push_back(
        {.shard = layer.shard, .count = layer.count, .dtype = in.data_type(layer.dtype)});
  }
  return made;
}

// `result` has an address.
template <class Address>
Status give_address(const Result<Address>& result, Address* out) {
  if (result.is_ok()) *out = *result;
  return result.status();
}

}  // namespace
}  // namespace tutti::c

using namespace tutti::c;  // NOLINT(google-build-using-namespace)
using tutti::Status;

extern "C" {

tutti_status_t tutti_sharded_parameters_create(tutti_communicator_t* communicator,
                                               const tutti_sharded_layer_t* layers, size_t count,
                                               const tutti_sharded_options_t* options,
                                               tutti_sharded_parameters_t** parameters) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) -> Status {
    Arguments in(name);
    const tutti::ShardedOptions wanted = sharded_options_of(options, in);
    const std::vector<tutti::ShardedLayer> of = layers_of(layers, count, in);
    in.check(parameters != nullptr, "`parameters` is null");
    if (!in.is_ok()) return in.status();
    auto made = tutti::ShardedParameters::create(open.communicator, of, wanted);
    if (!made.is_ok()) return made.status();
    return give(std::make_unique<OpenShardedParameters>(open, std::move(*made)), parameters);
  });
}
tutti_status_t tutti_sharded_parameters_destroy(tutti_sharded_parameters_t* parameters) {
  return end(__func__, parameters);
}

tutti_status_t tutti_sharded_parameters_layers(tutti_sharded_parameters_t* parameters,
                                               size_t* layers) {
  const char* const name = __func__;
  return run_on(name, parameters, [&](OpenShardedParameters& open) {
    if (layers == nullptr) return invalid(name, "`layers` is null");
    *layers = static_cast<size_t>(open.parameters.layers());
    return Status::ok();
  });
}
tutti_status_t tutti_sharded_parameters_prefetch(tutti_sharded_parameters_t* parameters,
                                                 int layer) {
  return run_on(__func__, parameters,
                [&](OpenShardedParameters& open) { return open.parameters.prefetch(layer); });
}
tutti_status_t tutti_sharded_parameters_gathered(tutti_sharded_parameters_t* parameters, int layer,
                                                 tutti_stream_t compute, const void** elements) {
  const char* const name = __func__;
  return run_on(name, parameters, [&](OpenShardedParameters& open) {
    if (elements == nullptr) return invalid(name, "`elements` is null");
    return give_address(open.parameters.gathered(layer, compute), elements);
  });
}
tutti_status_t tutti_sharded_parameters_release(tutti_sharded_parameters_t* parameters, int layer,
                                                tutti_stream_t compute) {
  return run_on(__func__, parameters, [&](OpenShardedParameters& open) {
    return open.parameters.release(layer, compute);
  });
}
tutti_status_t tutti_sharded_parameters_gradient(tutti_sharded_parameters_t* parameters, int layer,
                                                 tutti_stream_t compute, void** elements) {
  const char* const name = __func__;
  return run_on(name, parameters, [&](OpenShardedParameters& open) {
    if (elements == nullptr) return invalid(name, "`elements` is null");
    return give_address(open.parameters.gradient(layer, compute), elements);
  });
}
tutti_status_t tutti_sharded_parameters_reduce_gradient(tutti_sharded_parameters_t* parameters,
                                                        int layer, void* shard_gradient,
                                                        tutti_stream_t compute,
                                                        const tutti_reduce_op_t* op) {
  const char* const name = __func__;
  return run_on(name, parameters, [&](OpenShardedParameters& open) -> Status {
    Arguments in(name);
    const tutti::ReduceOp made = op == nullptr ? tutti::ReduceOp() : in.op(*op);
    if (!in.is_ok()) return in.status();
    return open.parameters.reduce_gradient(layer, shard_gradient, compute, made);
  });
}
tutti_status_t tutti_sharded_parameters_finish(tutti_sharded_parameters_t* parameters,
                                               tutti_stream_t compute) {
  return run_on(__func__, parameters,
                [&](OpenShardedParameters& open) { return open.parameters.finish(compute); });
}
tutti_status_t tutti_sharded_parameters_updated(tutti_sharded_parameters_t* parameters,
                                                tutti_stream_t compute) {
  return run_on(__func__, parameters,
                [&](OpenShardedParameters& open) { return open.parameters.updated(compute); });
}
}
