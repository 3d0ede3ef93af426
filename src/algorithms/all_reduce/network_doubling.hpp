// all_reduce/network_doubling: recursive doubling. In each round two ranks exchange what they have
// added up. Where ranks are no power of two, neighbours among the first ones share a place: the
// first of both gives its input to the second, and gets the result back.
//
// Cost: log2(n) hops, and 2 where n is no power of two; of each all bytes. Scratch: a message for
// each round.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct AllReduceNetworkDoubling {
  // So many ranks have a place, and so many of these are of two ranks: the first ones.
  struct Places {
    int places, shared;
    constexpr explicit Places(int ranks)
        : places(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
          shared(ranks - places) {}
    constexpr int rank_at(int place) const {
      return place < shared ? 2 * place + 1 : place + shared;
    }
    constexpr int place_of(int rank) const { return rank < 2 * shared ? rank / 2 : rank - shared; }
    constexpr bool gives_input(int rank) const { return rank < 2 * shared && rank % 2 == 0; }
    constexpr int rounds() const { return doubling_rounds(places); }
  };

  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range all{0, shape.count};
    const Places places(shape.ranks);
    const std::size_t slot = divided(shape.count, 1, shape.unit);
    const std::size_t slots = steps.take_scratch(places.rounds() + 1, slot);
    if (places.gives_input(shape.rank)) {
      const int sent = steps.send(shape.rank + 1, all, input_at(0));
      steps.receive(shape.rank + 1, all, output_at(0), {sent});
      return steps.take();
    }
    const int place = places.place_of(shape.rank);
    Partial partial{input_at(0), kNoStep};
    const bool shares = place < places.shared;
    if (shares) {
      const NetworkPlace given =
          scratch_at(slots + slot * static_cast<std::size_t>(places.rounds()));
      const int came = steps.receive(shape.rank - 1, all, given);
      partial = add(steps, {given, partial.at}, all, {came}, false);
    }
    for (int round = 0; round < places.rounds(); ++round) {
      const int partner = places.rank_at(place ^ (1 << round));
      const NetworkPlace from = scratch_at(slots + slot * static_cast<std::size_t>(round));
      const int sent = steps.send(partner, all, partial.at, {partial.step});
      const int came = steps.receive(partner, all, from);
      // In the order of the ranks, so that both partners get the same bits.
      const bool first = partner > shape.rank;
      partial = add(steps, {first ? partial.at : from, first ? from : partial.at}, all,
                    {partial.step, sent, came}, round + 1 == places.rounds());
    }
    if (shape.ranks == 1) partial = add(steps, {partial.at}, all, {}, true);
    if (shares) steps.send(shape.rank - 1, all, output_at(0), {partial.step});
    return steps.take();
  }

  static Crossing crossing(int ranks, int nodes) {
    const double rounds = doubling_rounds(Places(ranks).places), twice = Places(ranks).shared > 0;
    // Partners of the first rounds may be on one node; of all, as many are as if they were random.
    const double wire = kExchangeWhole * (rounds + twice);
    return {rounds + 2 * twice, leaving_node(wire, ranks, nodes)};
  }

  static constexpr Algorithm kAlgorithm{.id = "all_reduce/network_doubling",
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .order = Order::kSameOnAllRanks,
                                        .cost = {.between = crossing},
                                        .text = "recursive doubling: sums are exchanged by pairs",
                                        .peers_read_input = false,
                                        .takes = network_rounds_take,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "log2 n, and 2 if n is no power of two",
                                    .wire = "B log2 n"};

 private:
  struct Partial {
    NetworkPlace at;
    int step;
  };
  // Sums lie in the output. What was sent of it has to be gone: `after`.
  static Partial add(NetworkSteps& steps, std::vector<NetworkPlace> places, Range range,
                     std::vector<int> after, bool whole) {
    const int step = steps.add({.kind = NetworkStep::Kind::kSum,
                                .first = range.first,
                                .count = range.count,
                                .places = std::move(places),
                                .into = output_at(0),
                                .whole = whole,
                                .after = std::move(after)});
    return {output_at(0), step};
  }
};

}  // namespace tutti
