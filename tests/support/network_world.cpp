#include "support/network_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/hash.hpp"

namespace tutti::test {
namespace {

using Kind = NetworkStep::Kind;
using Buffer = NetworkPlace::Buffer;

// Where a step of a rank lies in its memory. In place the smaller buffer is a part of the larger.
struct RankMemory {
  std::size_t input = 0, output = 0, scratch = 0;  // where each begins
  std::size_t elements = 0;
  Sides sides;

  RankMemory(const NetworkTrial& trial, int rank, std::size_t scratch_elements) {
    const NetworkShape& shape = trial.shape;
    const auto ranks = static_cast<std::size_t>(shape.ranks);
    const Collective collective = trial.row->collective;
    const std::size_t larger = has_pieces(collective) ? shape.stride * ranks : shape.count;
    sides = sides_of(collective, larger, rank, shape.ranks);
    const bool can_be = runs_in_place(collective) || (has_root(collective) && rank == shape.root);
    output = sides.input;
    if (trial.in_place && can_be) {
      input = sides.output > sides.input ? sides.place : 0;
      output = sides.output > sides.input ? 0 : sides.place;
    }
    scratch = std::max(input + sides.input, output + sides.output);
    elements = scratch + scratch_elements;
  }
  std::size_t at(const NetworkPlace& place) const {
    const std::size_t begin = place.buffer == Buffer::kInput    ? input
                              : place.buffer == Buffer::kOutput ? output
                                                                : scratch;
    return begin + place.first;
  }
  bool holds(const NetworkPlace& place, std::size_t count) const {
    const std::size_t size = place.buffer == Buffer::kInput    ? sides.input
                             : place.buffer == Buffer::kOutput ? sides.output
                                                               : elements - scratch;
    return place.first + count <= size;
  }
};

bool writes(const NetworkStep& step) { return step.kind != Kind::kSend; }

// Ranges of chunks, by the elements that they are.
bool overlap(const NetworkStep& a, NetworkChunk of_a, const NetworkStep& b, NetworkChunk of_b) {
  if (a.count == 0 || b.count == 0) return true;
  const std::size_t first_a = a.first + of_a.first, first_b = b.first + of_b.first;
  return first_a < first_b + of_b.count && first_b < first_a + of_a.count;
}

// The chunks of `other` that overlap a part of `step`.
std::vector<std::size_t> overlapping(const NetworkStep& step, NetworkChunk part,
                                     const NetworkStep& other, std::size_t chunk) {
  std::vector<std::size_t> chunks;
  for (std::size_t o = 0; o < chunks_of(other, chunk); ++o) {
    if (overlap(step, part, other, chunk_of(other, chunk, o))) chunks.push_back(o);
  }
  return chunks;
}

}  // namespace

NetworkProgram NetworkTrial::program(int rank) const {
  NetworkShape own = shape;
  own.rank = rank;
  return row->network(own);
}

std::string NetworkTrial::text() const {
  return fmt::format("{}, {} ranks, root {}, {} elements, unit {}, chunks of {}{}", row->id,
                     shape.ranks, shape.root, shape.count, shape.unit, chunk,
                     in_place ? ", in place" : "");
}

NetworkOrder::NetworkOrder(const NetworkProgram& program, std::size_t chunk) {
  for (std::size_t index = 0; index < program.steps.size(); ++index) {
    const NetworkStep& step = program.steps[index];
    first_.push_back(nodes_.size());
    for (std::size_t c = 0; c < chunks_of(step, chunk); ++c) {
      Node node{static_cast<int>(index), c, {}};
      for (const int before : step.after) {
        const NetworkStep& other = program.steps[static_cast<std::size_t>(before)];
        for (const std::size_t o : overlapping(step, chunk_of(step, chunk, c), other, chunk)) {
          node.after.push_back(this->node(before, o));
        }
      }
      nodes_.push_back(std::move(node));
    }
  }
  before_.assign(nodes_.size(), std::vector<bool>(nodes_.size()));
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    for (const std::size_t before : nodes_[n].after) {
      before_[n][before] = true;
      for (std::size_t k = 0; k < n; ++k) before_[n][k] = before_[n][k] || before_[before][k];
    }
  }
}

