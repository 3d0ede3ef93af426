#include "executors/copy_engine/copy_lanes.hpp"

#include <fmt/format.h>

#include "base/try.hpp"

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
  serve(device);
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
  if (capture.state == CudaCapture::State::kNone) {
    if (lanes_[0].stream == nullptr) TUTTI_TRY(complete(lanes_[0]));
    return &lanes_[0];
  }
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

}  // namespace tutti
