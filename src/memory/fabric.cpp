#include "memory/fabric.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "base/try.hpp"

namespace tutti {
namespace {

// Of this process, for as long as it lives.
class Refusals {
 public:
  using Gpu = std::pair<const CudaDriver*, std::array<std::uint8_t, 16>>;

  static Refusals& process() {
    static Refusals refusals;
    return refusals;
  }
  Status find(const Gpu& gpu) const {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(gpu);
    return known == known_.end() ? Status::ok() : known->second;
  }
  void remember(const Gpu& gpu, const Status& refusal) {
    const std::lock_guard lock(mutex_);
    known_[gpu] = refusal;
  }

 private:
  mutable std::mutex mutex_;
  std::map<Gpu, Status> known_;
};

}  // namespace

Result<CudaAllocation> create_fabric_allocation(CudaDriver& cuda, int device, std::size_t bytes) {
  TUTTI_ASSIGN(const CudaDeviceProperties properties, cuda.properties(device));
  if (!properties.fabric_handles)
    return Status(StatusCode::kUnsupported, fmt::format("{} has none", properties.name));
  const Refusals::Gpu gpu{&cuda, properties.uuid};
  TUTTI_TRY(Refusals::process().find(gpu));
  auto made = cuda.create_fabric_allocation(device, bytes);
  if (made.status().code() == StatusCode::kUnsupported)
    Refusals::process().remember(gpu, made.status());
  return made;
}

}  // namespace tutti
