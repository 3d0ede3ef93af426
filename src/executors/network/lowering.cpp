#include "executors/network/lowering.hpp"

#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "base/convert.hpp"
#include "base/hash.hpp"
#include "executors/network/direct_transfers.hpp"
#include "planning/network_chunks.hpp"

namespace tutti {
namespace {

std::size_t unit_of(DataType dtype) {
  return std::max<std::size_t>(kNetworkUnitBytes / size_of(dtype), 1);
}

// Equal on two ranks exactly where they mean the same operation.
std::uint32_t signature_of(const PlannedOperation& operation, std::size_t count, DataType dtype) {
  const Call& call = operation.call;
  WordHash hash;
  hash.add(operation.plan.fingerprint);
  hash.add(static_cast<std::uint64_t>(dtype) | static_cast<std::uint64_t>(call.op.kind) << 8 |
           static_cast<std::uint64_t>(call.root) << 32);
  hash.add(count);
  if (call.step_of != nullptr) hash.add(Hash().add(*call.step_of).value());
  return static_cast<std::uint32_t>(hash.value() >> 32);
}

NetworkShape shape_of(const PlannedOperation& operation, DataType dtype,
                      const NetworkRanks& ranks) {
  const Call& call = operation.call;
  NetworkShape shape{.rank = ranks.rank,
                     .ranks = ranks.ranks,
                     .root = call.root,
                     .count = call.bytes() / size_of(dtype),
                     .unit = unit_of(dtype),
                     .node_of = ranks.node_of,
                     .one_way = operation.plan.one_way};
  if (has_pieces(call.collective)) {
    shape.count = shape.stride = shape.count / static_cast<std::size_t>(ranks.ranks);
  }
  return shape;
}

NetworkOperation lower_message(const PlannedOperation& operation, const MessageCall& message,
                               const NetworkRanks& ranks) {
  const bool sends = message.input != nullptr;
  const int sender = sends ? ranks.rank : message.peer;
  const int receiver = sends ? message.peer : ranks.rank;
  return {.schedule = operation.plan.algorithm->network,
          .shape = {.rank = ranks.rank,
                    .ranks = ranks.ranks,
                    .root = sender,
                    .to = receiver,
                    .count = message.bytes(),
                    .unit = unit_of(DataType::kUint8)},
          .dtype = DataType::kUint8,
          .input = static_cast<const std::byte*>(message.input),
          .output = static_cast<std::byte*>(message.output),
          .signature = signature_of(operation, message.count, message.dtype),
          .text = to_string(operation.operation),
          .pair = NetworkOperation::Pair{sender, receiver}};
}

NetworkOperation lower_collective(const PlannedOperation& operation, const NetworkRanks& ranks) {
  const Call& call = operation.call;
  const DataType dtype = moved_as(call.collective, call.dtype);
  return {.schedule = operation.plan.algorithm->network,
          .shape = shape_of(operation, dtype, ranks),
          .dtype = dtype,
          .op = call.op.kind,
          .scalar = call.op.scalar,
          .input = static_cast<const std::byte*>(call.input),
          .output = static_cast<std::byte*>(call.output),
          .signature = signature_of(operation, call.count, call.dtype),
          .text = to_string(operation.operation)};
}

std::size_t chunk_bytes_of(const OperationPlan& plan, const NetworkOperation& operation) {
  if (plan.chunk_bytes > 0) return plan.chunk_bytes;
  const NetworkShape& shape = operation.shape;
  const std::size_t pieces = shape.stride > 0 ? static_cast<std::size_t>(shape.ranks) : 1;
  return network_cut({.bytes = shape.count * pieces * size_of(operation.dtype),
                      .ranks = shape.ranks,
                      .staging_bytes = NetworkEngine::kMostScratchInUse,
                      .unit_bytes = kNetworkUnitBytes})
      .chunk_bytes;
}

std::vector<NetworkOperation> lower_to_unread(const PlannedOperation& operation,
                                              const NetworkRanks& ranks) {
  const Call& call = operation.call;
  std::vector<NetworkOperation> lowered;
  for (const MessageCall& message : call.messages) {
    lowered.push_back(lower_message(operation, message, ranks));
  }
  if (lowered.empty()) lowered.push_back(lower_collective(operation, ranks));
  for (NetworkOperation& one : lowered) {
    one.chunk_bytes = chunk_bytes_of(operation.plan, one);
  }
  return lowered;
}

}  // namespace

std::vector<NetworkOperation> lower_to_network(const PlannedOperation& operation,
                                               const NetworkRanks& ranks) {
  std::vector<NetworkOperation> lowered = lower_to_unread(operation, ranks);
  const Call& call = operation.call;
  if (call.op.device_scalar != nullptr) {
    lowered.front().scalar = load_scalar(call.dtype, call.op.device_scalar);
  }
  return lowered;
}

std::vector<StagedTransfer> lower_to_staging(const PlannedOperation& operation,
                                             const NetworkRanks& ranks, bool direct) {
  const Call& call = operation.call;
  std::vector<StagedTransfer> staged;
  for (NetworkOperation& lowered : lower_to_unread(operation, ranks)) {
    const bool is_message = lowered.pair.has_value();
    const bool is_local = is_message && lowered.pair->sender == lowered.pair->receiver;
    const std::size_t row = lowered.shape.count * size_of(lowered.dtype);
    const auto rows = [&](RootSide root_only, const std::byte* address, std::size_t bytes) {
      const bool others = root_side(call.collective) == root_only && ranks.rank != call.root;
      if (others || address == nullptr || row == 0) return std::size_t{0};
      return is_message ? 1 : bytes / row;
    };
    const std::size_t inputs = rows(RootSide::kInput, lowered.input, operation.sides.input);
    const std::size_t outputs = rows(RootSide::kOutput, lowered.output, operation.sides.output);
    const bool pieces = has_pieces(call.collective);
    staged.push_back({.what = std::move(lowered),
                      .input_rows = inputs,
                      .output_rows = outputs,
                      .most_rows = pieces ? static_cast<std::size_t>(ranks.ranks) : 1,
                      .is_local = is_local,
                      .scalar = static_cast<const std::byte*>(call.op.device_scalar)});
    if (direct && !reduces(call.collective)) make_direct_if_worth(staged.back());
  }
  return staged;
}

}  // namespace tutti
