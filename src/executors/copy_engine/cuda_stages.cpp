#include "executors/copy_engine/cuda_stages.hpp"

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "executors/copy_engine/stream_barrier.hpp"

namespace tutti {

void CudaStages::end_batch() {
  if (arrivals_.pull) return have_pulled();
  const bool announces = arrivals_.words != nullptr;
  const bool batched = gathered_.size() > 1 && !lane_.is_captured && !announces;
  if (batched && status_.is_ok()) status_ = cuda_.copy_batch(gathered_, lane_.stream);
  for (const CudaCopy& copy : gathered_) {
    if (batched) break;
    if (announces) {
      copy_and_announce(copy);
    } else {
      copy_now(copy, lane_.stream);
    }
  }
  gathered_.clear();
}

// Behind words whose writes are due.
void CudaStages::copy_now(const CudaCopy& copy, Stream stream) {
  write_words();
  if (status_.is_ok()) status_ = cuda_.copy_async(copy.to, copy.from, copy.bytes, stream);
}

// What lies before the output wraps around, and is beyond it, too.
std::size_t CudaStages::offset_of(const void* to) const {
  return reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(output_);
}

// A pass through staging may bring a part of a chunk: the pass that brings its end announces it.
void CudaStages::copy_and_announce(const CudaCopy& copy) {
  const std::size_t offset = offset_of(copy.to);
  if (offset >= pieces_bytes_) return copy_now(copy, lane_.stream);
  const std::size_t there = arrivals_.output_bytes - std::min(offset, arrivals_.output_bytes);
  const std::size_t wanted = std::min(copy.bytes, there);
  for (std::size_t done = 0; done < wanted;) {
    const std::size_t left = arrivals_.left_of(offset + done);
    const std::size_t bytes = std::min(left, wanted - done);
    copy_now({static_cast<std::byte*>(copy.to) + done,
              static_cast<const std::byte*>(copy.from) + done, bytes},
             lane_.stream);
    if (bytes == left) {
      words_.push_back({.kind = CudaMemoryOperation::Kind::kWrite32,
                        .value = arrivals_.value,
                        .word32 = arrivals_.word_of(offset + done)});
    }
    done += bytes;
  }
}

// The copies say where the pieces lie. One pass has them all: A is not staged.
void CudaStages::have_pulled() {
  if (gathered_.empty()) return;
  std::vector<const std::byte*> pieces(pieces_bytes_ / arrivals_.piece_bytes);
  for (const CudaCopy& copy : gathered_) {
    pieces[offset_of(copy.to) / arrivals_.piece_bytes] = static_cast<const std::byte*>(copy.from);
  }
  gathered_.clear();
  words_.push_back({.kind = CudaMemoryOperation::Kind::kWrite32,
                    .value = arrivals_.value,
                    .word32 = arrivals_.go});
  write_words();
  record_met(lane_.stream);  // the kernel of a graph begins behind the word that it waits for
  if (status_.is_ok()) status_ = arrivals_.pull(pieces);
}

void CudaStages::write_words() {
  if (status_.is_ok() && !words_.empty()) status_ = cuda_.memory_operations(words_, lane_.stream);
  words_.clear();
}

void CudaStages::reduce(const KernelArgs& part, Publish) {
  end_batch();
  if (barrier_ != nullptr && part.meets && part.count == 0) {
    if (status_.is_ok()) status_ = barrier_->enqueue(part, stream_, std::move(words_));
    words_.clear();
  } else {
    write_words();
    if (status_.is_ok()) status_ = launch_on_cuda(cuda_, body_, part, stream_);
  }
  if (!arrivals_.pull) record_met(stream_);
}

void CudaStages::record_met(Stream stream) {
  CudaEvent const met = std::exchange(arrivals_.met, nullptr);  // once
  if (met != nullptr && status_.is_ok()) status_ = cuda_.record_event(met, stream);
}

void CudaStages::copy_among_kernels(std::byte* to, const std::byte* from, std::size_t bytes) {
  end_batch();
  if (bytes > 0 && arrivals_.words == nullptr) copy_now({to, from, bytes}, stream_);
}

// Kernels and copies on one stream need no events.
Stages::Mark CudaStages::mark(Stream stream) {
  end_batch();
  if (lane_.stream == stream_) return 0;
  const std::size_t index = lane_.taken++ % CopyLane::kEvents;
  if (status_.is_ok()) status_ = cuda_.record_event(lane_.events[index], stream);
  return static_cast<Mark>(index);
}

void CudaStages::wait(Stream stream, Mark mark) {
  end_batch();
  if (!status_.is_ok() || lane_.stream == stream_) return;
  status_ = cuda_.wait_event(stream, lane_.events[static_cast<std::size_t>(mark)]);
}

}  // namespace tutti
