#include "executors/network/direct_transfers.hpp"

#include <algorithm>
#include <cstdint>

namespace tutti {
namespace {

using Place = NetworkPlace::Buffer;

std::uint64_t word_at(const std::byte* base, std::size_t first_byte) {
  return reinterpret_cast<std::uintptr_t>(base) + first_byte;
}

// Of this rank's own part, if it is not there already.
RequestedCopy own_copy(const NetworkOperation& what) {
  const std::size_t size = size_of(what.dtype);
  for (const NetworkStep& step : what.schedule(what.shape).steps) {
    if (step.kind != NetworkStep::Kind::kCopy) continue;
    const RequestedCopy copy{.to = word_at(what.output, step.into.first * size),
                             .from = word_at(what.input, step.places[0].first * size),
                             .bytes = step.count * size,
                             .rows = 1};
    return copy.to == copy.from ? RequestedCopy{} : copy;
  }
  return {};
}

}  // namespace

bool only_moves(const NetworkProgram& program) {
  int copies = 0;
  return program.scratch == 0 &&
         std::all_of(program.steps.begin(), program.steps.end(), [&](const NetworkStep& step) {
           switch (step.kind) {
             case NetworkStep::Kind::kSend:
               return true;
             case NetworkStep::Kind::kReceive:
               return step.places.empty() && step.after.empty();
             case NetworkStep::Kind::kCopy:
               return ++copies == 1 && step.after.empty() &&
                      step.places[0].buffer == Place::kInput && step.into.buffer == Place::kOutput;
             case NetworkStep::Kind::kSum:
               return false;
           }
           return false;
         });
}

void make_direct_if_worth(StagedTransfer& transfer) {
  NetworkOperation& what = transfer.what;
  if (transfer.is_local || what.shape.count * size_of(what.dtype) < kLeastDirectBytes) return;
  what.on_gpu = true;
  what.chunk_bytes = std::max(what.chunk_bytes, kDirectChunkBytes);
  transfer.own = own_copy(what);
}

}  // namespace tutti
