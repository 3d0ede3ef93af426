#include "memory/local_allocation.hpp"

#include <fcntl.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "base/system_error.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "drivers/cuda.hpp"
#include "drivers/shared_memory.hpp"
#include "memory/fabric.hpp"

namespace tutti {

// Of this process, by where they begin. One that ends leaves before it is unmapped.
class LocalAllocations {
 public:
  static LocalAllocations& process() {
    static LocalAllocations& allocations = *new LocalAllocations;  // outlives every thread
    return allocations;
  }

  void add(const LocalAllocation::Owned& allocation) {
    const std::lock_guard lock(mutex_);
    at_[allocation->address()] = {allocation->bytes(), allocation->driver_, allocation};
  }
  void remove(const std::byte* address) {
    const std::lock_guard lock(mutex_);
    at_.erase(address);
  }
  LocalAllocation::Owned find(const void* driver, const std::byte* address) {
    const std::lock_guard lock(mutex_);
    auto after = at_.upper_bound(address);
    if (after == at_.begin()) return nullptr;
    const auto& [begin, known] = *--after;
    const bool holds = static_cast<std::size_t>(address - begin) < known.bytes;
    return holds && known.driver == driver ? known.allocation.lock() : nullptr;
  }

 private:
  struct Known {
    std::size_t bytes = 0;
    const void* driver = nullptr;
    std::weak_ptr<LocalAllocation> allocation;
  };

  std::mutex mutex_;
  std::map<const std::byte*, Known> at_;
};

namespace {

LocalAllocation::Owned made_known(LocalAllocation::Owned allocation) {
  LocalAllocations::process().add(allocation);
  return allocation;
}

Result<CudaAllocation> create_exportable(CudaDriver& cuda, int device, std::size_t bytes,
                                         bool descriptors) {
  if (!descriptors) {
    auto made = create_fabric_allocation(cuda, device, bytes);
    if (made.status().code() != StatusCode::kUnsupported) return made;
  }
  return cuda.create_allocation(device, bytes);
}

}  // namespace

LocalAllocation::LocalAllocation(const void* driver, std::shared_ptr<Mapping> mapping,
                                 std::size_t bytes, Fd memory)
    : driver_(driver), mapping_(std::move(mapping)), bytes_(bytes), memory_(std::move(memory)) {}

LocalAllocation::~LocalAllocation() { LocalAllocations::process().remove(address()); }

Result<LocalAllocation::Owned> LocalAllocation::on_host(SharedMemoryDriver& shared_memory,
                                                        std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  bytes = round_up(bytes, kPage);
  TUTTI_ASSIGN(Fd memory, shared_memory.create(bytes));
  TUTTI_ASSIGN(std::byte* const address, shared_memory.map(memory.get(), bytes));
  auto mapping = std::make_shared<Mapping>(
      address, Mapping::Origin::kThisProcess,
      [&shared_memory, address, bytes] { shared_memory.unmap(address, bytes); });
  return made_known(std::make_shared<LocalAllocation>(&shared_memory, std::move(mapping), bytes,
                                                      std::move(memory)));
}

Result<LocalAllocation::Owned> LocalAllocation::on_gpu(CudaDriver& cuda, int device,
                                                       std::size_t bytes, bool descriptors) {
  TUTTI_ASSIGN(const std::size_t granularity, cuda.allocation_granularity(device));
  bytes = round_up(bytes, granularity);
  TUTTI_ASSIGN(const CudaAllocation allocation,
               create_exportable(cuda, device, bytes, descriptors));
  const auto mapped = cuda.map_allocation(allocation, bytes, {device});
  const Status released = cuda.release_allocation(allocation);  // the mapping holds it
  TUTTI_ASSIGN(const CudaAddress address, mapped);
  auto mapping =
      std::make_shared<Mapping>(address, Mapping::Origin::kThisProcess, [&cuda, address, bytes] {
        const Status closed = cuda.unmap_allocation(address, bytes);
        if (!closed.is_ok()) log(LogLevel::kWarn, "freeing local memory: {}", closed.to_string());
      });
  TUTTI_TRY(released);
  return made_known(std::make_shared<LocalAllocation>(&cuda, std::move(mapping), bytes, Fd()));
}

LocalAllocation::Owned LocalAllocation::find(const void* driver, const std::byte* address) {
  return LocalAllocations::process().find(driver, address);
}

Result<Fd> LocalAllocation::duplicate_descriptor() const {
  Fd copy(::fcntl(memory_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return system_failure("cannot share local memory", errno);
  return copy;
}

}  // namespace tutti
