#include "fused/pipeline_buffers.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/try.hpp"

namespace tutti::fused {

using pipelines::BufferId;
using pipelines::Move;
using pipelines::Place;
using pipelines::Rows;

PipelineBuffers::PipelineBuffers(const pipelines::Program& program, int rank, std::byte* workspace,
                                 PeerAddress peer)
    : program_(program),
      rank_(rank),
      workspace_(workspace),
      peer_(std::move(peer)),
      offsets_(workspace_offsets(program)) {}

Status PipelineBuffers::check_allocated(BufferId buffer) const {
  if (workspace_ != nullptr) return Status::ok();
  return {StatusCode::kInvalidArgument,
          "all_gather_matmul: no workspace for " + described(buffer).name};
}

Status PipelineBuffers::check_shared(std::span<const BufferId> buffers) const {
  for (const BufferId buffer : buffers) {
    if (described(buffer).is_callers()) continue;  // each call brings it
    for (int rank = 0; rank < program_.description.ranks; ++rank) {
      TUTTI_TRY(address({rank, buffer, {}}).status());
    }
  }
  return Status::ok();
}

std::size_t PipelineBuffers::row_bytes(BufferId buffer) const {
  return described(buffer).columns * size_of(program_.description.dtype);
}

std::byte* PipelineBuffers::own(BufferId buffer) const {
  const auto id = static_cast<std::size_t>(buffer);
  return described(buffer).is_callers() ? buffers_[id] : workspace_ + offsets_[id];
}

Result<std::byte*> PipelineBuffers::address(const Place& place) const {
  std::byte* const here = own(place.buffer);
  if (place.rank == rank_) return here;
  std::byte* const there = peer_(place.rank, here);
  if (there != nullptr) return there;
  return Status(StatusCode::kInvalidArgument,
                fmt::format("all_gather_matmul: {} of rank {} is not in symmetric memory",
                            described(place.buffer).name, rank_));
}

Result<std::vector<RowsCopy>> PipelineBuffers::copies_of(const Move& move) const {
  TUTTI_ASSIGN(const std::byte* const from, address(move.from));
  TUTTI_ASSIGN(std::byte* const to, address(move.to));
  const std::size_t row = row_bytes(move.from.buffer);
  std::vector<RowsCopy> copies;
  for (std::size_t i = 0; i < move.from.rows.size(); ++i) {
    const Rows& rows = move.from.rows[i];
    if (rows.count() * row == 0) continue;  // of null, perhaps
    std::byte* const target = to + move.to.rows[i].begin * row;
    const std::byte* const source = from + rows.begin * row;
    if (source != target) copies.push_back({target, source, rows.count() * row});
  }
  return copies;
}

}  // namespace tutti::fused
