// Pieces of any lengths, as the bodies of all_gather_v, reduce_scatter_v and all_to_all_v see them.
// KernelArgs::count is of as many pieces as there are ranks, each as long as the longest may be: of
// that depend staging, slots and the grid, which are alike on every rank.
#pragma once

#include "algorithms/pieces.hpp"
#include "device/counts.hpp"

namespace tutti {

// No count is larger.
TUTTI_BODY std::uint32_t most_of(const KernelArgs& work, const PieceCounts& counts) {
  return static_cast<std::uint32_t>(piece_of(work) >> counts.bits);
}

// What is published, where counts beyond any limit are still seen to be so.
TUTTI_BODY std::uint32_t published_count(std::size_t count) {
  constexpr std::size_t kMost = ~std::uint32_t{0};
  return static_cast<std::uint32_t>(count < kMost ? count : kMost);
}

// Who has how much for whom: the same on every rank. In elements of KernelArgs::count.
template <class Team>
class Exchange {
 public:
  TUTTI_BODY Exchange(Team& team, const KernelArgs& work, const PieceCounts& counts)
      : team_(team), work_(work), counts_(counts) {}

  // Before the first arrival, which releases it.
  TUTTI_BODY void publish() {
    if (counts_.agreed) return;
    team_.publish_counts([&](int rank) { return published_count(counts_.sent_to(rank)); });
  }
  TUTTI_BODY Publish first_publish() const {
    return counts_.agreed ? Publish::kEarlierKernels : Publish::kStores;
  }

  // Behind the first wait. What the host was told must agree with what the peers have; nothing may
  // be longer than the call allows.
  TUTTI_BODY Outcome learn() {
    const auto load = [&](int from, int to) {
      if (!counts_.agreed) return team_.published(from, to);
      return static_cast<std::uint32_t>(counts_.taken[from].count >> counts_.bits);
    };
    const std::uint32_t most = most_of(work_, counts_);
    return team_.learn_counts(load, [&](int from, int to, std::uint32_t count) {
      if (count > most) return CountVerdict{false, FailureReason::kTooMany, most};
      if (counts_.is_on_device() || to != work_.rank) return CountVerdict{};
      const std::size_t taken = counts_.taken[from].count >> counts_.bits;
      return CountVerdict{count == taken, FailureReason::kOtherCount, taken};
    });
  }

  TUTTI_BODY std::size_t count(int from, int to) const {
    return static_cast<std::size_t>(team_.counted(from, to)) << counts_.bits;
  }
  // Where in this rank's input what it has for `to` begins.
  TUTTI_BODY std::size_t first_for(int to) const {
    std::size_t first = 0;
    if (counts_.kind == PieceCounts::Kind::kSame) return first;
    TUTTI_NO_UNROLL
    for (int r = 0; r < to; ++r) first += count(work_.rank, r);
    return first;
  }
  // Where in rank `to`'s output what comes from `from` begins.
  TUTTI_BODY std::size_t place(int from, int to) const {
    std::size_t first = 0;
    TUTTI_NO_UNROLL
    for (int r = 0; r < from; ++r) first += count(r, to);
    return first;
  }
  TUTTI_BODY std::size_t longest() const {
    std::size_t longest = 0;
    TUTTI_NO_UNROLL
    for (int pair = 0; pair < work_.ranks * work_.ranks; ++pair) {
      const std::size_t each = count(pair / work_.ranks, pair % work_.ranks);
      longest = each > longest ? each : longest;
    }
    return longest;
  }
  // Tells the device's user what came from each rank, if that was asked for.
  TUTTI_BODY void tell_found() const {
    TUTTI_NO_UNROLL
    for (int from = 0; counts_.found != nullptr && from < work_.ranks; ++from) {
      counts_.found[from] = team_.counted(from, work_.rank);
    }
  }

 private:
  Team& team_;
  const KernelArgs& work_;
  const PieceCounts& counts_;
};

}  // namespace tutti
