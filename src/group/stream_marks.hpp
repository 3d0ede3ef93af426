// Streams of the library's own beside a user's, and what orders them. On the host backend, where
// an operation has ended when it returns, all of it is empty and does nothing.
#pragma once

#include <cstddef>
#include <utility>

#include "tutti/types.hpp"

namespace tutti {

class CommunicatorImpl;
class CudaDriver;

// A stream of the communicator's device. It may outlive the communicator.
class OwnStream {
 public:
  static Result<OwnStream> create(const CommunicatorImpl& communicator);
  OwnStream() = default;
  OwnStream(OwnStream&& other) noexcept { *this = std::move(other); }
  OwnStream& operator=(OwnStream&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~OwnStream();

  Stream get() const { return stream_; }
  // Within the device's memory, in stream order; on the host at once.
  Status copy(void* to, const void* from, std::size_t bytes) const;

 private:
  CudaDriver* cuda_ = nullptr;
  int device_ = -1;
  Stream stream_ = nullptr;
};

// A place in a stream, for other streams to wait for. It may outlive the communicator.
class StreamMark {
 public:
  static Result<StreamMark> create(const CommunicatorImpl& communicator);
  StreamMark() = default;
  StreamMark(StreamMark&& other) noexcept { *this = std::move(other); }
  StreamMark& operator=(StreamMark&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    std::swap(device_, other.device_);
    std::swap(event_, other.event_);
    std::swap(set_, other.set_);
    return *this;
  }
  ~StreamMark();

  Result<bool> is_captured(Stream stream) const;
  // Behind what `stream` has been given so far, and nowhere else any more.
  Status set(Stream stream);
  void clear() { set_ = false; }
  // What `stream` is given from now on begins when it has come to the mark. None set: at once.
  Status hold(Stream stream) const;

 private:
  CudaDriver* cuda_ = nullptr;
  int device_ = -1;
  void* event_ = nullptr;
  bool set_ = false;
};

}  // namespace tutti
