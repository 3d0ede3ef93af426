#include "unit/executors/network/programs.hpp"

#include <algorithm>
#include <utility>

namespace tutti::test {
namespace {

using Buffer = NetworkPlace::Buffer;
using Kind = NetworkStep::Kind;

class Builder {
 public:
  // The index of the step.
  int send(int peer, std::size_t first, std::size_t count, NetworkPlace from,
           std::vector<int> after = {}) {
    return add({Kind::kSend, peer, first, count, {from}, {}, false, std::move(after)});
  }
  int receive(int peer, std::size_t first, std::size_t count, NetworkPlace into,
              std::vector<int> after = {}) {
    return add({Kind::kReceive, peer, first, count, {}, into, false, std::move(after)});
  }
  int add(NetworkStep step) {
    program.steps.push_back(std::move(step));
    return static_cast<int>(program.steps.size()) - 1;
  }
  NetworkProgram program;
};

struct Share {
  std::size_t first = 0, count = 0;
};
Share share(const NetworkShape& shape, int index) {
  const int at = (index % shape.ranks + shape.ranks) % shape.ranks;
  const std::size_t first = share_begin(shape, at);
  return {first, share_begin(shape, at + 1) - first};
}

std::size_t most_share(const NetworkShape& shape) { return share_begin(shape, 1); }

}  // namespace

std::size_t share_begin(const NetworkShape& shape, int index) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  const std::size_t each = (shape.count + ranks - 1) / ranks;
  const std::size_t rounded = (each + shape.unit - 1) / shape.unit * shape.unit;
  return std::min(shape.count, rounded * static_cast<std::size_t>(index));
}

NetworkProgram ring(const NetworkShape& shape) {
  Builder build;
  const int rank = shape.rank, ranks = shape.ranks;
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  std::vector<int> sends(static_cast<std::size_t>(ranks), -1);  // by share, of the first phase
  const auto sent = [&](int index) -> int& {
    return sends[static_cast<std::size_t>(((index % ranks) + ranks) % ranks)];
  };
  int received = -1;
  for (int s = 0; s + 1 < ranks; ++s) {
    const Share out = share(shape, rank - s), in = share(shape, rank - 1 - s);
    const Buffer from = s == 0 ? Buffer::kInput : Buffer::kOutput;
    sent(rank - s) = build.send(next, out.first, out.count, {from, out.first},
                                s == 0 ? std::vector<int>{} : std::vector<int>{received});
    received = build.add({Kind::kReceive,
                          previous,
                          in.first,
                          in.count,
                          {{Buffer::kInput, in.first}},
                          {Buffer::kOutput, in.first},
                          s + 2 == ranks,
                          {}});
  }
  for (int s = 0; s + 1 < ranks; ++s) {
    const Share out = share(shape, rank + 1 - s), in = share(shape, rank - s);
    build.send(next, out.first, out.count, {Buffer::kOutput, out.first}, {received});
    received =
        build.receive(previous, in.first, in.count, {Buffer::kOutput, in.first}, {sent(rank - s)});
  }
  return std::move(build.program);
}

NetworkProgram direct(const NetworkShape& shape) {
  Builder build;
  const std::size_t slot = most_share(shape);
  const Share own = share(shape, shape.rank);
  build.program.scratch = slot * static_cast<std::size_t>(shape.ranks);
  NetworkStep sum{Kind::kSum, -1, own.first, own.count, {}, {Buffer::kOutput, own.first}, true, {}};
  std::vector<int> sends(static_cast<std::size_t>(shape.ranks), -1);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (rank == shape.rank) {
      sum.places.push_back({Buffer::kInput, own.first});
      continue;
    }
    const Share theirs = share(shape, rank);
    const NetworkPlace place{Buffer::kScratch, slot * static_cast<std::size_t>(rank)};
    sends[static_cast<std::size_t>(rank)] =
        build.send(rank, theirs.first, theirs.count, {Buffer::kInput, theirs.first});
    sum.after.push_back(build.receive(rank, own.first, own.count, place));
    sum.places.push_back(place);
  }
  const int summed = build.add(std::move(sum));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (rank == shape.rank) continue;
    const Share theirs = share(shape, rank);
    build.send(rank, own.first, own.count, {Buffer::kOutput, own.first}, {summed});
    build.receive(rank, theirs.first, theirs.count, {Buffer::kOutput, theirs.first},
                  {sends[static_cast<std::size_t>(rank)]});
  }
  return std::move(build.program);
}

