// Where a rank's buffers live and how its work is waited for: host memory, or one GPU.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "support/patience.hpp"
#include "tutti/types.hpp"

namespace tutti {
class CudaDriver;
}

namespace tutti::test {

enum class MemoryKind : std::uint8_t {
  kOrdinary,  // malloc, cudaMalloc
  kVirtual,   // CUDA alone: an exportable VMM allocation
};

// Of one rank; used by that rank's thread. Everything throws where CUDA refuses.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::byte* allocate(std::size_t bytes, MemoryKind kind) = 0;  // 256-byte aligned
  virtual void free(std::byte* address) = 0;
  virtual void write(std::byte* to, const std::byte* from, std::size_t bytes) = 0;  // from the host
  virtual void read(std::byte* to, const std::byte* from, std::size_t bytes) = 0;   // to the host

  virtual Stream make_stream() = 0;
  virtual void destroy_stream(Stream stream) = 0;
  virtual bool finished(Stream stream) = 0;
  virtual CudaDriver* cuda() = 0;  // null on the host

  // Throws where the stream is not idle by then.
  void wait(Stream stream, std::chrono::seconds limit = kPatience);
};

// `ordinal`: the CUDA device; unused on the host.
std::unique_ptr<Device> make_device(Backend backend, int ordinal);

// Why this machine has fewer than `ranks` GPUs; empty if it has enough. Initialises CUDA: to be
// asked in a process of its own.
std::string why_no_gpus(int ranks);

class OwnedMemory {
 public:
  OwnedMemory(Device& device, std::size_t bytes, MemoryKind kind = MemoryKind::kOrdinary)
      : device_(&device), address_(device.allocate(bytes, kind)) {}
  OwnedMemory(OwnedMemory&& other) noexcept
      : device_(other.device_), address_(std::exchange(other.address_, nullptr)) {}
  OwnedMemory& operator=(OwnedMemory&&) = delete;
  ~OwnedMemory() {
    if (address_ != nullptr) device_->free(address_);
  }
  std::byte* get() const { return address_; }

 private:
  Device* device_;
  std::byte* address_;
};

class OwnedStream {
 public:
  explicit OwnedStream(Device& device) : device_(&device), stream_(device.make_stream()) {}
  OwnedStream(OwnedStream&& other) noexcept
      : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
  OwnedStream& operator=(OwnedStream&&) = delete;
  ~OwnedStream() {
    if (stream_ != nullptr) device_->destroy_stream(stream_);
  }
  Stream get() const { return stream_; }
  void wait() const { device_->wait(stream_); }

 private:
  Device* device_;
  Stream stream_;
};

}  // namespace tutti::test
