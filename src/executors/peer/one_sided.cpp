#include "executors/peer/one_sided.hpp"

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti {
namespace {

constexpr int kThreads = 512;
constexpr std::size_t kBytesPerBlock = 32 * KiB;
constexpr std::size_t kMostBlocks = 64;
constexpr std::size_t kGetsByKernel = 64 * KiB;  // up to so much, where nobody says how
constexpr std::size_t kStreamsKept = 16;         // beyond that, ends that have come are reused

bool by_copy_engine(const OneSidedWork& work, Mover mover) {
  if (work.kind == OneSided::kSignal || work.kind == OneSided::kWaitSignal) return false;
  const Mover by = mover == Mover::kAuto ? usual_mover(work.kind, work.bytes) : mover;
  return by == Mover::kCopyEngine;
}

}  // namespace

Mover usual_mover(OneSided kind, std::size_t bytes) {
  const bool copies = kind == OneSided::kGet && bytes > kGetsByKernel;
  return copies ? Mover::kCopyEngine : Mover::kKernel;
}

CudaOneSided::~CudaOneSided() {
  for (const auto& [stream, end] : ends_) (void)cuda_.destroy_event(end);
}

Status CudaOneSided::load() {
  const void* const kernel = one_sided_kernel();
  return kernel == nullptr ? Status::ok() : cuda_.load_kernel(kernel, 0);
}

// A signal goes with the data where one block does both, else behind it: the end of a kernel, or of
// a copy, is before what follows on the stream.
Status CudaOneSided::run(const OneSidedWork& work, Mover mover, Stream stream) {
  const bool copies = by_copy_engine(work, mover);
  const auto blocks = static_cast<int>(
      std::clamp<std::size_t>(ceil_div(work.bytes, kBytesPerBlock), 1, kMostBlocks));
  OneSidedWork now = work;
  const bool signals_behind = work.kind == OneSided::kPutSignal && (copies || blocks > 1);
  if (signals_behind) now.kind = OneSided::kPut;
  if (!copies) {
    TUTTI_TRY(launch(now, takes_many_blocks(now.kind) ? blocks : 1, stream));
  } else if (work.bytes > 0) {
    std::byte* const peer = work.peers.at[work.peer];
    const bool gets = work.kind == OneSided::kGet;
    TUTTI_TRY(cuda_.copy_async(gets ? work.to : peer, gets ? peer : work.from, work.bytes, stream));
  }
  if (signals_behind) {
    now.kind = OneSided::kSignal;
    TUTTI_TRY(launch(now, 1, stream));
  }
  return note_end(stream);
}

Status CudaOneSided::launch(const OneSidedWork& work, int blocks, Stream stream) {
  constexpr int kWarp = 32;
  void* arguments[] = {const_cast<OneSidedWork*>(&work)};
  return cuda_.launch({.kernel = one_sided_kernel(),
                       .blocks = blocks,
                       .threads = work.bytes == 0 ? kWarp : kThreads,
                       .arguments = arguments,
                       .stream = stream});
}

Status CudaOneSided::note_end(Stream stream) {
  TUTTI_ASSIGN(const CudaCapture capture, cuda_.capture_of(stream));
  if (capture.state != CudaCapture::State::kNone) return Status::ok();
  const std::lock_guard lock(mutex_);
  auto own = ends_.find(stream);
  if (own == ends_.end()) {
    TUTTI_ASSIGN(CudaEvent const end, event_for_another_stream());
    own = ends_.emplace(stream, end).first;
  }
  return cuda_.record_event(own->second, stream);
}

// One that has come, where there are many, else a new one.
Result<CudaEvent> CudaOneSided::event_for_another_stream() {
  if (ends_.size() < kStreamsKept) return cuda_.create_event(false);
  for (auto other = ends_.begin(); other != ends_.end(); ++other) {
    TUTTI_ASSIGN(const bool ended, cuda_.event_finished(other->second));
    if (!ended) continue;
    CudaEvent const end = other->second;
    ends_.erase(other);
    return end;
  }
  return cuda_.create_event(false);
}

bool CudaOneSided::caught_up() {
  const std::lock_guard lock(mutex_);
  return std::all_of(ends_.begin(), ends_.end(), [&](const auto& end) {
    const auto ended = cuda_.event_finished(end.second);
    return !ended.is_ok() || *ended;  // a broken device runs nothing any more
  });
}

}  // namespace tutti