namespace {

struct Access {
  std::size_t node;
  bool writes;
};

// By element.
std::vector<std::vector<Access>> accesses_of(const RankMemory& memory,
                                             const NetworkProgram& program,
                                             const NetworkOrder& order, std::size_t chunk) {
  std::vector<std::vector<Access>> all(memory.elements);
  for (std::size_t n = 0; n < order.nodes().size(); ++n) {
    const auto& node = order.nodes()[n];
    const NetworkStep& step = program.steps[static_cast<std::size_t>(node.step)];
    const NetworkChunk part = chunk_of(step, chunk, node.chunk);
    const bool stays =
        step.kind == Kind::kCopy && memory.at(step.places[0]) == memory.at(step.into);
    for (std::size_t e = part.first; e < part.first + part.count && !stays; ++e) {
      for (const NetworkPlace& place : step.places) {
        all[memory.at(place) + e].push_back({n, false});
      }
      if (writes(step)) all[memory.at(step.into) + e].push_back({n, true});
    }
  }
  return all;
}

}  // namespace

std::string race_of(const NetworkTrial& trial, int rank, const NetworkProgram& program) {
  const RankMemory memory(trial, rank, program.scratch);
  const NetworkOrder order(program, trial.chunk);
  const auto all = accesses_of(memory, program, order, trial.chunk);
  for (std::size_t e = 0; e < all.size(); ++e) {
    for (std::size_t i = 0; i < all[e].size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Access first = all[e][j], second = all[e][i];
        if (first.node == second.node || !(first.writes || second.writes)) continue;
        if (order.is_ordered(first.node, second.node)) continue;
        return fmt::format(
            "{}: rank {}: steps {} and {} touch element {} of its memory in any order",
            trial.text(), rank, order.nodes()[first.node].step, order.nodes()[second.node].step, e);
      }
    }
  }
  return {};
}

namespace {

// Lengths of messages, in order.
using Messages = std::vector<std::size_t>;
Messages between(const NetworkProgram& program, Kind kind, int peer) {
  Messages lengths;
  for (const NetworkStep& step : program.steps) {
    if (step.kind == kind && step.peer == peer) lengths.push_back(step.count);
  }
  return lengths;
}

std::string misplaced_in(const NetworkTrial& trial, int rank, const NetworkProgram& program) {
  const RankMemory memory(trial, rank, program.scratch);
  for (std::size_t index = 0; index < program.steps.size(); ++index) {
    const NetworkStep& step = program.steps[index];
    const bool messages = step.kind == Kind::kSend || step.kind == Kind::kReceive;
    bool fits = !messages || (step.peer >= 0 && step.peer < trial.shape.ranks && step.peer != rank);
    for (const NetworkPlace& place : step.places) fits = fits && memory.holds(place, step.count);
    if (writes(step)) fits = fits && memory.holds(step.into, step.count);
    for (const int before : step.after)
      fits = fits && before >= 0 && before < static_cast<int>(index);
    if (step.count > 0) fits = fits && (step.kind == Kind::kReceive || !step.places.empty());
    if (!fits) return fmt::format("{}: rank {}: step {} is misplaced", trial.text(), rank, index);
  }
  return {};
}

}  // namespace

std::string misfit_of(const NetworkTrial& trial, const std::vector<NetworkProgram>& programs) {
  for (int rank = 0; rank < trial.shape.ranks; ++rank) {
    const NetworkProgram& program = programs[static_cast<std::size_t>(rank)];
    std::string text = misplaced_in(trial, rank, program);
    if (!text.empty()) return text;
    if (program.scratch != programs.front().scratch) {
      return fmt::format("{}: rank {} has other scratch than rank 0", trial.text(), rank);
    }
    for (int peer = 0; peer < trial.shape.ranks; ++peer) {
      const NetworkProgram& other = programs[static_cast<std::size_t>(peer)];
      if (between(program, Kind::kSend, peer) != between(other, Kind::kReceive, rank)) {
        return fmt::format("{}: rank {} sends to rank {} what that does not receive", trial.text(),
                           rank, peer);
      }
    }
  }
  return {};
}