NetworkProgram chain(const NetworkShape& shape) {
  Builder build;
  const int next = (shape.rank + 1) % shape.ranks;
  const bool is_root = shape.rank == shape.root;
  std::vector<int> after;
  if (is_root) {
    build.add({Kind::kCopy, -1, 0, shape.count, {{Buffer::kInput, 0}}, {Buffer::kOutput, 0}});
  } else {
    const int previous = (shape.rank + shape.ranks - 1) % shape.ranks;
    after = {build.receive(previous, 0, shape.count, {Buffer::kOutput, 0})};
  }
  if (next != shape.root) {
    build.send(next, 0, shape.count, {is_root ? Buffer::kInput : Buffer::kOutput, 0}, after);
  }
  return std::move(build.program);
}

NetworkProgram star(const NetworkShape& shape) {
  Builder build;
  if (shape.rank != shape.root) {
    build.receive(shape.root, 0, shape.count, {Buffer::kOutput, 0});
    return std::move(build.program);
  }
  build.add({Kind::kCopy, -1, 0, shape.count, {{Buffer::kInput, 0}}, {Buffer::kOutput, 0}});
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (rank != shape.root) build.send(rank, 0, shape.count, {Buffer::kInput, 0});
  }
  return std::move(build.program);
}

NetworkProgram gather(const NetworkShape& shape) {
  Builder build;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const NetworkPlace piece{Buffer::kOutput, shape.stride * static_cast<std::size_t>(rank)};
    if (rank == shape.rank) {
      build.add({Kind::kCopy, -1, 0, shape.count, {{Buffer::kInput, 0}}, piece});
    } else {
      build.send(rank, 0, shape.count, {Buffer::kInput, 0});
      build.receive(rank, 0, shape.count, piece);
    }
  }
  return std::move(build.program);
}

NetworkProgram assemble(const NetworkShape& shape) {
  Builder build;
  const Share own = share(shape, shape.rank);
  if (shape.rank != 0) {
    build.send(0, own.first, own.count, {Buffer::kInput, own.first});
    build.receive(0, 0, shape.count, {Buffer::kOutput, 0});
    return std::move(build.program);
  }
  std::vector<int> parts = {build.add({Kind::kCopy,
                                       -1,
                                       own.first,
                                       own.count,
                                       {{Buffer::kInput, own.first}},
                                       {Buffer::kOutput, own.first}})};
  for (int rank = 1; rank < shape.ranks; ++rank) {
    const Share theirs = share(shape, rank);
    parts.push_back(
        build.receive(rank, theirs.first, theirs.count, {Buffer::kOutput, theirs.first}));
  }
  for (int rank = 1; rank < shape.ranks; ++rank) {
    build.send(rank, 0, shape.count, {Buffer::kOutput, 0}, parts);
  }
  return std::move(build.program);
}

NetworkProgram rendezvous(const NetworkShape& shape) {
  Builder build;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (rank == shape.rank) continue;
    build.send(rank, 0, 0, {Buffer::kInput, 0});
    build.receive(rank, 0, 0, {Buffer::kOutput, 0});
  }
  return std::move(build.program);
}

NetworkProgram pass_on(const NetworkShape& shape) {
  Builder build;
  build.send(shape.root, 0, shape.count, {Buffer::kInput, 0});
  return std::move(build.program);
}

NetworkProgram take_from(const NetworkShape& shape) {
  Builder build;
  build.receive(shape.root, 0, shape.count, {Buffer::kOutput, 0});
  return std::move(build.program);
}

}  // namespace tutti::test
