// Calls of collectives whose pieces are as long as ranks like.
#include <algorithm>

#include "api/as_call.hpp"
#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "operation/checks.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

// All but `call.count` and its lengths is as the user gave it. `most`: the longest piece of any
// rank.
Status submit_uneven(Communicator& communicator, const Call& call, std::size_t most) {
  TUTTI_ASSIGN(const Call whole,
               checked_uneven(call, most, communicator.rank(), communicator.size()));
  return submit(communicator, whole);
}

// One source of counts: the host's, or the device's.
Status check_sources(const Call& call, bool has_counts, const DeviceCounts& device) {
  if (has_counts == (device.given != nullptr)) {
    return invalid(call, has_counts ? "counts on the host and on the device: give one of them"
                                    : "no counts: give them on the host, or on the device");
  }
  if (device.given != nullptr && device.max_count == 0) {
    return invalid(call, "max_count is 0: counts on the device need a limit");
  }
  return Status::ok();
}

std::vector<std::size_t> lengths_at(const std::size_t* counts, int ranks) {
  return counts == nullptr ? std::vector<std::size_t>()
                           : std::vector<std::size_t>(counts, counts + ranks);
}

template <class UsersCall>
Call as_uneven_call(Collective collective, const UsersCall& call) {
  Call result = as_call(collective, call);
  result.lengths.on_device = call.device_counts;
  return result;
}

std::size_t longest_of(const Lengths& lengths) {
  if (lengths.are_on_device()) return lengths.on_device.max_count;
  return *std::max_element(lengths.taken.begin(), lengths.taken.end());
}

}  // namespace

Status all_gather_v(Communicator& communicator, const AllGatherV& call) {
  return guarded(communicator, [&]() -> Status {
    Call all = as_uneven_call(Collective::kAllGatherV, call);
    TUTTI_TRY(check_sources(all, call.counts != nullptr, call.device_counts));
    const auto ranks = static_cast<std::size_t>(communicator.size());
    all.lengths.taken = lengths_at(call.counts, communicator.size());
    if (call.counts != nullptr) all.lengths.sent.assign(ranks, call.counts[communicator.rank()]);
    return submit_uneven(communicator, all, longest_of(all.lengths));
  });
}

Status reduce_scatter_v(Communicator& communicator, const ReduceScatterV& call) {
  return guarded(communicator, [&]() -> Status {
    Call all = as_uneven_call(Collective::kReduceScatterV, call);
    TUTTI_TRY(check_sources(all, call.counts != nullptr, call.device_counts));
    all.lengths.sent = all.lengths.taken = lengths_at(call.counts, communicator.size());
    return submit_uneven(communicator, all, longest_of(all.lengths));
  });
}

Status all_to_all_v(Communicator& communicator, const AllToAllV& call) {
  return guarded(communicator, [&]() -> Status {
    Call all = as_uneven_call(Collective::kAllToAllV, call);
    const bool sends = call.send_counts != nullptr, takes = call.recv_counts != nullptr;
    TUTTI_TRY(check_sources(all, sends || takes, call.device_counts));
    if (sends != takes) return invalid(all, "send_counts and recv_counts: give both");
    all.lengths.sent = lengths_at(call.send_counts, communicator.size());
    all.lengths.taken = lengths_at(call.recv_counts, communicator.size());
    return submit_uneven(communicator, all, sends ? call.max_count : longest_of(all.lengths));
  });
}

}  // namespace tutti
