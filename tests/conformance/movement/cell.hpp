// One cell of the conformance test of collectives that move bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "conformance/cell.hpp"
#include "support/uneven.hpp"

namespace tutti::test {

struct MovementCell {
  Collective collective = Collective::kAllGather;
  std::string_view algorithm;  // empty: what the library chooses
  RankKind kind = RankKind::kThreads;
  int ranks = 2;
  BufferKind buffers = BufferKind::kPlain;
  Mode mode = Mode::kEager;
  DataType dtype = DataType::kUint8;
  std::size_t count = 0;  // of one piece; of uneven ones, of the longest
  // Of the input and of the output, in elements from a 256-byte boundary.
  int input_offset = 0, output_offset = 0;
  bool in_place = false;
  int root = 0;                 // where the collective has one
  int blocks = 0, threads = 0;  // 0: as planned
  std::uint64_t seed = 1;
  // Of uneven pieces: where their counts lie, and what these are made from.
  bool counts_on_device = false;
  std::uint64_t counts_seed = 1;

  UnevenCounts counts(int rank) const { return {collective, count, counts_seed, rank, ranks}; }
  // In bytes: of what goes from one rank to another, and of a rank's two sides.
  std::size_t piece_bytes(int from, int to) const {
    return uneven_count(collective, count, counts_seed, from, to) * size_of(dtype);
  }
  Sides sides(int rank) const;
  // Of the larger side, in elements.
  std::size_t larger() const;
  // Who has an input, and an output; and how many pieces are in an input.
  bool sends(int rank) const;
  bool receives(int rank) const;
  bool sends_to(int rank, int other) const;
  int pieces() const;
  std::string to_string() const;
};

// What there is to choose from, and a covering in which every pair of values occurs.
struct MovementSpace {
  Collective collective = Collective::kAllGather;
  Backend backend = Backend::kHost;
  std::vector<std::string_view> algorithms;
  std::vector<RankKind> kinds = {RankKind::kThreads, RankKind::kProcesses};
  std::vector<int> ranks = {1, 2, 3, 4, 5, 8};
  std::uint64_t seed = 1;

  static constexpr std::size_t kMostBytes = 2'200'000;  // of a side

  std::vector<MovementCell> selection() const;
};

}  // namespace tutti::test
