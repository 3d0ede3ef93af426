#include "fused/host_pipeline.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "base/has_reached.hpp"
#include "base/try.hpp"
#include "pipelines/print.hpp"

namespace tutti::fused {

using pipelines::Await;
using pipelines::CallBuffers;
using pipelines::Move;
using pipelines::Multiply;
using pipelines::Signal;
using pipelines::Word;

HostPipeline::HostPipeline(PipelineBuffers buffers, HostPipelineWords words, HostMultiply multiply,
                           HostPatience patience)
    : buffers_(std::move(buffers)),
      words_(std::move(words.words)),
      epoch_(words.epoch),
      multiply_(std::move(multiply)),
      patience_(std::move(patience)) {}

Status HostPipeline::begin_call(CallBuffers buffers) {
  TUTTI_TRY(status_);
  buffers_.bind(buffers);
  ++epoch_;
  return Status::ok();
}

Status HostPipeline::await(int /*stream*/, const Await& await) {
  const std::atomic_ref awaited(word(await.word));
  HostWaiting waiting(patience_, buffers_.rank(), await.word.writer);
  for (bool goes_on = true;;) {
    const std::uint64_t seen = awaited.load(std::memory_order_acquire);
    if (has_reached(seen, epoch_)) {
      waiting.arrived();
      return Status::ok();
    }
    if (!goes_on) return waiting.failure({word_text(await.word), seen, epoch_});
    goes_on = waiting.goes_on();
  }
}

Status HostPipeline::signal(int /*stream*/, const Signal& signal) {
  std::atomic_ref(word(signal.word)).store(epoch_, std::memory_order_release);
  return Status::ok();
}

Status HostPipeline::move(int /*stream*/, const Move& move) {
  TUTTI_ASSIGN(const std::vector<RowsCopy> copies, buffers_.copies_of(move));
  for (const RowsCopy& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
  return Status::ok();
}

Status HostPipeline::multiply(int /*stream*/, const Multiply& multiply) {
  TUTTI_ASSIGN(const std::byte* const a, buffers_.address(multiply.a));
  const std::size_t row = buffers_.row_bytes(multiply.a.buffer);
  for (std::size_t i = 0; i < multiply.c.size(); ++i) {
    const std::byte* const rows = a + multiply.a.rows[i].begin * row;
    TUTTI_TRY(multiply_({rows, multiply.c[i], buffers_.bound()}));
  }
  return Status::ok();
}

Status HostPipeline::end_call(const Status& status) {
  buffers_.bind({});
  status_ = status;
  return status;
}

std::uint64_t& HostPipeline::word(const Word& word) const {
  const auto rank = static_cast<std::size_t>(word.rank);
  return words_[rank][position_of(word, buffers_.program())];
}

}  // namespace tutti::fused
