#include "model/ctran_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "algorithms/all_reduce/network_ring.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti::model {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::size_t kStaging = 32 * kMiB, kLargestChunk = 16 * kMiB, kGrownChunk = 2 * kMiB;
constexpr int kManyRanks = 32;
constexpr std::size_t kSmallestShare = 16;

// The nearest one; of two as near, the greater.
std::size_t nearest_power(std::size_t value) {
  const std::size_t below = std::bit_floor(value);
  return value - below < 2 * below - value ? below : 2 * below;
}

struct Tier {
  std::size_t below;
  int value;
};
template <std::size_t N>
int tier_of(std::size_t value, const Tier (&tiers)[N], int above) {
  for (const Tier& tier : tiers) {
    if (value < tier.below) return tier.value;
  }
  return above;
}

// By the bytes of a rank's share.
int depth_of(std::size_t share, bool hopper) {
  constexpr Tier kHopper[] = {{32 * kKiB, 1}, {kMiB, 2}, {4 * kMiB, 4}, {8 * kMiB, 2}};
  constexpr Tier kOther[] = {{32 * kKiB, 1}, {32 * kMiB, 2}};
  return hopper ? tier_of(share, kHopper, 1) : tier_of(share, kOther, 1);
}
int blocks_of(std::size_t chunk, bool hopper) {
  constexpr Tier kHopper[] = {{128 * kKiB, 1}, {512 * kKiB, 2}};
  constexpr Tier kOther[] = {{8 * kKiB, 1}, {32 * kKiB, 2}, {64 * kKiB, 4}};
  return hopper ? tier_of(chunk, kHopper, 4) : tier_of(chunk, kOther, 8);
}

}  // namespace

CtranTuning tune_ctran_ring(std::size_t bytes, int ranks, CtranArchitecture architecture) {
  const bool hopper = architecture == CtranArchitecture::kHopper;
  const auto members = static_cast<std::size_t>(ranks);
  const std::size_t rounded = nearest_power(bytes);
  CtranTuning tuning{.depth = depth_of(rounded / members, hopper)};
  // What is under way at once: no more than rate times delay.
  const std::size_t under_way = std::min(rounded, (hopper ? 32 : 128) * kMiB);
  const auto depth = static_cast<std::size_t>(tuning.depth);
  tuning.chunk_bytes =
      std::clamp(under_way / (depth * nearest_power(members)), std::size_t{1}, kLargestChunk);
  std::size_t slots = ceil_div(under_way, tuning.chunk_bytes);
  if (under_way > kStaging) slots = std::max<std::size_t>(slots / ceil_div(under_way, kStaging), 1);
  if (!hopper && ranks > kManyRanks && rounded / under_way > depth) {
    while (tuning.chunk_bytes < kGrownChunk && slots > 1) {
      tuning.chunk_bytes *= 2;
      slots /= 2;
    }
  }
  tuning.slots = static_cast<int>(slots);
  tuning.blocks = blocks_of(tuning.chunk_bytes, hopper);
  return tuning;
}

std::vector<std::size_t> ctran_partitions(std::size_t bytes, int ranks, const CtranTuning& tuning) {
  const auto members = static_cast<std::size_t>(ranks);
  const std::size_t most = tuning.chunk_bytes * static_cast<std::size_t>(tuning.slots) * members;
  const std::size_t least = std::min(kSmallestShare * members, most);
  std::vector<std::size_t> parts(bytes / most, most);
  const std::size_t left = bytes % most;
  if (left == 0) return parts;
  parts.push_back(left);
  if (left < least && parts.size() > 1) {
    parts[parts.size() - 2] -= least - left;
    parts.back() = least;
  }
  return parts;
}

NetworkProgram ctran_ring(const NetworkShape& shape) {
  return AllReduceNetworkRing::program(shape);
}

NetworkProgram ctran_ring_bidirectional(const NetworkShape& shape) {
  const NetworkRing ring = AllReduceNetworkRing::ring(shape, false);
  NetworkSteps steps(shape);
  NetworkRingSteps turns(steps, ring);
  turns.add();
  std::vector<int> complete = turns.complete();
  const auto at = [](int share) { return static_cast<std::size_t>(share); };
  const auto pass = [&](int to, int from, int sent, int came) {
    steps.send(to, ring.shares[at(sent)], ring.into[at(sent)], {complete[at(sent)]});
    complete[at(came)] =
        steps.receive(from, ring.shares[at(came)], ring.into[at(came)], {turns.sent()[at(came)]});
  };
  const RingMember member(shape.ranks, ring.member.whole, true);
  const int own = ring.whole();
  for (int step = 0; step < member.steps.forward; ++step) {
    pass(ring.next, ring.before, member.send_forward(step), member.send_forward(step + 1));
    if (step >= member.steps.reverse) continue;
    if (step == 0) {
      const std::size_t copy = steps.take_scratch(1, divided(shape.count, shape.ranks, shape.unit));
      const int all = steps.add_always({.kind = NetworkStep::Kind::kCopy,
                                        .places = {ring.into[at(own)]},
                                        .into = ring.into[at(own)],
                                        .after = {complete[at(own)]}});
      const int copied =
          steps.copy(ring.shares[at(own)], ring.into[at(own)], scratch_at(copy), {all});
      const int came = member.send_reverse(1);
      steps.send(ring.before, ring.shares[at(own)], scratch_at(copy), {copied});
      complete[at(came)] = steps.receive(ring.next, ring.shares[at(came)], ring.into[at(came)],
                                         {turns.sent()[at(came)]});
    } else {
      pass(ring.before, ring.next, member.send_reverse(step), member.send_reverse(step + 1));
    }
  }
  return steps.take();
}

Result<SimulatedTime> simulate_ctran_ring(const CtranRun& run, int nodes, const Link& between) {
  constexpr std::size_t kElementBytes = 4;
  if (nodes < 2 || run.bytes < kElementBytes * static_cast<std::size_t>(nodes)) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("{} bytes are not one element for each of {} nodes: this ring needs 2 "
                    "nodes and {} bytes for each",
                    run.bytes, nodes, kElementBytes));
  }
  const CtranTuning tuning = tune_ctran_ring(run.bytes, nodes, run.architecture);
  const std::size_t chunk = std::max(tuning.chunk_bytes, kElementBytes);
  const double kernel_us =
      static_cast<double>(chunk) / (run.costs.block_gb_per_s * tuning.blocks * 1e3) +
      run.costs.chunk_us + (run.both_ways ? run.costs.reverse_us : 0);
  ClusterModel cluster{.name = "", .nodes = nodes, .between = between};
  cluster.processor = {
      .start_us = run.costs.start_us, .receive_us = kernel_us, .local_us = kernel_us};
  SimulatedTime all;
  for (const std::size_t bytes : ctran_partitions(run.bytes, nodes, tuning)) {
    const SimulatedOperation operation{
        .schedule = run.both_ways ? ctran_ring_bidirectional : ctran_ring,
        .count = bytes / kElementBytes,
        .element_bytes = kElementBytes,
        .chunk_bytes = chunk,
        .most_scratch_bytes = run.bytes,
        .slots = tuning.slots};
    TUTTI_ASSIGN(const SimulatedTime part, simulate(operation, cluster));
    const double busy_us = all.us * all.busy_part + part.us * part.busy_part;
    all.us += part.us;
    all.events += part.events;
    all.sent_bytes += part.sent_bytes;
    all.simulated_ranks = part.simulated_ranks;
    all.busy_part = busy_us / all.us;
    cluster.processor.start_us = 0;
  }
  return all;
}

}  // namespace tutti::model