namespace {

// What an element is: inputs that were added, in order, all of the same element; and how.
struct Symbol {
  std::vector<int> ranks;
  std::size_t element = 0;
  std::uint64_t tree = 0;
  bool whole = false;
};

Symbol input_of(int rank, std::size_t element) {
  const std::uint64_t tree =
      Hash().add(static_cast<std::uint64_t>(rank)).add(std::uint64_t{element}).value();
  return {{rank}, element, tree, false};
}

// Added all at once.
Symbol added(const std::vector<const Symbol*>& parts, bool whole) {
  Symbol sum{{}, parts.front()->element, 0, whole};
  Hash tree;
  for (const Symbol* part : parts) {
    const bool fits = part->element == sum.element && !part->whole && !part->ranks.empty();
    sum.ranks.insert(sum.ranks.end(), part->ranks.begin(), part->ranks.end());
    if (!fits) sum.ranks.push_back(-1);
    tree.add(part->tree);
  }
  sum.tree = parts.size() == 1 ? parts.front()->tree : tree.value();
  return sum;
}

class NetworkRun {
 public:
  NetworkRun(const NetworkTrial& trial, const std::vector<NetworkProgram>& programs,
             std::uint64_t seed)
      : trial_(trial), programs_(programs), random_(seed) {
    for (int rank = 0; rank < trial.shape.ranks; ++rank) open(rank);
    for (int rank = 0; rank < trial.shape.ranks; ++rank) {
      for (std::size_t n = 0; n < at(rank).order.nodes().size(); ++n) try_enable(rank, n);
    }
  }

  std::string run() {
    std::size_t left = 0;
    for (const Rank& rank : ranks_) left += rank.order.nodes().size();
    while (!enabled_.empty()) {
      std::swap(enabled_[random_() % enabled_.size()], enabled_.back());
      const auto [rank, node] = enabled_.back();
      enabled_.pop_back();
      perform(rank, node);
      --left;
    }
    if (left > 0) return fmt::format("{}: {} chunks wait for ever", trial_.text(), left);
    for (int rank = 0; rank < trial_.shape.ranks; ++rank) {
      std::string text =
          trial_.row->collective == Collective::kBarrier ? wrong_meeting(rank) : wrong_result(rank);
      if (!text.empty()) return text;
    }
    return {};
  }

 private:
  struct Rank {
    RankMemory memory;
    NetworkOrder order;
    std::vector<Symbol> elements = {};
    std::vector<std::size_t> missing = {};            // of each node: what it waits for
    std::vector<std::vector<std::size_t>> next = {};  // of each node: who waits for it
    std::vector<int> message = {};                    // of each step: which one between both ranks
    std::vector<bool> heard_of = {};            // ranks that had begun before what was done here
    std::vector<std::vector<bool>> known = {};  // likewise, of each node
  };
  // Between two ranks: message, and chunk of it.
  using Key = std::tuple<int, int, int, std::size_t>;
  struct Payload {
    std::vector<Symbol> elements;
    std::vector<bool> known;
  };

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  void open(int rank) {
    const NetworkProgram& program = programs_[static_cast<std::size_t>(rank)];
    Rank& own = ranks_.emplace_back(RankMemory(trial_, rank, program.scratch),
                                    NetworkOrder(program, trial_.chunk));
    own.elements.resize(own.memory.elements);
    const bool has_input =
        root_side(trial_.row->collective) != RootSide::kInput || rank == trial_.shape.root;
    for (std::size_t e = 0; has_input && e < own.memory.sides.input; ++e) {
      own.elements[own.memory.input + e] = input_of(rank, e);
    }
    const auto& nodes = own.order.nodes();
    own.next.resize(nodes.size());
    std::map<std::pair<Kind, int>, int> messages;
    for (const NetworkStep& step : program.steps) {
      own.message.push_back(step.peer < 0 ? 0 : messages[{step.kind, step.peer}]++);
    }
    std::vector<bool> itself(static_cast<std::size_t>(trial_.shape.ranks));
    itself[static_cast<std::size_t>(rank)] = true;
    own.heard_of = itself;
    own.known.assign(nodes.size(), itself);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const NetworkStep& step = step_of(rank, n);
      own.missing.push_back(nodes[n].after.size() + (step.kind == Kind::kReceive ? 1 : 0));
      for (const std::size_t before : nodes[n].after) own.next[before].push_back(n);
      if (step.kind == Kind::kReceive) {
        receivers_[key(step.peer, rank, rank, n)] = n;
      }
    }
  }

