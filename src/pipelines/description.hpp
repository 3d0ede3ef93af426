// What a pipeline is derived from: a matmul whose A is sharded by rows over ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti::pipelines {

inline constexpr int kMostPipelineRanks = 16;
inline constexpr int kMostPipelineStreams = 16;
inline constexpr int kMostPipelineTiles = 64;

enum class Algorithm : std::uint8_t {
  kShift,  // at step s a rank takes the shard of rank + s from its owner
  kRing,   // at step s a rank takes the shard of rank - s from its left neighbour
  kTiles,  // tile t of every shard is gathered, then multiplied by one matmul
};
// "pipelined_shift", "pipelined_ring", "pipelined_tiles"
std::string_view to_string(Algorithm algorithm);
Result<Algorithm> parse_algorithm(std::string_view text);

// Which of the two ranks of a transfer moves the data.
enum class Protocol : std::uint8_t {
  kGet,  // the receiver reads the sender's memory
  kPut,  // the sender writes the receiver's memory
};
// "get", "put"
std::string_view to_string(Protocol protocol);
Result<Protocol> parse_protocol(std::string_view text);

enum class Mover : std::uint8_t { kCopyEngine, kKernel };
// "copy_engine", "kernel"
std::string_view to_string(Mover mover);
Result<Mover> parse_mover(std::string_view text);

// One B of several. C = A x B + bias.
struct ProductColumns {
  std::size_t n = 0;
  bool bias = false;
  friend bool operator==(const ProductColumns&, const ProductColumns&) = default;
};

// A [m, k] is sharded by rows over `ranks`. The streams take steps in turn: shards of
// pipelined_shift and pipelined_ring, tiles of pipelined_tiles.
struct Description {
  Algorithm algorithm = Algorithm::kShift;
  int ranks = 0;
  std::size_t m = 0, k = 0;
  std::vector<ProductColumns> products = {};
  DataType dtype = DataType::kBfloat16;
  Protocol protocol = Protocol::kGet;
  Mover mover = Mover::kCopyEngine;
  int streams = 4;
  int tiles = 8;  // of each shard; pipelined_tiles alone
  // Streams begin their first transfers in turn, so that the first shard arrives before the second.
  bool inter_stream_order = false;
  bool symmetric_a = false;  // with get: peers read A itself, not a copy in the gathered A
  bool gathered = false;     // the gathered A is an output
  // Peers read and write that output. Otherwise, where they have to, they use a workspace in place
  // of it, and rows are copied to the output after their matmul.
  bool symmetric_gathered = false;
  friend bool operator==(const Description&, const Description&) = default;
};

// Rows [begin, end).
struct Rows {
  std::size_t begin = 0, end = 0;
  std::size_t count() const { return end - begin; }
  friend bool operator==(const Rows&, const Rows&) = default;
};

// Shards have ceil(m / ranks) rows, and tiles ceil(that / tiles). The last ones are smaller or
// empty.
Rows shard_rows(std::size_t m, int ranks, int rank);
Rows shard_rows(const Description& description, int rank);
Rows tile_rows(const Description& description, int rank, int tile);

}  // namespace tutti::pipelines
