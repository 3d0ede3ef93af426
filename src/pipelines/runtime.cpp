#include "pipelines/runtime.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "pipelines/validate.hpp"

namespace tutti::pipelines {
namespace {

class Enqueueing {
 public:
  Enqueueing(int stream, PipelineRuntime& runtime) : stream_(stream), runtime_(runtime) {}

  Status operator()(const WaitForStream& action) const {
    return runtime_.wait_for_stream(stream_, action);
  }
  Status operator()(const Await& action) const { return runtime_.await(stream_, action); }
  Status operator()(const Signal& action) const { return runtime_.signal(stream_, action); }
  Status operator()(const Move& action) const { return runtime_.move(stream_, action); }
  Status operator()(const Multiply& action) const { return runtime_.multiply(stream_, action); }

 private:
  int stream_;
  PipelineRuntime& runtime_;
};

Status check_buffers(const Program& program, int rank, CallBuffers buffers) {
  if (buffers.size() != program.buffers.size()) {
    return {StatusCode::kInvalidArgument,
            fmt::format("all_gather_matmul: {} buffers, for a program of {}", buffers.size(),
                        program.buffers.size())};
  }
  for (std::size_t id = 0; id < buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    const std::size_t rows =
        buffer.is_symmetric ? buffer.rows : rows_in(program, rank, static_cast<BufferId>(id));
    const bool is_empty = rows == 0 || buffer.columns == 0;
    if (!buffer.is_callers() || is_empty || buffers[id] != nullptr) continue;
    return {StatusCode::kInvalidArgument, "all_gather_matmul: " + buffer.name + " is null"};
  }
  return Status::ok();
}

}  // namespace

Status run_setup(const Program& program, PipelineRuntime& runtime) {
  for (const Node& node : program.setup) {
    if (const auto* allocate = std::get_if<Allocate>(&node.value)) {
      TUTTI_TRY(runtime.allocate(allocate->buffer));
    } else if (const auto* share = std::get_if<ShareHandles>(&node.value)) {
      TUTTI_TRY(runtime.share_handles(share->buffers));
    }
  }
  return Status::ok();
}

Status run_call(const Program& program, std::span<const Instruction> instructions,
                CallBuffers buffers, PipelineRuntime& runtime) {
  TUTTI_TRY(check_buffers(program, runtime.rank(), buffers));
  TUTTI_TRY(runtime.begin_call(buffers));
  Status status;
  for (const Instruction& instruction : instructions) {
    status = std::visit(Enqueueing(instruction.stream, runtime), instruction.action);
    if (!status.is_ok()) break;
  }
  return runtime.end_call(status);
}

}  // namespace tutti::pipelines
