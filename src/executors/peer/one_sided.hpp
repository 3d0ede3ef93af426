// Enqueues operations on one peer's memory, and signals.
#pragma once

#include <map>
#include <mutex>

#include "device/one_sided.hpp"
#include "drivers/cuda.hpp"
#include "tutti/one_sided.hpp"

namespace tutti {

// __global__ void(OneSidedWork); null in builds without CUDA.
const void* one_sided_kernel();

// What moves so many bytes where nobody says how: never kAuto.
Mover usual_mover(OneSided kind, std::size_t bytes);

// Of one rank. They are ordered by their streams alone, and not with its collectives. From any
// thread.
class CudaOneSided {
 public:
  explicit CudaOneSided(CudaDriver& cuda) : cuda_(cuda) {}
  ~CudaOneSided();
  CudaOneSided(const CudaOneSided&) = delete;
  CudaOneSided& operator=(const CudaOneSided&) = delete;

  // Loads the kernel on the current device.
  Status load();

  // Returns once enqueued, on the current device.
  Status run(const OneSidedWork& work, Mover mover, Stream stream);

  // Whether all that was enqueued and not captured has ended.
  bool caught_up();

 private:
  Status launch(const OneSidedWork& work, int blocks, Stream stream);
  Status note_end(Stream stream);
  Result<CudaEvent> event_for_another_stream();

  CudaDriver& cuda_;
  std::mutex mutex_;
  std::map<Stream, CudaEvent> ends_;  // behind the latest on each stream
};

}  // namespace tutti
