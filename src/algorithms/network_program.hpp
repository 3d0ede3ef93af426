// What a rank does in an operation over a network, as a value: which range it sends to which rank,
// what it does with the data that arrives, and which step waits for which. An algorithm of the
// network executor is a function that makes this program of a shape; ranks compute it alike, so
// nothing is negotiated.
//
// A step works on a range of the vector. The executor cuts ranges into chunks; a chunk of a step
// waits for those chunks of the steps in `after` that it overlaps, never for whole steps. So every
// algorithm passes data on chunk by chunk. A step without elements waits for all of the
// steps in `after`, and is waited for by all chunks of later ones.
//
// The k-th send of rank a to rank b meets the k-th receive of b from a. Both have ranges of one
// length, which need not lie at the same place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tutti {

// What a program is made of: the same on all ranks, but for `rank`. Counts are elements.
struct NetworkShape {
  int rank = 0, ranks = 2;
  int root = 0;  // where the collective has one; of send_recv: who sends
  int to = -1;   // of send_recv: who receives. Only these two ranks run a program
  // If the collective has a piece for each rank: the elements of each piece that the program moves;
  // piece j begins at j x stride in the larger buffer. Otherwise the elements of the whole vector;
  // stride is 0.
  std::size_t count = 0;
  std::size_t stride = 0;
  std::size_t unit = 1;               // shares and chunks begin at multiples of it: 16 bytes, or so
  std::span<const int> node_of = {};  // by rank, numbered from 0; empty: each rank is a node
  bool one_way = false;  // of a ring that may go both ways; not of rows that are one of two rings
};

// Where elements lie.
struct NetworkPlace {
  enum class Buffer : std::uint8_t { kInput, kOutput, kScratch };
  Buffer buffer = Buffer::kInput;
  std::size_t first = 0;
  friend bool operator==(const NetworkPlace&, const NetworkPlace&) = default;
};

struct NetworkStep {
  enum class Kind : std::uint8_t {
    kSend,     // places[0] to the peer
    kReceive,  // what comes from the peer, plus places[0] if there is one, to `into`
    kSum,      // of all places, added in their order, to `into`
    kCopy,     // places[0] to `into`; nothing where both are the same memory
  };
  Kind kind = Kind::kSend;
  int peer = -1;  // of kSend and kReceive
  // The range: which elements these are, as far as steps wait for each other. 0 elements are one
  // chunk, a message without a payload; such a step and its like in `after` are ordered as a whole.
  std::size_t first = 0, count = 0;
  std::vector<NetworkPlace> places = {};
  NetworkPlace into = {NetworkPlace::Buffer::kOutput, 0};
  // Whether it makes the sum whole: an average is divided here, and nowhere else. This rank's
  // pre-multiplier is applied to what any step reads of kInput; a send rounds the product to the
  // type of the elements.
  bool whole = false;
  // Earlier steps of this rank, by index. A send is done when its payload may be changed, so a step
  // that overwrites the payload of a send names that send here.
  std::vector<int> after = {};
};

struct NetworkProgram {
  std::vector<NetworkStep> steps;
  // Elements. The same on all ranks, which cut messages by it.
  std::size_t scratch = 0;
};

// How the range of a step is cut into chunks of `chunk` elements, which are whole units. The same
// on both ends of a message, since both have ranges of one length.
constexpr std::size_t chunks_of(const NetworkStep& step, std::size_t chunk) {
  return step.count == 0 ? 1 : (step.count + chunk - 1) / chunk;
}
struct NetworkChunk {
  std::size_t first = 0, count = 0;  // from the beginning of the range
};
constexpr NetworkChunk chunk_of(const NetworkStep& step, std::size_t chunk, std::size_t index) {
  const std::size_t first = chunk * index;
  const std::size_t left = step.count - first;
  return {first, left < chunk ? left : chunk};
}

// Of an algorithm's descriptor. Scratch is at most proportional to `count`, in whole units, and at
// most a vector of each rank. Messages are cut into partitions, which are programs of a smaller
// count: these may leave out messages, but have none with another peer.
using NetworkSchedule = NetworkProgram (*)(const NetworkShape& shape);

}  // namespace tutti
