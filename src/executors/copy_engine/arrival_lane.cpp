#include "executors/copy_engine/arrival_lane.hpp"

#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "base/try.hpp"

namespace tutti {
namespace {

constexpr std::size_t kArrivalHostBytes = 4096, kAbortOffset = 256;
static_assert(sizeof(GateFailure) <= kAbortOffset);

// Words are compared as if they went round.
constexpr std::uint32_t kLastTurn = std::numeric_limits<std::int32_t>::max();

}  // namespace

Result<std::unique_ptr<ArrivalLane>> ArrivalLane::create(CudaDriver& cuda, int device,
                                                         std::uint32_t turns) {
  std::unique_ptr<ArrivalLane> lane(new ArrivalLane(cuda, turns));
  TUTTI_TRY(lane->open(device));
  return lane;
}

Status ArrivalLane::open(int device) {
  const std::size_t bytes = kWords * sizeof(std::uint32_t);
  TUTTI_ASSIGN(
      memory_,
      RankMemory::create(cuda_, device, {.device_bytes = bytes, .host_bytes = kArrivalHostBytes}));
  std::byte* const host = memory_.host_memory();
  std::memset(host, 0, kArrivalHostBytes);
  failure_ = new (host) GateFailure;
  abort_ = reinterpret_cast<std::uint32_t*>(host + kAbortOffset);
  words_ = reinterpret_cast<std::uint32_t*>(memory_.device_memory());
  TUTTI_ASSIGN(side_, cuda_.create_stream(device));
  for (CudaEvent* event : {&begun_, &ended_}) {
    TUTTI_ASSIGN(*event, cuda_.create_event(false));
  }
  TUTTI_TRY(cuda_.set_async(words_, 0, bytes, side_));
  return cuda_.synchronize(side_);
}

ArrivalLane::~ArrivalLane() {
  if (!drained_) memory_.leave_behind();
  for (CudaEvent event : {begun_, ended_}) {
    if (event != nullptr) (void)cuda_.destroy_event(event);
  }
  if (side_ != nullptr) (void)cuda_.destroy_stream(side_);
}

// Behind the last turn nobody reads the words: then they may begin anew.
Result<ArrivalLane::Turn> ArrivalLane::begin(std::unique_lock<std::mutex> lock, Stream stream,
                                             int chunks) {
  if (last_ == Last::kEnded && stream != stream_) TUTTI_TRY(cuda_.wait_event(stream, ended_));
  last_ = Last::kBegun;
  if (turn_ == kLastTurn) {
    TUTTI_TRY(cuda_.set_async(words_, 0, kWords * sizeof(std::uint32_t), stream));
    turn_ = 0;
  }
  TUTTI_TRY(cuda_.record_event(begun_, stream));
  TUTTI_TRY(cuda_.wait_event(side_, begun_));
  chunks_ = chunks;
  return Turn{std::move(lock), this, side_, words_, ++turn_, abort_, failure_};
}

Status ArrivalLane::end(Turn, Stream stream) {
  TUTTI_TRY(cuda_.record_event(ended_, stream));
  stream_ = stream;
  last_ = Last::kEnded;
  return Status::ok();
}

std::optional<ArrivalLane::LateChunk> ArrivalLane::late_chunk() const {
  if (std::atomic_ref(failure_->failed).load(std::memory_order_acquire) == 0) return std::nullopt;
  return LateChunk{.shard = failure_->chunk / chunks_,
                   .chunk = failure_->chunk % chunks_,
                   .number = failure_->epoch,
                   .seen = failure_->seen};
}

// A turn that could not be ended leaves nothing to ask.
bool ArrivalLane::has_ended() const {
  if (last_ != Last::kEnded) return last_ == Last::kNone;
  const auto finished = cuda_.event_finished(ended_);
  return !finished.is_ok() || *finished;  // a broken device runs nothing any more
}

bool ArrivalLane::drain(Deadline deadline) {
  drained_ = has_ended();
  while (!drained_ && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    drained_ = has_ended();
  }
  return drained_;
}

}  // namespace tutti
