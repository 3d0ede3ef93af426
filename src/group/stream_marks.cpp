#include "group/stream_marks.hpp"

#include <cstring>

#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "group/communicator_impl.hpp"
#include "memory/device_scope.hpp"

namespace tutti {

Result<OwnStream> OwnStream::create(const CommunicatorImpl& communicator) {
  OwnStream made;
  made.cuda_ = communicator.cuda();
  made.device_ = communicator.device();
  if (made.cuda_ == nullptr) return made;
  TUTTI_ASSIGN(made.stream_, made.cuda_->create_stream(made.device_));
  return made;
}

OwnStream::~OwnStream() {
  if (stream_ == nullptr) return;
  const DeviceScope scope(*cuda_, device_);
  (void)cuda_->destroy_stream(stream_);
}

Status OwnStream::copy(void* to, const void* from, std::size_t bytes) const {
  if (cuda_ == nullptr) {
    std::memcpy(to, from, bytes);
    return Status::ok();
  }
  const DeviceScope scope(*cuda_, device_);
  TUTTI_TRY(scope.status());
  return cuda_->copy_async(to, from, bytes, stream_);
}

Result<StreamMark> StreamMark::create(const CommunicatorImpl& communicator) {
  StreamMark made;
  made.cuda_ = communicator.cuda();
  made.device_ = communicator.device();
  if (made.cuda_ == nullptr) return made;
  const DeviceScope scope(*made.cuda_, made.device_);
  TUTTI_TRY(scope.status());
  TUTTI_ASSIGN(made.event_, made.cuda_->create_event(false));
  return made;
}

StreamMark::~StreamMark() {
  if (event_ == nullptr) return;
  const DeviceScope scope(*cuda_, device_);
  (void)cuda_->destroy_event(event_);
}

Result<bool> StreamMark::is_captured(Stream stream) const {
  if (cuda_ == nullptr) return false;
  TUTTI_ASSIGN(const CudaCapture capture, cuda_->capture_of(stream));
  return capture.state != CudaCapture::State::kNone;
}

Status StreamMark::set(Stream stream) {
  if (event_ == nullptr) return Status::ok();
  const DeviceScope scope(*cuda_, device_);
  TUTTI_TRY(scope.status());
  TUTTI_TRY(cuda_->record_event(event_, stream));
  set_ = true;
  return Status::ok();
}

Status StreamMark::hold(Stream stream) const {
  if (!set_) return Status::ok();
  const DeviceScope scope(*cuda_, device_);
  TUTTI_TRY(scope.status());
  return cuda_->wait_event(stream, event_);
}

}  // namespace tutti
