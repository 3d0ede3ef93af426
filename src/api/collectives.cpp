// Calls of the collectives that have no file of their own.
#include "tutti/collectives.hpp"

#include <fmt/format.h>

#include <limits>

#include "algorithms/catalogue.hpp"
#include "api/as_call.hpp"
#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "operation/checks.hpp"

namespace tutti {
namespace {

// NCCL's copy engines find the root's buffer by where each rank has its own of the same.
bool takes_both_buffers(const Call& call) {
  if (!has_root(call.collective) || call.options.algorithm.empty()) return false;
  const auto row = find_algorithm(call.collective, call.options.algorithm);
  return row.is_ok() && ((*row)->needs & kNeedsNcclCopyEngines) != 0;
}

Status check_and_submit(Communicator& communicator, const Call& call) {
  TUTTI_ASSIGN(const Call whole,
               checked(call, communicator.rank(), communicator.size(), takes_both_buffers(call)));
  return submit(communicator, whole);
}

template <class UsersCall>
Status run(Communicator& communicator, Collective collective, const UsersCall& call) {
  return guarded(communicator,
                 [&] { return check_and_submit(communicator, as_call(collective, call)); });
}

constexpr std::size_t kLongestRow = std::numeric_limits<std::uint32_t>::max();

// A matrix that is split along its last dimension: how long its rows are, of all ranks together.
Status add_rows(const ReduceScatter& call, int ranks, Call& whole) {
  if (call.rows == 0 || call.count % call.rows != 0) {
    return invalid(whole,
                   fmt::format("{} rows do not divide a count of {}", call.rows, call.count));
  }
  const std::size_t columns = call.count / call.rows;
  if (columns > kLongestRow / static_cast<std::size_t>(ranks) && call.rows > 1) {
    return invalid(whole, "a row has 2^32 elements or more");
  }
  if (call.rows > 1 && call.count > 0) {
    whole.norm.hidden = static_cast<std::uint32_t>(columns) * static_cast<std::uint32_t>(ranks);
  }
  return Status::ok();
}

}  // namespace

Status all_reduce(Communicator& communicator, const AllReduce& call) {
  return run(communicator, Collective::kAllReduce, call);
}
Status all_gather(Communicator& communicator, const AllGather& call) {
  return run(communicator, Collective::kAllGather, call);
}
Status all_to_all(Communicator& communicator, const AllToAll& call) {
  return run(communicator, Collective::kAllToAll, call);
}
Status broadcast(Communicator& communicator, const Broadcast& call) {
  return run(communicator, Collective::kBroadcast, call);
}
Status reduce(Communicator& communicator, const Reduce& call) {
  return run(communicator, Collective::kReduce, call);
}
Status gather(Communicator& communicator, const Gather& call) {
  return run(communicator, Collective::kGather, call);
}
Status scatter(Communicator& communicator, const Scatter& call) {
  return run(communicator, Collective::kScatter, call);
}

Status reduce_scatter(Communicator& communicator, const ReduceScatter& call) {
  return guarded(communicator, [&]() -> Status {
    Call whole = as_call(Collective::kReduceScatter, call);
    TUTTI_TRY(add_rows(call, communicator.size(), whole));
    return check_and_submit(communicator, whole);
  });
}

Status barrier(Communicator& communicator, const Barrier& call) {
  return guarded(communicator, [&]() -> Status {
    return submit(communicator, {.collective = Collective::kBarrier,
                                 .dtype = DataType::kUint8,
                                 .stream = call.stream,
                                 .options = call.options});
  });
}

}  // namespace tutti
