#include "support/device.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <new>
#include <thread>

#include "base/knobs.hpp"
#include "base/units.hpp"
#include "drivers/cuda.hpp"
#include "support/check.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kAlignment = 256;

class HostDevice final : public Device {
 public:
  std::byte* allocate(std::size_t bytes, MemoryKind) override {
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}));
  }
  void free(std::byte* address) override {
    ::operator delete (address, std::align_val_t{kAlignment});
  }
  void write(std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void read(std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  Stream make_stream() override { return nullptr; }
  void destroy_stream(Stream) override {}
  bool finished(Stream) override { return true; }
  CudaDriver* cuda() override { return nullptr; }
};

class CudaDevice final : public Device {
 public:
  CudaDevice(CudaDriver& cuda, int ordinal) : cuda_(cuda), ordinal_(ordinal) {
    require_ok(cuda_.set_device(ordinal));
  }

  std::byte* allocate(std::size_t bytes, MemoryKind kind) override {
    if (kind == MemoryKind::kOrdinary) return take(cuda_.allocate(ordinal_, bytes));
    const std::size_t rounded = round_up(bytes, take(cuda_.allocation_granularity(ordinal_)));
    const CudaAllocation allocation = take(cuda_.create_allocation(ordinal_, rounded));
    const CudaAddress address = take(cuda_.map_allocation(allocation, rounded, {ordinal_}));
    virtual_.emplace(address, Virtual{allocation, rounded});
    return address;
  }

  void free(std::byte* address) override {
    const auto found = virtual_.find(address);
    if (found == virtual_.end()) {
      (void)cuda_.free(address);
      return;
    }
    (void)cuda_.unmap_allocation(address, found->second.bytes);
    (void)cuda_.release_allocation(found->second.allocation);
    virtual_.erase(found);
  }

  void write(std::byte* to, const std::byte* from, std::size_t bytes) override {
    require_ok(cuda_.copy(to, from, bytes));
  }
  void read(std::byte* to, const std::byte* from, std::size_t bytes) override {
    require_ok(cuda_.copy(to, from, bytes));
  }
  Stream make_stream() override { return take(cuda_.create_stream(ordinal_)); }
  void destroy_stream(Stream stream) override { (void)cuda_.destroy_stream(stream); }
  bool finished(Stream stream) override { return take(cuda_.stream_finished(stream)); }
  CudaDriver* cuda() override { return &cuda_; }

 private:
  struct Virtual {
    CudaAllocation allocation;
    std::size_t bytes;
  };
  CudaDriver& cuda_;
  int ordinal_;
  std::map<std::byte*, Virtual> virtual_;
};

}  // namespace

void Device::wait(Stream stream, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!finished(stream)) {
    if (std::chrono::steady_clock::now() >= end) {
      fail(fmt::format("the stream is still busy after {} s", limit.count()));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

std::unique_ptr<Device> make_device(Backend backend, int ordinal) {
  if (backend == Backend::kHost) return std::make_unique<HostDevice>();
  std::string why;
  CudaDriver* const cuda = real_cuda(&why);
  require(cuda != nullptr, why);
  return std::make_unique<CudaDevice>(*cuda, ordinal);
}

std::string why_no_gpus(int ranks) {
  std::string why;
  CudaDriver* const cuda = real_cuda(&why);
  if (cuda == nullptr) return why;
  const auto count = cuda->device_count();
  if (!count.is_ok()) return count.status().message();
  if (*count >= ranks || (*count > 0 && Knobs::process().flag("TUTTI_SHARE_GPUS"))) return {};
  return fmt::format("{} GPUs are needed, {} are visible", ranks, *count);
}

}  // namespace tutti::test
