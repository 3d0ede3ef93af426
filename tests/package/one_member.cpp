// Every public struct, initialised by one of its members: compiled with -Wall -Wextra -Werror, of
// which -Wmissing-field-initializers must not object to what is left out.
#include <tutti/tutti.hpp>

#include <cstddef>

int main() {
  float data[1] = {};
  const std::size_t counts[1] = {1};
  [[maybe_unused]] const tutti::CallOptions call = {.blocks = 1};
  [[maybe_unused]] const tutti::CommunicatorOptions communicator = {.device = 0};
  [[maybe_unused]] const tutti::Communicator::Query query = {.count = 1};
  [[maybe_unused]] const tutti::ReduceOp op = {.kind = tutti::OpKind::kMax};
  [[maybe_unused]] const tutti::AllReduce all_reduce = {.input = data};
  [[maybe_unused]] const tutti::AllGather all_gather = {.input = data};
  [[maybe_unused]] const tutti::ReduceScatter reduce_scatter = {.input = data};
  [[maybe_unused]] const tutti::AllToAll all_to_all = {.input = data};
  [[maybe_unused]] const tutti::Broadcast broadcast = {.input = data};
  [[maybe_unused]] const tutti::Reduce reduce = {.input = data};
  [[maybe_unused]] const tutti::Gather gather = {.input = data};
  [[maybe_unused]] const tutti::Scatter scatter = {.input = data};
  [[maybe_unused]] const tutti::DeviceCounts device_counts = {.given = counts};
  [[maybe_unused]] const tutti::AllGatherV all_gather_v = {.input = data};
  [[maybe_unused]] const tutti::ReduceScatterV reduce_scatter_v = {.input = data};
  [[maybe_unused]] const tutti::AllToAllV all_to_all_v = {.input = data};
  [[maybe_unused]] const tutti::Send send = {.buffer = data};
  [[maybe_unused]] const tutti::Recv recv = {.buffer = data};
  [[maybe_unused]] const tutti::Barrier barrier = {.stream = nullptr};
  [[maybe_unused]] const tutti::AllReduceResidualRmsNorm norm = {.input = data};
  [[maybe_unused]] const tutti::Put put = {.from = data};
  [[maybe_unused]] const tutti::Get get = {.from = data};
  [[maybe_unused]] const tutti::Signal signal = {.peer = 0};
  [[maybe_unused]] const tutti::WaitSignal wait_signal = {.peer = 0};
  [[maybe_unused]] const tutti::device::Put device_put = {.peer = 0};
  [[maybe_unused]] const tutti::device::Get device_get = {.peer = 0};
  [[maybe_unused]] const tutti::ShardedLayer layer = {.shard = data};
  [[maybe_unused]] const tutti::ShardedOptions sharded = {.depth = 1};
  [[maybe_unused]] const tutti::Plan plan = {.blocks = 1};
  [[maybe_unused]] const tutti::SymmetricPool::Use use = {.blocks = 1};
  [[maybe_unused]] const tutti::Communicator::Counters counters = {.exchanges = 1};
  [[maybe_unused]] const tutti::TypedOptions typed = {.stream = nullptr};
  [[maybe_unused]] const tutti::TypedReduceOptions typed_reduce = {.stream = nullptr};
  [[maybe_unused]] const tutti::AllToAllCounts all_to_all_counts = {.max = 1};
}
