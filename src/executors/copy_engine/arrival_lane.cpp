#include "executors/copy_engine/arrival_lane.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "base/try.hpp"

namespace tutti {
namespace {

constexpr std::size_t kArrivalHostBytes = 4096, kAbortOffset = 256;
static_assert(2 * sizeof(GateFailure) <= kAbortOffset);

constexpr std::size_t kWordBytes = ArrivalLane::kWords * sizeof(std::uint32_t);

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
  const std::size_t bytes = (1 + std::size_t{kCapturedTurns}) * kWordBytes;
  TUTTI_ASSIGN(
      memory_,
      RankMemory::create(cuda_, device, {.device_bytes = bytes, .host_bytes = kArrivalHostBytes}));
  std::byte* const host = memory_.host_memory();
  std::memset(host, 0, kArrivalHostBytes);
  failure_ = new (host) GateFailure[2];
  abort_ = reinterpret_cast<std::uint32_t*>(host + kAbortOffset);
  words_ = reinterpret_cast<std::uint32_t*>(memory_.device_memory());
  TUTTI_TRY(lanes_.create(device));
  for (int slot = kCapturedTurns; slot-- > 0;) free_slots_.push_back(slot);
  for (CudaEvent* event : {&begun_, &pulled_, &ended_}) {
    TUTTI_ASSIGN(*event, cuda_.create_event(false));
  }
  Stream side = lanes_.eager().stream;
  TUTTI_TRY(cuda_.set_async(words_, 0, bytes, side));
  TUTTI_TRY(cuda_.synchronize(side));
  const Status captured = try_capture(side);
  if (!captured.is_ok()) {
    why_not_captured_ =
        fmt::format("the driver captures no stream memory operations: {}", captured.message());
  }
  return Status::ok();
}

// Whether words can be written in graphs. Nothing runs.
Status ArrivalLane::try_capture(Stream side) {
  TUTTI_TRY(cuda_.begin_capture(side));
  const CudaMemoryOperation write{
      .kind = CudaMemoryOperation::Kind::kWrite32, .value = 0, .word32 = words_};
  const Status status = cuda_.memory_operations({&write, 1}, side);
  const auto graph = cuda_.end_capture(side);
  if (graph.is_ok()) TUTTI_TRY(cuda_.destroy_graph(*graph));
  TUTTI_TRY(status);
  return graph.status();
}

ArrivalLane::~ArrivalLane() {
  if (!drained_) memory_.leave_behind();
  for (CudaEvent event : {begun_, pulled_, ended_}) {
    if (event != nullptr) (void)cuda_.destroy_event(event);
  }
}

Result<ArrivalLane::Turn> ArrivalLane::begin(std::unique_lock<std::mutex> lock, Stream stream,
                                             int flags) {
  TUTTI_ASSIGN(CopyLane * beside, lanes_.lane_for(stream));
  if (beside->is_captured) return begin_captured(std::move(lock), *beside, stream, flags);
  if (last_ == Last::kBegun) {
    return Status(StatusCode::kCuda,
                  "the end of an earlier call could not be recorded: create another communicator");
  }
  TUTTI_ASSIGN(const std::uint64_t id, cuda_.stream_id(stream));
  if (last_ == Last::kEnded && id != stream_) TUTTI_TRY(cuda_.wait_event(stream, ended_));
  last_ = Last::kBegun;
  const Status begun = enqueue_begin(stream, beside->stream);
  if (!begun.is_ok()) {  // the next turn is behind what was enqueued even so
    (void)record_end(stream);
    return begun;
  }
  flags_ = flags;
  return Turn{.lock = std::move(lock),
              .lane = this,
              .side = beside->stream,
              .words = words_,
              .counters = words_ + kFlags,
              .number = ++turn_,
              .abort = abort_,
              .failure = failure_,
              .pulled = pulled_};
}

// Behind the last turn nobody reads the words: then they may begin anew.
Status ArrivalLane::enqueue_begin(Stream stream, Stream side) {
  if (turn_ == kLastTurn) {
    TUTTI_TRY(cuda_.set_async(words_, 0, kWordBytes, stream));
    turn_ = 0;
  }
  TUTTI_TRY(cuda_.record_event(begun_, stream));
  return cuda_.wait_event(side, begun_);
}

// The words are reset in the side stream, ahead of the ranks' meeting, and so of the matmul.
Result<ArrivalLane::Turn> ArrivalLane::begin_captured(std::unique_lock<std::mutex> lock,
                                                      CopyLane& lane, Stream stream, int flags) {
  if (!why_not_captured_.empty()) return Status(StatusCode::kUnsupported, why_not_captured_);
  TUTTI_ASSIGN(const int slot, take_slot(stream));
  captured_flags_[static_cast<std::size_t>(slot)] = flags;
  const int number = slot + 1;  // its words are not those of eager turns, which come first
  std::uint32_t* const words = words_ + std::ptrdiff_t{number} * kWords;
  CudaEvent const begun = lane.next_event();
  TUTTI_TRY(cuda_.record_event(begun, stream));
  TUTTI_TRY(cuda_.wait_event(lane.stream, begun));
  TUTTI_TRY(cuda_.set_async(words, 0, kWordBytes, lane.stream));
  return Turn{.lock = std::move(lock),
              .lane = this,
              .side = lane.stream,
              .words = words,
              .counters = words + kFlags,
              .number = static_cast<std::uint32_t>(number),
              .abort = abort_,
              .failure = failure_ + 1,
              .met = lane.next_event(),
              .pulled = lane.next_event(),
              .gathered = lane.next_event()};
}

// Which the graph gives back when it ends.
Result<int> ArrivalLane::take_slot(Stream stream) {
  {
    const std::lock_guard lock(returned_->mutex);
    free_slots_.insert(free_slots_.end(), returned_->slots.begin(), returned_->slots.end());
    returned_->slots.clear();
  }
  if (free_slots_.empty()) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("{} captured calls are in graphs: destroy some", kCapturedTurns));
  }
  TUTTI_ASSIGN(const CudaCapture capture, cuda_.capture_of(stream));
  const int slot = free_slots_.back();
  TUTTI_TRY(cuda_.retain_on_graph(capture.graph, [returned = returned_, slot] {
    const std::lock_guard lock(returned->mutex);
    returned->slots.push_back(slot);
  }));
  free_slots_.pop_back();
  return slot;
}

Status ArrivalLane::end(Turn turn, Stream stream) {
  if (turn.gathered != nullptr) {
    TUTTI_TRY(cuda_.record_event(turn.gathered, turn.side));
    return cuda_.wait_event(stream, turn.gathered);
  }
  return record_end(stream);
}

Status ArrivalLane::record_end(Stream stream) {
  TUTTI_ASSIGN(stream_, cuda_.stream_id(stream));
  TUTTI_TRY(cuda_.record_event(ended_, stream));
  last_ = Last::kEnded;
  return Status::ok();
}

std::optional<ArrivalLane::LateChunk> ArrivalLane::late_chunk() const {
  for (const bool captured : {false, true}) {
    GateFailure& failure = failure_[captured ? 1 : 0];
    if (std::atomic_ref(failure.failed).load(std::memory_order_acquire) == 0) continue;
    const int flags = captured ? captured_flags_[failure.epoch - 1].load() : flags_.load();
    return LateChunk{.shard = failure.chunk / flags,
                     .chunk = failure.chunk % flags,
                     .number = failure.epoch,
                     .seen = failure.seen};
  }
  return std::nullopt;
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
