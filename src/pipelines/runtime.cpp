#include "pipelines/runtime.hpp"

#include "base/try.hpp"

namespace tutti::pipelines {
namespace {

class Enqueueing {
 public:
  Enqueueing(int stream, std::uint32_t epoch, PipelineRuntime& runtime)
      : stream_(stream), epoch_(epoch), runtime_(runtime) {}

  Status operator()(const WaitForStream& action) const {
    return runtime_.wait_for_stream(stream_, action);
  }
  Status operator()(const Await& action) const { return runtime_.await(stream_, action, epoch_); }
  Status operator()(const Signal& action) const { return runtime_.signal(stream_, action, epoch_); }
  Status operator()(const Move& action) const { return runtime_.move(stream_, action); }
  Status operator()(const Multiply& action) const { return runtime_.multiply(stream_, action); }

 private:
  int stream_;
  std::uint32_t epoch_;
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

Status run_call(std::span<const Instruction> instructions, std::uint32_t epoch,
                PipelineRuntime& runtime) {
  for (const Instruction& instruction : instructions) {
    TUTTI_TRY(std::visit(Enqueueing(instruction.stream, epoch, runtime), instruction.action));
  }
  return Status::ok();
}

}  // namespace tutti::pipelines
