// How long pieces of collectives are that have them of any lengths, in tests.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/collective.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {

// What rank `from` has for rank `to`, up to `longest`: nothing now and then, and now and then all.
inline std::size_t uneven_count(Collective collective, std::size_t longest, std::uint64_t seed,
                                int from, int to) {
  if (!is_uneven(collective)) return longest;
  if (collective == Collective::kAllGatherV) to = 0;
  if (collective == Collective::kReduceScatterV) from = 0;
  std::uint64_t mixed = seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(from * 64 + to + 1);
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
  mixed ^= mixed >> 32;
  if (mixed % 8 == 0) return 0;
  if (mixed % 8 == 1) return longest;
  return mixed / 8 % (longest + 1);
}

// Of one rank: what it has for each, and what it takes from each.
struct UnevenCounts {
  std::vector<std::size_t> sent, taken;

  UnevenCounts(Collective collective, std::size_t longest, std::uint64_t seed, int rank,
               int ranks) {
    for (int r = 0; r < ranks; ++r) {
      sent.push_back(uneven_count(collective, longest, seed, rank, r));
      taken.push_back(uneven_count(collective, longest, seed, r, rank));
    }
    if (collective == Collective::kReduceScatterV) taken = sent;
  }
  static std::size_t before(const std::vector<std::size_t>& counts, int rank) {
    std::size_t sum = 0;
    for (int r = 0; r < rank; ++r) sum += counts[static_cast<std::size_t>(r)];
    return sum;
  }

  Sides sides(Collective collective, int rank) const {
    const auto own = static_cast<std::size_t>(rank);
    const auto all = static_cast<int>(sent.size());
    if (collective == Collective::kAllGatherV) {
      return {sent[own], before(taken, all), before(taken, rank)};
    }
    if (collective == Collective::kReduceScatterV) {
      return {before(sent, all), sent[own], before(sent, rank)};
    }
    return {before(sent, all), before(taken, all), 0};
  }
};

// Names them in a call, on the host.
template <class AnyCall>
void give_counts(AnyCall& call, const UnevenCounts& counts, std::size_t longest) {
  if constexpr (requires { call.send_counts; }) {
    call.send_counts = counts.sent.data();
    call.recv_counts = counts.taken.data();
    call.max_count = longest;
  } else {
    call.counts = counts.taken.data();
  }
}

}  // namespace tutti::test
