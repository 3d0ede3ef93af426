// How a message is dealt out where one rank, the root, has it or is to have it: a share to each of
// the other ranks, so that it crosses the root's links once. In passes, of which one is under way
// between two ranks while the next one is between two others.
#pragma once

#include "device/team.hpp"

namespace tutti {

struct RootedPasses {
  std::size_t count, unit;   // elements; of shares
  std::size_t slot, number;  // elements of a share at most; passes
  int dealers, rank_of_first, ranks;

  static constexpr std::size_t kOnePass = ~std::size_t{0};

  // Of at most `longest` elements each. To the root go shares as well where there is no other rank,
  // or, `with_root`, where there is one.
  TUTTI_BODY RootedPasses(const KernelArgs& work, std::size_t element_bytes, std::size_t longest,
                          bool with_root)
      : count(work.count), unit(16 / element_bytes), ranks(work.ranks) {
    const bool alone = work.ranks == 1 || (with_root && work.ranks == 2);
    dealers = alone ? 1 : work.ranks - 1;
    rank_of_first = alone ? work.root : (work.root + 1) % work.ranks;
    const std::size_t share = divided(count, dealers, unit);
    const std::size_t fits = longest / (unit * dealers) * unit;
    const std::size_t most = fits < unit ? unit : fits;
    number = share > most ? (share + most - 1) / most : 1;
    slot = ((share + unit - 1) / unit + number - 1) / number * unit;
  }

  TUTTI_BODY Range all(std::size_t k) const {
    const std::size_t length = slot * static_cast<std::size_t>(dealers);
    return cut({length * k, length}, count);
  }
  // Of the shares of a pass, which one is that rank's; beyond them: none.
  TUTTI_BODY int index_of(int rank) const {
    return rank < rank_of_first ? rank - rank_of_first + ranks : rank - rank_of_first;
  }
  TUTTI_BODY Range share_of(int rank, std::size_t k) const {
    const int index = index_of(rank);
    if (index >= dealers) return {0, 0};
    return shard(all(k), index, dealers, unit);
  }
  // Where staging is a slot per share, in the order of shares: that of this rank's. A tile has the
  // same place there in every pass, be that shorter than others.
  TUTTI_BODY std::size_t slot_of(int rank) const {
    return slot * static_cast<std::size_t>(index_of(rank));
  }
};

}  // namespace tutti
