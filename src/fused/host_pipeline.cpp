#include "fused/host_pipeline.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "base/deadline.hpp"
#include "base/has_reached.hpp"
#include "base/try.hpp"
#include "pipelines/print.hpp"
#include "tutti/device/impl/host_wait.hpp"

namespace tutti::fused {

using pipelines::Await;
using pipelines::BufferId;
using pipelines::CallBuffers;
using pipelines::Move;
using pipelines::Multiply;
using pipelines::Place;
using pipelines::Rows;
using pipelines::Signal;
using pipelines::Word;

HostPipeline::HostPipeline(const pipelines::Program& program, HostPipelineMemory memory,
                           HostMultiply multiply, HostPatience patience)
    : program_(program),
      memory_(std::move(memory)),
      multiply_(std::move(multiply)),
      patience_(std::move(patience)),
      offsets_(workspace_offsets(program)),
      epoch_(memory_.epoch) {}

Status HostPipeline::allocate(BufferId buffer) {
  if (memory_.workspace != nullptr) return Status::ok();
  return {StatusCode::kInvalidArgument,
          "all_gather_matmul: no workspace for " + described(buffer).name};
}

Status HostPipeline::share_handles(std::span<const BufferId> buffers) {
  for (const BufferId buffer : buffers) {
    if (described(buffer).is_callers()) continue;  // each call brings it
    for (int rank = 0; rank < program_.description.ranks; ++rank) {
      TUTTI_TRY(address({rank, buffer, {}}).status());
    }
  }
  return Status::ok();
}

Status HostPipeline::begin_call(CallBuffers buffers) {
  TUTTI_TRY(status_);
  buffers_ = buffers;
  ++epoch_;
  return Status::ok();
}

Status HostPipeline::await(int /*stream*/, const Await& await) {
  const std::atomic_ref awaited(word(await.word));
  const RunningClock::time_point begin = RunningClock::now();
  device::impl::HostWait wait;
  for (;;) {
    const std::uint64_t seen = awaited.load(std::memory_order_acquire);
    if (has_reached(seen, epoch_)) return Status::ok();
    if (!wait.pause()) continue;
    if (patience_.group_status) TUTTI_TRY(patience_.group_status());
    if (patience_.has_left && patience_.has_left(await.word.writer)) {
      const std::uint64_t last = awaited.load(std::memory_order_acquire);
      return has_reached(last, epoch_) ? Status::ok() : gone(await.word, last);
    }
    const std::chrono::milliseconds timeout = patience_.timeout();
    if (RunningClock::now() - begin >= timeout) return late(await.word, seen, timeout);
  }
}

std::string HostPipeline::wait_text(const Word& word, std::string_view waits) const {
  const auto name = [this](int rank) {
    return patience_.name_of ? patience_.name_of(rank) : fmt::format("rank {}", rank);
  };
  return fmt::format("all_gather_matmul: {} {} {}", name(memory_.rank), waits, name(word.writer));
}

Status HostPipeline::gone(const Word& word, std::uint64_t seen) const {
  return {StatusCode::kPeerFailed,
          fmt::format("{}, which left the group: {} is at epoch {}, not {}",
                      wait_text(word, "waits for"), word_text(word), seen, epoch_)};
}

Status HostPipeline::late(const Word& word, std::uint64_t seen,
                          std::chrono::milliseconds timeout) const {
  const std::string waited = fmt::format("waited {} ms for", timeout.count());
  return {StatusCode::kTimeout,
          fmt::format("{}: {} is at epoch {}, not {}", wait_text(word, waited), word_text(word),
                      seen, epoch_)};
}

Status HostPipeline::signal(int /*stream*/, const Signal& signal) {
  std::atomic_ref(word(signal.word)).store(epoch_, std::memory_order_release);
  return Status::ok();
}

Status HostPipeline::move(int /*stream*/, const Move& move) {
  TUTTI_ASSIGN(const std::byte* const from, address(move.from));
  TUTTI_ASSIGN(std::byte* const to, address(move.to));
  const std::size_t row = row_bytes(move.from.buffer);
  for (std::size_t i = 0; i < move.from.rows.size(); ++i) {
    const Rows& rows = move.from.rows[i];
    if (rows.count() * row == 0) continue;  // of null, perhaps
    std::byte* const target = to + move.to.rows[i].begin * row;
    const std::byte* const source = from + rows.begin * row;
    if (source != target) std::memcpy(target, source, rows.count() * row);  // else it is in place
  }
  return Status::ok();
}

Status HostPipeline::multiply(int /*stream*/, const Multiply& multiply) {
  TUTTI_ASSIGN(const std::byte* const a, address(multiply.a));
  const std::size_t row = row_bytes(multiply.a.buffer);
  for (std::size_t i = 0; i < multiply.c.size(); ++i) {
    TUTTI_TRY(multiply_({a + multiply.a.rows[i].begin * row, multiply.c[i], buffers_}));
  }
  return Status::ok();
}

Status HostPipeline::end_call(const Status& status) {
  buffers_ = {};
  status_ = status;
  return status;
}

std::uint64_t& HostPipeline::word(const Word& word) const {
  return memory_.words[static_cast<std::size_t>(word.rank)][position_of(word, program_)];
}

std::size_t HostPipeline::row_bytes(BufferId buffer) const {
  return described(buffer).columns * size_of(program_.description.dtype);
}

std::byte* HostPipeline::own(BufferId buffer) const {
  const auto id = static_cast<std::size_t>(buffer);
  return described(buffer).is_callers() ? buffers_[id] : memory_.workspace + offsets_[id];
}

Result<std::byte*> HostPipeline::address(const Place& place) const {
  std::byte* const here = own(place.buffer);
  if (place.rank == memory_.rank) return here;
  std::byte* const there = memory_.peer(place.rank, here);
  if (there != nullptr) return there;
  return Status(StatusCode::kInvalidArgument,
                fmt::format("all_gather_matmul: {} of rank {} is not in symmetric memory",
                            described(place.buffer).name, memory_.rank));
}

}  // namespace tutti::fused
