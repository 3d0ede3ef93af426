// all_reduce/network_tree: two binary trees. Each has a half of the vector: sums go up to its root,
// and the result goes down. A rank passes data on in one of the trees at most, and is a leaf of the
// other one; so all links carry about as much.
//
// Cost: 2 floor(log2 n) hops; 2 x bytes over a link, chunk by chunk. No scratch.
#pragma once

#include <array>
#include <bit>

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct AllReduceNetworkTree {
  // The places 1 to n of a binary search tree. The lowest bit of a place tells how high it is: odd
  // places are leaves. What lies below a place are the places on both sides of it, up to half of
  // its lowest bit away and more.
  struct Tree {
    int ranks = 1;
    bool second = false;

    // Odd and even places change places in the second tree: it is the mirror image, or, where there
    // is one more odd place than even ones, it is turned by a rank. One rank is a leaf of both
    // then.
    constexpr int place_of(int rank) const {
      if (!second) return rank + 1;
      return ranks % 2 == 0 ? ranks - rank : (rank + 1) % ranks + 1;
    }
    constexpr int rank_at(int place) const {
      if (place == kNobody || !second) return place - 1;
      return ranks % 2 == 0 ? ranks - place : (place + ranks - 2) % ranks;
    }

    // Places; kNobody where there is none.
    static constexpr int kNobody = 0;
    constexpr int parent(int place) const {
      const int bit = lowest_bit(place), near = (place ^ bit) | 2 * bit;
      return near <= ranks ? near : place ^ bit;
    }
    constexpr int left(int place) const { return child(place, -1); }
    constexpr int right(int place) const { return child(place, 1); }

   private:
    static constexpr int lowest_bit(int place) { return place & -place; }
    // Where the place itself is beyond the last one, the highest one below it that is not.
    constexpr int child(int place, int side) const {
      for (int half = lowest_bit(place) / 2; half > 0; half /= 2) {
        if (place + side * half <= ranks) return place + side * half;
      }
      return kNobody;
    }
  };

  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    std::array<Member, 2> members{Member(shape, 0), Member(shape, 1)};
    for (Member& member : members) member.add(steps);
    for (const Member& member : members) member.spread(steps);
    return steps.take();
  }

  // Data goes through that many ranks, chunk by chunk. At a port three others meet.
  static Crossing crossing(int ranks, int nodes) {
    const double hops = 2.0 * levels(ranks);
    const double wire = ranks > 2 ? 2 * kMeetAtAPort : two_shot_wire(ranks);
    return {hops, leaving_node(wire, ranks, nodes), hops};
  }

  static constexpr Algorithm kAlgorithm{.id = "all_reduce/network_tree",
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .order = Order::kSameOnAllRanks,
                                        .cost = {.between = crossing},
                                        .text = "sums go up two trees, and results go down",
                                        .peers_read_input = false,
                                        .takes = network_rounds_take,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "2 floor(log2 n)", .wire = "2 B"};

 private:
  static constexpr int levels(int ranks) { return std::bit_width(0U + ranks) - 1; }

  // What this rank does in one of the trees.
  class Member {
   public:
    Member(const NetworkShape& shape, int index) : half_(share_of(shape, index, 2)) {
      const Tree tree{shape.ranks, index == 1};
      const int place = tree.place_of(shape.rank);
      parent_ = tree.rank_at(tree.parent(place));
      children_ = {tree.rank_at(tree.left(place)), tree.rank_at(tree.right(place))};
    }

    // What is below comes first from the left, then from the right: sums lie in the output.
    void add(NetworkSteps& steps) {
      NetworkPlace sum = input_at(half_.first);
      for (const int child : children_) {
        if (!is_rank(child)) continue;
        const bool last = child == children_[1] || !is_rank(children_[1]);
        complete_ = steps.add({.kind = NetworkStep::Kind::kReceive,
                               .peer = child,
                               .first = half_.first,
                               .count = half_.count,
                               .places = {sum},
                               .into = output_at(half_.first),
                               .whole = last && !is_rank(parent_),
                               .after = {complete_}});
        sum = output_at(half_.first);
      }
      if (is_rank(parent_)) {
        sent_ = steps.send(parent_, half_, sum, {complete_});
      } else if (!is_rank(children_[0])) {  // of one rank
        steps.sum(half_, {sum}, output_at(half_.first));
      }
    }

    void spread(NetworkSteps& steps) const {
      int complete = complete_;
      if (is_rank(parent_)) {
        complete = steps.receive(parent_, half_, output_at(half_.first), {sent_});
      }
      for (const int child : children_) {
        if (is_rank(child)) steps.send(child, half_, output_at(half_.first), {complete});
      }
    }

   private:
    static bool is_rank(int rank) { return rank >= 0; }

    Range half_;
    int parent_ = -1;
    std::array<int, 2> children_ = {};
    int complete_ = kNoStep, sent_ = kNoStep;
  };
};

}  // namespace tutti