  const NetworkStep& step_of(int rank, std::size_t node) {
    const auto step = static_cast<std::size_t>(at(rank).order.nodes()[node].step);
    return programs_[static_cast<std::size_t>(rank)].steps[step];
  }
  Key key(int from, int to, int rank, std::size_t node) {
    const auto& n = at(rank).order.nodes()[node];
    return {from, to, at(rank).message[static_cast<std::size_t>(n.step)], n.chunk};
  }

  void try_enable(int rank, std::size_t node) {
    if (at(rank).missing[node] == 0) enabled_.emplace_back(rank, node);
  }
  static void join(std::vector<bool>& known, const std::vector<bool>& more) {
    for (std::size_t r = 0; r < known.size(); ++r) known[r] = known[r] || more[r];
  }

  // A send reads what it sends when it is done, which is as late as it may.
  void perform(int rank, std::size_t node) {
    Rank& own = at(rank);
    const NetworkStep& step = step_of(rank, node);
    const NetworkChunk part = chunk_of(step, trial_.chunk, own.order.nodes()[node].chunk);
    Payload payload;
    if (step.kind == Kind::kReceive) {
      payload = std::move(in_flight_[key(step.peer, rank, rank, node)]);
      join(own.known[node], payload.known);
    }
    for (std::size_t e = 0; e < part.count; ++e) {
      std::vector<const Symbol*> parts;
      if (step.kind == Kind::kReceive) parts.push_back(&payload.elements[e]);
      for (const NetworkPlace& place : step.places) {
        parts.push_back(&own.elements[own.memory.at(place) + part.first + e]);
      }
      const bool moves = parts.size() == 1 && !step.whole;
      Symbol value = moves ? *parts.front() : added(parts, step.whole);
      if (step.kind == Kind::kSend) {
        payload.elements.push_back(std::move(value));
      } else {
        own.elements[own.memory.at(step.into) + part.first + e] = std::move(value);
      }
    }
    join(own.heard_of, own.known[node]);
    if (step.kind == Kind::kSend) deliver(rank, node, std::move(payload));
    for (const std::size_t next : own.next[node]) {
      join(own.known[next], own.known[node]);
      --own.missing[next];
      try_enable(rank, next);
    }
  }

  void deliver(int rank, std::size_t node, Payload payload) {
    payload.known = at(rank).known[node];
    const int peer = step_of(rank, node).peer;
    const Key to = key(rank, peer, rank, node);
    in_flight_[to] = std::move(payload);
    const std::size_t receiver = receivers_.at(to);
    --at(peer).missing[receiver];
    try_enable(peer, receiver);
  }

  std::string wrong_meeting(int rank) {
    const auto& heard = at(rank).heard_of;
    if (std::ranges::all_of(heard, [](bool begun) { return begun; })) return {};
    return fmt::format("{}: rank {} has not heard of all", trial_.text(), rank);
  }

