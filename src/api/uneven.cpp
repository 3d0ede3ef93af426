// Calls of collectives whose pieces are as long as ranks like.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "api/as_call.hpp"
#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "operation/checks.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

// Counts travel between ranks in 32 bits.
constexpr std::size_t kMostCount = std::numeric_limits<std::uint32_t>::max() - 1;

Status check_lengths(const Call& call, std::span<const std::size_t> lengths, std::size_t most) {
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    if (lengths[r] <= most) continue;
    return invalid(
        call, fmt::format("the count of rank {} is {}, and the most is {}", r, lengths[r], most));
  }
  return Status::ok();
}

// `call.count` is of the longest piece by now.
Status check_buffers(const Call& call, int rank, int ranks) {
  const Sides sides = call.sides(rank, ranks);
  if (sides.input > 0) TUTTI_TRY(check_buffer(call, call.input));
  if (sides.output > 0) TUTTI_TRY(check_buffer(call, call.output));
  return check_overlap(call, rank, ranks);
}

// All but `call.count` and its lengths is as the user gave it. `most`: the longest piece of any
// rank.
Status submit_uneven(Communicator& communicator, Call call, std::size_t most) {
  const int ranks = communicator.size();
  TUTTI_TRY(check_types(call));
  if (most > kMostCount) {
    return invalid(call, fmt::format("a count of {}: below 2^32 - 1 are taken", most));
  }
  TUTTI_TRY(check_lengths(call, call.lengths.sent, most));
  TUTTI_TRY(check_lengths(call, call.lengths.taken, most));
  call.count = most * static_cast<std::size_t>(ranks);
  if (most == 0) call.input = call.output = nullptr;
  TUTTI_TRY(check_buffers(call, communicator.rank(), ranks));
  return submit(communicator, call);
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
