// What programs of the network are written with: steps that are added one by one, and how a vector
// is divided among ranks.
#pragma once

#include <utility>
#include <vector>

#include "algorithms/network_program.hpp"
#include "algorithms/ring_schedule.hpp"
#include "device/team.hpp"

namespace tutti {

// What stands for a step that was left out, since it has no elements.
inline constexpr int kNoStep = -1;

constexpr NetworkPlace input_at(std::size_t first) { return {NetworkPlace::Buffer::kInput, first}; }
constexpr NetworkPlace output_at(std::size_t first) {
  return {NetworkPlace::Buffer::kOutput, first};
}
constexpr NetworkPlace scratch_at(std::size_t first) {
  return {NetworkPlace::Buffer::kScratch, first};
}

class NetworkSteps {
 public:
  explicit NetworkSteps(const NetworkShape& shape) : shape_(shape) {}

  // Its index, for the `after` of others. Of a step without elements: kNoStep. Both ends of a
  // message leave it out, as their ranges have one length.
  int add(NetworkStep step) { return step.count == 0 ? kNoStep : add_always(std::move(step)); }
  int add_always(NetworkStep step) {
    std::erase(step.after, kNoStep);
    program_.steps.push_back(std::move(step));
    return static_cast<int>(program_.steps.size()) - 1;
  }
  int send(int peer, Range range, NetworkPlace from, std::vector<int> after = {}) {
    return add({.kind = NetworkStep::Kind::kSend,
                .peer = peer,
                .first = range.first,
                .count = range.count,
                .places = {from},
                .after = std::move(after)});
  }
  int receive(int peer, Range range, NetworkPlace into, std::vector<int> after = {}) {
    return add({.kind = NetworkStep::Kind::kReceive,
                .peer = peer,
                .first = range.first,
                .count = range.count,
                .into = into,
                .after = std::move(after)});
  }
  // Of all places, in their order. It is whole.
  int sum(Range range, std::vector<NetworkPlace> places, NetworkPlace into,
          std::vector<int> after = {}) {
    return add({.kind = NetworkStep::Kind::kSum,
                .first = range.first,
                .count = range.count,
                .places = std::move(places),
                .into = into,
                .whole = true,
                .after = std::move(after)});
  }
  int copy(Range range, NetworkPlace from, NetworkPlace into, std::vector<int> after = {}) {
    return add({.kind = NetworkStep::Kind::kCopy,
                .first = range.first,
                .count = range.count,
                .places = {from},
                .into = into,
                .after = std::move(after)});
  }

  // Scratch for `slots` x `elements`, after all that was taken before. Returns where it begins.
  std::size_t take_scratch(int slots, std::size_t elements) {
    const std::size_t first = program_.scratch;
    program_.scratch += static_cast<std::size_t>(slots) * elements;
    return first;
  }

  // All other ranks, the next one first: so that not all ranks send to one at a time.
  std::vector<int> others() const {
    std::vector<int> ranks;
    for (int step = 1; step < shape_.ranks; ++step) {
      ranks.push_back((shape_.rank + step) % shape_.ranks);
    }
    return ranks;
  }

  NetworkProgram take() { return std::move(program_); }

 private:
  const NetworkShape& shape_;
  NetworkProgram program_;
};

// The share of one of `parts` of a vector that all ranks have in full.
inline Range share_of(const NetworkShape& shape, int part, int parts) {
  return shard({0, shape.count}, part, parts, shape.unit);
}
// What is treated of the piece of a rank, in the larger buffer.
inline Range piece_of(const NetworkShape& shape, int rank) {
  return {shape.stride * static_cast<std::size_t>(rank), shape.count};
}

// To each other rank its piece, which lies in the input, or from each its own, to the output.
inline void send_pieces(NetworkSteps& steps, const NetworkShape& shape) {
  for (const int peer : steps.others()) {
    const Range piece = piece_of(shape, peer);
    steps.send(peer, piece, input_at(piece.first));
  }
}
inline void receive_pieces(NetworkSteps& steps, const NetworkShape& shape) {
  for (const int peer : steps.others()) {
    const Range piece = piece_of(shape, peer);
    steps.receive(peer, piece, output_at(piece.first));
  }
}

// A slot of scratch for each rank but this one, in the order of the ranks.
inline std::size_t slot_of(const NetworkShape& shape, int rank) {
  return static_cast<std::size_t>(rank < shape.rank ? rank : rank - 1);
}

// Of everybody's at one place, in rank order: what came lies in slots of scratch of `slot`
// elements from `first` on, this rank's own at `own`.
inline std::vector<NetworkPlace> in_rank_order(const NetworkShape& shape, std::size_t first,
                                               std::size_t slot, NetworkPlace own) {
  std::vector<NetworkPlace> places;
  places.reserve(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    places.push_back(rank == shape.rank ? own : scratch_at(first + slot * slot_of(shape, rank)));
  }
  return places;
}

}  // namespace tutti
