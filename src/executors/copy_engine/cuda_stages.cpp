#include "executors/copy_engine/cuda_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "executors/copy_engine/stream_barrier.hpp"

namespace tutti {

CopyLanes::~CopyLanes() {
  for (CopyLane& lane : lanes_) {
    for (CudaEvent event : lane.events) {
      if (event != nullptr) (void)cuda_.destroy_event(event);
    }
    if (lane.stream != nullptr) (void)cuda_.destroy_stream(lane.stream);
  }
}

Status CopyLanes::create(int device) {
  device_ = device;
  return complete(lanes_.front());
}

// Makes what a lane has not got yet.
Status CopyLanes::complete(CopyLane& lane) {
  for (CudaEvent& event : lane.events) {
    if (event != nullptr) continue;
    TUTTI_ASSIGN(event, cuda_.create_event(false));
  }
  if (lane.stream != nullptr) return Status::ok();
  TUTTI_ASSIGN(lane.stream, cuda_.create_stream(device_));
  lane.is_captured = &lane != &lanes_.front();
  return Status::ok();
}

Result<CopyLane*> CopyLanes::lane_for(Stream stream) {
  TUTTI_ASSIGN(const CudaCapture capture, cuda_.capture_of(stream));
  if (capture.state == CudaCapture::State::kNone) return &lanes_[0];
  CopyLane* idle = nullptr;
  for (std::size_t k = 1; k < lanes_.size(); ++k) {
    if (lanes_[k].stream == nullptr) {  // and so have those after it
      if (idle == nullptr) idle = &lanes_[k];
      break;
    }
    TUTTI_ASSIGN(const CudaCapture other, cuda_.capture_of(lanes_[k].stream));
    if (other.state == CudaCapture::State::kActive && other.id == capture.id) return &lanes_[k];
    if (other.state == CudaCapture::State::kNone && idle == nullptr) idle = &lanes_[k];
  }
  if (idle != nullptr) {
    TUTTI_TRY(complete(*idle));
    return idle;
  }
  return Status(StatusCode::kResourceExhausted,
                fmt::format("copy engines serve {} captures of a communicator at once: end one, or "
                            "choose a row without them",
                            kCaptures));
}

void CudaStages::end_batch() {
  const bool announces = arrivals_.words != nullptr;
  const bool batched = gathered_.size() > 1 && !lane_.is_captured && !announces;
  if (batched && status_.is_ok()) status_ = cuda_.copy_batch(gathered_, copies_);
  for (const CudaCopy& copy : gathered_) {
    if (batched) break;
    if (announces) {
      copy_and_announce(copy);
    } else {
      copy_now(copy, copies_);
    }
  }
  gathered_.clear();
}

// Behind words whose writes are due.
void CudaStages::copy_now(const CudaCopy& copy, Stream stream) {
  write_words();
  if (status_.is_ok()) status_ = cuda_.copy_async(copy.to, copy.from, copy.bytes, stream);
}

// A pass through staging may bring a part of a chunk: the pass that brings its end announces it.
void CudaStages::copy_and_announce(const CudaCopy& copy) {
  // What lies before the output wraps around, and is beyond it, too.
  const std::size_t offset =
      reinterpret_cast<std::uintptr_t>(copy.to) - reinterpret_cast<std::uintptr_t>(output_);
  if (offset >= output_bytes_) return copy_now(copy, copies_);
  for (std::size_t done = 0; done < copy.bytes;) {
    const std::size_t left = arrivals_.left_of(offset + done);
    const std::size_t bytes = std::min(left, copy.bytes - done);
    copy_now({static_cast<std::byte*>(copy.to) + done,
              static_cast<const std::byte*>(copy.from) + done, bytes},
             copies_);
    if (bytes == left) {
      words_.push_back({.kind = CudaMemoryOperation::Kind::kWrite32,
                        .value = arrivals_.value,
                        .word32 = arrivals_.word_of(offset + done)});
    }
    done += bytes;
  }
}

void CudaStages::write_words() {
  if (status_.is_ok() && !words_.empty()) status_ = cuda_.memory_operations(words_, copies_);
  words_.clear();
}

void CudaStages::reduce(const KernelArgs& part, Publish) {
  end_batch();
  if (barrier_ != nullptr && part.meets && part.count == 0) {
    if (status_.is_ok()) status_ = barrier_->enqueue(part, stream_, std::move(words_));
    words_.clear();
    return;
  }
  write_words();
  if (status_.is_ok()) status_ = launch_on_cuda(cuda_, body_, part, stream_);
}

void CudaStages::copy_among_kernels(std::byte* to, const std::byte* from, std::size_t bytes) {
  end_batch();
  if (arrivals_.words != nullptr && !arrivals_.with_own) return;
  if (bytes > 0) copy_now({to, from, bytes}, stream_);
}

// Kernels and copies on one stream need no events.
Stages::Mark CudaStages::mark(Stream stream) {
  end_batch();
  if (copies_ == stream_) return 0;
  const std::size_t index = lane_.taken++ % CopyLane::kEvents;
  if (status_.is_ok()) status_ = cuda_.record_event(lane_.events[index], stream);
  return static_cast<Mark>(index);
}

void CudaStages::wait(Stream stream, Mark mark) {
  end_batch();
  if (!status_.is_ok() || copies_ == stream_) return;
  status_ = cuda_.wait_event(stream, lane_.events[static_cast<std::size_t>(mark)]);
}

}  // namespace tutti
