#include "pipelines/runtime.hpp"

#include "base/try.hpp"

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

Status run_call(std::span<const Instruction> instructions, PipelineRuntime& runtime) {
  TUTTI_TRY(runtime.begin_call());
  Status status;
  for (const Instruction& instruction : instructions) {
    status = std::visit(Enqueueing(instruction.stream, runtime), instruction.action);
    if (!status.is_ok()) break;
  }
  return runtime.end_call(status);
}

}  // namespace tutti::pipelines
