// Where one rank finds the rows of a program's buffers: the caller's, workspaces, and those of
// peers.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "pipelines/runtime.hpp"

namespace tutti::fused {

// Where another rank has what this rank has at `own`, in symmetric memory; null: `own` is not in
// it. A single rank needs none.
using PeerAddress = std::function<std::byte*(int rank, const std::byte* own)>;

struct RowsCopy {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;  // never 0
};

class PipelineBuffers {
 public:
  // `program` outlives this. `workspace`: workspace_bytes(program), in symmetric memory.
  PipelineBuffers(const pipelines::Program& program, int rank, std::byte* workspace,
                  PeerAddress peer);

  int rank() const { return rank_; }
  const pipelines::Program& program() const { return program_; }

  // The memory is there already. kInvalidArgument: there is no workspace, or it is not symmetric.
  Status check_allocated(pipelines::BufferId buffer) const;
  Status check_shared(std::span<const pipelines::BufferId> buffers) const;

  // The caller's, of a call.
  void bind(pipelines::CallBuffers buffers) { buffers_ = buffers; }
  pipelines::CallBuffers bound() const { return buffers_; }

  // Of the first row of the place's buffer. kInvalidArgument: a peer's is not in symmetric memory.
  Result<std::byte*> address(const pipelines::Place& place) const;
  std::size_t row_bytes(pipelines::BufferId buffer) const;
  // Without what is in place.
  Result<std::vector<RowsCopy>> copies_of(const pipelines::Move& move) const;

 private:
  const pipelines::Buffer& described(pipelines::BufferId buffer) const {
    return program_.buffers[static_cast<std::size_t>(buffer)];
  }
  std::byte* own(pipelines::BufferId buffer) const;

  const pipelines::Program& program_;
  int rank_;
  std::byte* workspace_;
  PeerAddress peer_;
  std::vector<std::size_t> offsets_;  // of workspaces, by buffer
  pipelines::CallBuffers buffers_;
};

}  // namespace tutti::fused
