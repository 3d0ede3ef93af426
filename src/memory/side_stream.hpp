// A stream of a device for words of our own. All communicators of the process share it, since a
// stream takes half a MiB of the device. What is on it waits for no other stream.
#pragma once

#include <memory>

#include "drivers/cuda.hpp"

namespace tutti {

class SideStream {
 public:
  // `device` is the current one.
  static Result<std::shared_ptr<SideStream>> of(CudaDriver& cuda, int device);

  SideStream(CudaDriver& cuda, int device, Stream stream)
      : cuda_(cuda), device_(device), stream_(stream) {}
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;
  ~SideStream();

  Stream get() const { return stream_; }

  // Something may still use it: nobody else gets it, and it is never destroyed.
  static void leave_behind(std::shared_ptr<SideStream> side);

 private:
  CudaDriver& cuda_;
  const int device_;
  const Stream stream_;
};

}  // namespace tutti
