#include "executors/nccl/lowering.hpp"

#include <array>
#include <span>

#include "base/try.hpp"

namespace tutti {
namespace {

const std::byte* bytes_at(const void* buffer, std::size_t offset) {
  return static_cast<const std::byte*>(buffer) + offset;
}
std::byte* bytes_at(void* buffer, std::size_t offset) {
  return static_cast<std::byte*>(buffer) + offset;
}

// Pieces go from every rank that has an input to every rank that has an output. A side that has but
// one piece has it for, or from, everyone who has the other.
NcclExchange exchange_of(const Call& call, NcclPlace place) {
  const std::size_t piece = call.bytes() / static_cast<std::size_t>(place.ranks);
  const RootSide alone = root_side(call.collective);
  const bool is_root = place.rank == call.root;
  const bool sends = alone != RootSide::kInput || is_root;
  const bool receives = alone != RootSide::kOutput || is_root;
  NcclExchange exchange{.sends = {}, .receives = {}, .stream = call.stream};
  for (int rank = 0; rank < place.ranks; ++rank) {
    const std::size_t offset = static_cast<std::size_t>(rank) * piece;
    if (sends && (alone != RootSide::kOutput || rank == call.root)) {
      const std::size_t at = alone == RootSide::kOutput ? 0 : offset;
      exchange.sends.push_back({rank, bytes_at(call.input, at), piece});
    }
    if (receives && (alone != RootSide::kInput || rank == call.root)) {
      const std::size_t at = alone == RootSide::kInput ? 0 : offset;
      exchange.receives.push_back({rank, bytes_at(call.output, at), piece});
    }
  }
  return exchange;
}

NcclPieces pieces_of(const Call& call, NcclPlace place) {
  using Way = NcclPieces::Way;
  const RootSide alone = root_side(call.collective);
  return {.way = alone == RootSide::kOutput  ? Way::kGather
                 : alone == RootSide::kInput ? Way::kScatter
                                             : Way::kAllToAll,
          .input = call.input,
          .output = call.output,
          .bytes = call.bytes() / static_cast<std::size_t>(place.ranks),
          .root = call.root,
          .stream = call.stream};
}

NcclExchange exchange_of(const Call& call) {
  NcclExchange exchange{.sends = {}, .receives = {}, .stream = call.stream};
  for (const MessageCall& message : call.messages) {
    if (message.input != nullptr) {
      exchange.sends.push_back({message.peer, bytes_at(message.input, 0), message.bytes()});
    }
    if (message.output != nullptr) {
      exchange.receives.push_back({message.peer, bytes_at(message.output, 0), message.bytes()});
    }
  }
  return exchange;
}

// Pieces that are empty need no message: both ends know that they are.
NcclExchange exchange_of_lengths(const Call& call) {
  const std::size_t element = size_of(call.dtype);
  const auto sent = firsts_of(call.lengths.sent), taken = firsts_of(call.lengths.taken);
  const bool same = call.collective == Collective::kAllGatherV;
  NcclExchange exchange{.sends = {}, .receives = {}, .stream = call.stream};
  for (std::size_t r = 0; r < call.lengths.sent.size(); ++r) {
    const auto peer = static_cast<int>(r);
    if (const std::size_t count = call.lengths.sent[r]; count > 0) {
      const std::size_t first = same ? 0 : sent[r];
      exchange.sends.push_back({peer, bytes_at(call.input, first * element), count * element});
    }
    if (const std::size_t count = call.lengths.taken[r]; count > 0) {
      exchange.receives.push_back(
          {peer, bytes_at(call.output, taken[r] * element), count * element});
    }
  }
  return exchange;
}

NcclReduction reduction_of(const Call& call, std::size_t output_bytes) {
  return {.input = call.input,
          .output = call.output,
          .count = output_bytes / size_of(call.dtype),
          .dtype = call.dtype,
          .op = call.op,
          .root = call.root,
          .stream = call.stream};
}

// Each rank is the root of its own piece.
std::vector<NcclReduction> reductions_of(const Call& call) {
  const auto firsts = firsts_of(call.lengths.sent);
  std::vector<NcclReduction> reductions;
  for (std::size_t r = 0; r < call.lengths.sent.size(); ++r) {
    if (call.lengths.sent[r] == 0) continue;
    reductions.push_back({.input = bytes_at(call.input, firsts[r] * size_of(call.dtype)),
                          .output = call.output,
                          .count = call.lengths.sent[r],
                          .dtype = call.dtype,
                          .op = call.op,
                          .root = static_cast<int>(r),
                          .stream = call.stream});
  }
  return reductions;
}

}  // namespace

namespace {

Status give_reduction(NcclSession& session, const Call& call, std::size_t output_bytes) {
  if (is_uneven(call.collective)) return session.reduce_together(reductions_of(call));
  const NcclReduction reduction = reduction_of(call, output_bytes);
  if (has_root(call.collective)) return session.reduce(reduction);
  return has_pieces(call.collective) ? session.reduce_scatter(reduction)
                                     : session.all_reduce(reduction);
}

}  // namespace

// The shape of the collective says which of NCCL's calls it is.
Status give_to_nccl(NcclSession& session, const Call& call, NcclPlace place) {
  const Sides sides = call.sides(place.rank, place.ranks);
  const Collective collective = call.collective;
  if (is_pairwise(collective)) return session.exchange(exchange_of(call));
  if (reduces(collective)) return give_reduction(session, call, sides.output);
  if (is_uneven(collective)) return session.exchange(exchange_of_lengths(call));
  if (!has_pieces(collective)) {
    return session.broadcast({.input = call.input,
                              .output = call.output,
                              .bytes = sides.output,
                              .root = call.root,
                              .stream = call.stream});
  }
  if (input_is_piece(collective) && !has_root(collective)) {
    return session.all_gather(
        {.input = call.input, .output = call.output, .bytes = sides.input, .stream = call.stream});
  }
  return session.mover() == NcclMover::kCopyEngines ? session.move_pieces(pieces_of(call, place))
                                                    : session.exchange(exchange_of(call, place));
}

Status warm_up_nccl_with(NcclSession& session, std::byte* scratch, std::size_t bytes,
                         NcclPlace place, Stream stream) {
  const auto ranks = static_cast<std::size_t>(place.ranks);
  const std::size_t pieces = bytes / (2 * ranks * sizeof(float)) * ranks * sizeof(float);
  constexpr std::array kAll{Collective::kAllReduce,     Collective::kAllGather,
                            Collective::kReduceScatter, Collective::kBroadcast,
                            Collective::kReduce,        Collective::kAllToAll};
  constexpr std::array kCopied{Collective::kAllGather, Collective::kAllToAll};
  const bool copies = session.mover() == NcclMover::kCopyEngines;
  for (const Collective collective :
       copies ? std::span<const Collective>(kCopied) : std::span<const Collective>(kAll)) {
    TUTTI_TRY(give_to_nccl(session,
                           {.collective = collective,
                            .input = scratch,
                            .output = scratch + pieces,
                            .count = pieces / sizeof(float),
                            .dtype = DataType::kFloat32,
                            .op = ReduceOp::max(),
                            .stream = stream},
                           place));
  }
  return Status::ok();
}

}  // namespace tutti