  // What element e of a rank's output has to be; nothing: as it was.
  std::optional<Symbol> wanted(int rank, std::size_t e) const {
    const NetworkShape& shape = trial_.shape;
    const std::size_t stride = std::max<std::size_t>(shape.stride, 1);
    const std::size_t own = stride * static_cast<std::size_t>(rank);
    const auto piece = static_cast<int>(e / stride);
    const bool is_root = rank == shape.root;
    switch (trial_.row->collective) {
      case Collective::kAllReduce:
        return sum_of(e);
      case Collective::kReduce:
        return is_root ? std::optional(sum_of(e)) : std::nullopt;
      case Collective::kReduceScatter:
        return e < shape.count ? std::optional(sum_of(own + e)) : std::nullopt;
      case Collective::kBroadcast:
        return input_of(shape.root, e);
      case Collective::kSendRecv:
        return rank == shape.to ? std::optional(input_of(shape.root, e)) : std::nullopt;
      case Collective::kScatter:
        return e < shape.count ? std::optional(input_of(shape.root, own + e)) : std::nullopt;
      case Collective::kGather:
        if (!is_root) return std::nullopt;
        [[fallthrough]];
      case Collective::kAllGather:
        return e % stride < shape.count ? std::optional(input_of(piece, e % stride)) : std::nullopt;
      case Collective::kAllToAll:
        return e % stride < shape.count ? std::optional(input_of(piece, own + e % stride))
                                        : std::nullopt;
      default:
        return std::nullopt;
    }
  }
  Symbol sum_of(std::size_t element) const {
    std::vector<Symbol> inputs;
    std::vector<const Symbol*> parts;
    for (int rank = 0; rank < trial_.shape.ranks; ++rank) inputs.push_back(input_of(rank, element));
    for (const Symbol& input : inputs) parts.push_back(&input);
    return added(parts, true);
  }

  std::string wrong_result(int rank) {
    const Rank& own = at(rank);
    for (std::size_t e = 0; e < own.memory.sides.output; ++e) {
      const auto right = wanted(rank, e);
      if (!right) continue;
      const Symbol& value = own.elements[own.memory.output + e];
      std::vector<int> ranks = value.ranks;
      std::ranges::sort(ranks);
      std::vector<int> all = right->ranks;
      std::ranges::sort(all);
      bool fits = ranks == all && value.whole == right->whole && value.element == right->element;
      const bool reduced = reduces(trial_.row->collective);
      if (!reduced || trial_.row->order == Order::kRankOrder)
        fits = fits && value.tree == right->tree;
      if (reduced && trial_.row->order == Order::kSameOnAllRanks) {
        const Rank& first = at(0);
        fits = fits && value.tree == first.elements[first.memory.output + e].tree;
      }
      if (fits) continue;
      return fmt::format("{}: rank {}: element {} is made of ranks {}{}, element {}", trial_.text(),
                         rank, e, fmt::join(value.ranks, " "), value.whole ? ", whole" : "",
                         value.element);
    }
    return {};
  }

  const NetworkTrial& trial_;
  const std::vector<NetworkProgram>& programs_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  std::vector<std::pair<int, std::size_t>> enabled_;
  std::map<Key, std::size_t> receivers_;
  std::map<Key, Payload> in_flight_;
};

}  // namespace

std::string wrong_in(const NetworkTrial& trial, const std::vector<NetworkProgram>& programs,
                     std::uint64_t seed) {
  return NetworkRun(trial, programs, seed).run();
}

std::string check_network(const NetworkTrial& trial, std::uint64_t seed) {
  std::vector<NetworkProgram> programs;
  for (int rank = 0; rank < trial.shape.ranks; ++rank) programs.push_back(trial.program(rank));
  std::string text = misfit_of(trial, programs);
  for (int rank = 0; rank < trial.shape.ranks && text.empty(); ++rank) {
    text = race_of(trial, rank, programs[static_cast<std::size_t>(rank)]);
  }
  return text.empty() ? wrong_in(trial, programs, seed) : text;
}

}  // namespace tutti::test
