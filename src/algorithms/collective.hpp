// The collectives, and what shape each has: which side of it holds what, and on which ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

enum class Collective : std::uint8_t {
  kAllReduce,
  kAllReduceResidualRmsNorm,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kBarrier,
  kSendRecv,
  kAllGatherV,
  kReduceScatterV,
  kAllToAllV,
};
inline constexpr Collective kAllCollectives[] = {
    Collective::kAllReduce,      Collective::kAllReduceResidualRmsNorm,
    Collective::kAllGather,      Collective::kReduceScatter,
    Collective::kAllToAll,       Collective::kBroadcast,
    Collective::kReduce,         Collective::kGather,
    Collective::kScatter,        Collective::kBarrier,
    Collective::kSendRecv,       Collective::kAllGatherV,
    Collective::kReduceScatterV, Collective::kAllToAllV,
};
std::string_view to_string(Collective collective);  // "all_reduce"
Result<Collective> parse_collective(std::string_view name);

// Whether it is between pairs of ranks: only those call, and of no two need the calls be alike. Its
// sides are a rank's that sends as much to the next rank as it takes from the one before.
bool is_pairwise(Collective collective);

// Whether it computes; else it moves bits, and its ReduceOp means nothing.
bool reduces(Collective collective);

// Whether its larger side holds a piece of every rank, one behind the other and as long as each
// other: counts are whole multiples of the ranks.
bool has_pieces(Collective collective);
// Whether its input is one of them.
bool input_is_piece(Collective collective);

// Whether those pieces are as long as ranks like: counts are of as many pieces as there are ranks,
// each as long as the longest may be.
bool is_uneven(Collective collective);

// Whether its input may lie in its output, or its output in its input, on all ranks; else the two
// are apart, but for what only concerns the root.
bool runs_in_place(Collective collective);

// Which side, if any, one rank has alone, the root: others say nothing of theirs, and nobody knows
// where the root's lies.
enum class RootSide : std::uint8_t { kNone, kInput, kOutput };
RootSide root_side(Collective collective);
bool has_root(Collective collective);

// What bodies of its rows take elements for: where bits are moved all types are bytes, and share an
// instantiation. KernelArgs::count counts these.
DataType moved_as(Collective collective, DataType dtype);

// What is told of an operation's elements: "bf16, sum", or "bf16" where nothing is computed.
std::string elements_text(Collective collective, DataType dtype, OpKind op);

// The sides of an operation on one rank; of a root's, on the root. Operations are measured, chosen
// and tuned by the larger one; in the unit that it is given in: elements, or bytes.
struct Sides {
  std::size_t input = 0, output = 0;
  std::size_t place = 0;  // where in the larger side the smaller one begins, in place

  std::size_t larger() const { return input > output ? input : output; }
  // Whether a call with these buffers is in place.
  bool are_in_place(const void* in, const void* out) const {
    const auto* const from = static_cast<const std::byte*>(in);
    const auto* const to = static_cast<const std::byte*>(out);
    return input > output ? to == from + place : from == to + place;
  }
};
Sides sides_of(Collective collective, std::size_t larger, int rank, int ranks);

}  // namespace tutti
