#include "executors/streams.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "memory/device_scope.hpp"

namespace tutti {
namespace {

class CudaStreams : public Streams {
 public:
  CudaStreams(CudaDriver& cuda, int device) : cuda_(cuda), device_(device) {}
  ~CudaStreams() override {
    const DeviceScope scope(cuda_, device_);
    for (const CudaEvent event : {event_, between_}) {
      if (event != nullptr) (void)cuda_.destroy_event(event);
    }
    for (const Captured& each : captured_) {
      if (each.event != nullptr) (void)cuda_.destroy_event(each.event);
    }
  }

  Status initialise() {
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    TUTTI_ASSIGN(event_, cuda_.create_event(false));
    return Status::ok();
  }

  Result<StreamState> state(Stream stream) override {
    TUTTI_ASSIGN(const CudaCapture capture, cuda_.capture_of(stream));
    if (capture.state == CudaCapture::State::kInvalidated) {
      return Status(StatusCode::kInvalidArgument, "the stream's capture has been invalidated");
    }
    return StreamState{.capturing = capture.state == CudaCapture::State::kActive,
                       .capture_id = capture.id,
                       .graph = capture.graph};
  }

  // An event behind every eager operation: the next one may come on another stream, when this one
  // no longer exists.
  Status enter(Stream stream, const StreamState& state) override {
    if (!used_ && !state.capturing) return Status::ok();
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    if (state.capturing) return enter_captured(stream, state.capture_id);
    TUTTI_ASSIGN(const std::uint64_t id, cuda_.stream_id(stream));
    if (id == last_ || id == behind_) return Status::ok();
    TUTTI_TRY(cuda_.wait_event(stream, event_));
    behind_ = id;
    return Status::ok();
  }
  Status leave(Stream stream, const StreamState& state) override {
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    if (state.capturing) return leave_captured(stream, state.capture_id);
    TUTTI_ASSIGN(const std::uint64_t id, cuda_.stream_id(stream));
    used_ = true;
    last_ = behind_ = id;
    return cuda_.record_event(event_, stream);
  }

  // A wait is for the latest record before it, so one event serves all.
  Status follow(Stream later, Stream earlier) override {
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    if (between_ == nullptr) {
      TUTTI_ASSIGN(between_, cuda_.create_event(false));
    }
    TUTTI_TRY(cuda_.record_event(between_, earlier));
    return cuda_.wait_event(later, between_);
  }

  Status copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    return cuda_.copy_async(to, from, bytes, stream);
  }

  bool caught_up(bool if_broken) override {
    if (!used_) return true;
    const auto finished = cuda_.event_finished(event_);
    return finished.is_ok() ? *finished : if_broken;
  }

 private:
  // An event behind the last operation of a capture. It makes no node of the graph.
  struct Captured {
    std::uint64_t id = 0;
    CudaEvent event = nullptr;
    // CUDA does not tell stream_id() inside a capture. Should a stream be destroyed in the middle
    // of one, and another get its handle, then they have no order: if they overlap, they fail by
    // name.
    Stream last = nullptr;
  };
  // More captures than are under way at once. Then the oldest loses its order across streams: its
  // operations, if they overlap, fail by name.
  static constexpr std::size_t kCaptures = 16;

  Status enter_captured(Stream stream, std::uint64_t capture) {
    const Captured* const mark = mark_of(capture);
    if (mark == nullptr || stream == mark->last) return Status::ok();
    return cuda_.wait_event(stream, mark->event);
  }

  Status leave_captured(Stream stream, std::uint64_t capture) {
    Captured& mark = mark_for(capture, stream);
    if (mark.event == nullptr) {
      TUTTI_ASSIGN(mark.event, cuda_.create_event(false));
    }
    mark.id = capture;
    mark.last = stream;
    return cuda_.record_event(mark.event, stream);
  }

  // Null if there is none.
  Captured* mark_of(std::uint64_t capture) {
    const auto found = std::find_if(captured_.begin(), captured_.end(), [&](const Captured& each) {
      return each.event != nullptr && each.id == capture;
    });
    return found == captured_.end() ? nullptr : &*found;
  }

  // The capture's own, else one of a capture that has ended, since its stream is in another one.
  Captured& mark_for(std::uint64_t capture, Stream stream) {
    if (Captured* const own = mark_of(capture)) return *own;
    const auto ended = std::find_if(captured_.begin(), captured_.end(), [&](const Captured& each) {
      return each.event != nullptr && each.last == stream;
    });
    return ended != captured_.end() ? *ended : captured_[next_captured_++ % kCaptures];
  }

  CudaDriver& cuda_;
  const int device_;
  std::array<Captured, kCaptures> captured_{};
  std::size_t next_captured_ = 0;
  CudaEvent event_ = nullptr;
  CudaEvent between_ = nullptr;  // of follow(), since its first call
  // CudaDriver::stream_id() of the stream of the last operation, and of one that waits for the
  // event already.
  std::uint64_t last_ = 0, behind_ = 0;
  std::atomic<bool> used_ = false;
};

class HostStreams : public Streams {
 public:
  Result<StreamState> state(Stream) override { return StreamState{}; }
  Status enter(Stream, const StreamState&) override { return Status::ok(); }
  Status leave(Stream, const StreamState&) override { return Status::ok(); }
  Status follow(Stream, Stream) override { return Status::ok(); }
  Status copy(void* to, const void* from, std::size_t bytes, Stream) override {
    std::memcpy(to, from, bytes);
    return Status::ok();
  }
  bool caught_up(bool) override { return true; }
};

}  // namespace

Result<std::unique_ptr<Streams>> make_cuda_streams(CudaDriver& cuda, int device) {
  auto streams = std::make_unique<CudaStreams>(cuda, device);
  TUTTI_TRY(streams->initialise());
  return std::unique_ptr<Streams>(std::move(streams));
}

std::unique_ptr<Streams> make_host_streams() { return std::make_unique<HostStreams>(); }

}  // namespace tutti
