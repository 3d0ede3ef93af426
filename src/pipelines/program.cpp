#include "pipelines/program.hpp"

#include <algorithm>

#include "base/names.hpp"
#include "base/units.hpp"

namespace tutti::pipelines {
namespace {

constexpr Name<Algorithm> kAlgorithmNames[] = {{Algorithm::kShift, "pipelined_shift"},
                                               {Algorithm::kRing, "pipelined_ring"},
                                               {Algorithm::kTiles, "pipelined_tiles"}};
constexpr Name<Protocol> kProtocolNames[] = {{Protocol::kGet, "get"}, {Protocol::kPut, "put"}};
constexpr Name<Mover> kMoverNames[] = {{Mover::kCopyEngine, "copy_engine"},
                                       {Mover::kKernel, "kernel"}};

template <class E, std::size_t kCount>
std::string_view name_in(const Name<E> (&names)[kCount], E value) {
  return name_of(std::span<const Name<E>>(names), value);
}

template <class E, std::size_t kCount>
Result<E> parse_in(const Name<E> (&names)[kCount], std::string_view what, std::string_view text) {
  return parse_name(std::span<const Name<E>>(names), {}, what, text);
}

std::size_t rows_per_shard(std::size_t m, int ranks) {
  return ceil_div(m, static_cast<std::size_t>(ranks));
}

Rows clipped(std::size_t begin, std::size_t count, std::size_t end) {
  return {std::min(begin, end), std::min(begin + count, end)};
}

}  // namespace

std::string_view to_string(Algorithm algorithm) { return name_in(kAlgorithmNames, algorithm); }
std::string_view to_string(Protocol protocol) { return name_in(kProtocolNames, protocol); }
std::string_view to_string(Mover mover) { return name_in(kMoverNames, mover); }

Result<Algorithm> parse_algorithm(std::string_view text) {
  return parse_in(kAlgorithmNames, "pipeline", text);
}
Result<Protocol> parse_protocol(std::string_view text) {
  return parse_in(kProtocolNames, "protocol", text);
}
Result<Mover> parse_mover(std::string_view text) { return parse_in(kMoverNames, "mover", text); }

Rows shard_rows(std::size_t m, int ranks, int rank) {
  const std::size_t rows = rows_per_shard(m, ranks);
  return clipped(static_cast<std::size_t>(rank) * rows, rows, m);
}

Rows shard_rows(const Description& description, int rank) {
  return shard_rows(description.m, description.ranks, rank);
}

Rows tile_rows(const Description& description, int rank, int tile) {
  const Rows shard = shard_rows(description, rank);
  const std::size_t rows = ceil_div(rows_per_shard(description.m, description.ranks),
                                    static_cast<std::size_t>(description.tiles));
  return clipped(shard.begin + static_cast<std::size_t>(tile) * rows, rows, shard.end);
}

bool operator==(const For& a, const For& b) {
  return a.variable == b.variable && a.first == b.first && a.last == b.last && a.body == b.body;
}

bool operator==(const If& a, const If& b) {
  return a.index == b.index && a.less_than == b.less_than && a.then == b.then &&
         a.otherwise == b.otherwise;
}

bool operator==(const Node& a, const Node& b) { return a.value == b.value; }

namespace {

// Calls visit(buffer, offset) for each workspace, in the order of allocation. Returns their bytes.
template <class Visit>
std::size_t lay_out(const Program& program, const Visit& visit) {
  std::size_t bytes = 0;
  for (const Node& node : program.setup) {
    const auto* allocate = std::get_if<Allocate>(&node.value);
    if (allocate == nullptr) continue;
    const auto id = static_cast<std::size_t>(allocate->buffer);
    const Buffer& buffer = program.buffers[id];
    visit(id, bytes);
    bytes += round_up(buffer.rows * buffer.columns * size_of(program.description.dtype),
                      kWorkspaceAlignment);
  }
  return bytes;
}

}  // namespace

std::size_t workspace_bytes(const Program& program) {
  return lay_out(program, [](std::size_t, std::size_t) {});
}

std::vector<std::size_t> workspace_offsets(const Program& program) {
  std::vector<std::size_t> offsets(program.buffers.size(), 0);
  lay_out(program, [&](std::size_t buffer, std::size_t offset) { offsets[buffer] = offset; });
  return offsets;
}

std::vector<Rows> rows_of(const Program& program, const Slice& slice, const Bindings& values) {
  const Description& d = program.description;
  const bool of_shard =
      program.buffers[static_cast<std::size_t>(slice.buffer)].part == Part::kShard;
  std::vector<Rows> found;
  const int first = slice.shard ? slice.shard->at(values) : 0;
  const int last = slice.shard ? first : d.ranks - 1;
  for (int shard = first; shard <= last; ++shard) {
    Rows rows = slice.tile ? tile_rows(d, shard, slice.tile->at(values)) : shard_rows(d, shard);
    if (rows.count() == 0) continue;
    const std::size_t origin = of_shard ? shard_rows(d, shard).begin : 0;
    rows = {rows.begin - origin, rows.end - origin};
    if (!found.empty() && found.back().end == rows.begin) {
      found.back().end = rows.end;
    } else {
      found.push_back(rows);
    }
  }
  return found;
}

}  // namespace tutti::pipelines
