// The fake's allocations that go from process to process as descriptors or fabric handles.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstring>

#include "base/try.hpp"
#include "fakes/fake_cuda.hpp"

namespace tutti {
Result<std::size_t> FakeCuda::allocation_granularity(int device) {
  TUTTI_TRY(enter("allocation_granularity"));
  TUTTI_TRY(check_device(device));
  return world_->granularity;
}

// The lowest number that is free, so that a number which is used again is no rarity in tests.
Result<CudaAllocation> FakeCuda::add_handle(std::shared_ptr<Pages> pages) {
  const std::lock_guard lock(mutex_);
  CudaAllocation allocation = 1;
  while (handles_.contains(allocation)) ++allocation;
  handles_[allocation].pages = std::move(pages);
  return allocation;
}

void FakeCuda::forget_if_unused(CudaAllocation allocation) {
  const auto handle = handles_.find(allocation);
  if (handle->second.references == 0 && handle->second.mappings == 0) handles_.erase(handle);
}

Result<std::shared_ptr<FakeCuda::Pages>> FakeCuda::make_shareable(int device, std::size_t bytes) {
  TUTTI_TRY(check_device(device));
  if (bytes == 0 || bytes % world_->granularity != 0)
    return refused(fmt::format("{} bytes are no multiple of the granularity", bytes));
  return world_->make_pages(visible_[device], bytes);
}

Result<CudaAllocation> FakeCuda::create_allocation(int device, std::size_t bytes) {
  TUTTI_TRY(enter("create_allocation"));
  TUTTI_ASSIGN(auto pages, make_shareable(device, bytes));
  return add_handle(std::move(pages));
}

Result<CudaAllocation> FakeCuda::create_private_allocation(int device, std::size_t bytes) {
  TUTTI_ASSIGN(const CudaAllocation allocation, create_allocation(device, bytes));
  const std::lock_guard lock(mutex_);
  handles_[allocation].pages->exportable = false;
  return allocation;
}

Status FakeCuda::release_allocation(CudaAllocation allocation) {
  TUTTI_TRY(enter("release_allocation"));
  const std::lock_guard lock(mutex_);
  const auto handle = handles_.find(allocation);
  if (handle == handles_.end() || handle->second.references == 0)
    return refused("release_allocation: not a handle");
  --handle->second.references;
  forget_if_unused(allocation);
  return Status::ok();
}

Result<Fd> FakeCuda::export_allocation(CudaAllocation allocation) {
  TUTTI_TRY(enter("export_allocation"));
  const std::lock_guard lock(mutex_);
  const auto handle = handles_.find(allocation);
  if (handle == handles_.end()) return refused("export_allocation: not a handle");
  const Pages& pages = *handle->second.pages;
  if (!pages.exportable) return refused("the allocation was made without a shareable handle type");
  return Fd(::fcntl(pages.memory.get(), F_DUPFD_CLOEXEC, 0));
}

Result<CudaAllocation> FakeCuda::import_allocation(int fd) {
  TUTTI_TRY(enter("import_allocation"));
  TUTTI_ASSIGN(auto pages, world_->pages_of(fd));
  return add_handle(std::move(pages));
}

Result<CudaAllocation> FakeCuda::create_fabric_allocation(int device, std::size_t bytes) {
  TUTTI_TRY(enter("create_fabric_allocation"));
  TUTTI_TRY(check_device(device));
  const int gpu = visible_[device];
  if (!world_->devices[gpu].fabric_handles || world_->without_fabric.contains(gpu))
    return Status(StatusCode::kUnsupported, fmt::format("GPU {} permits no fabric handles", gpu));
  TUTTI_ASSIGN(auto pages, make_shareable(device, bytes));
  pages->exportable = false;
  pages->fabric = true;
  return add_handle(std::move(pages));
}

Result<CudaFabricHandle> FakeCuda::export_fabric(CudaAllocation allocation) {
  TUTTI_TRY(enter("export_fabric"));
  const std::lock_guard lock(mutex_);
  const auto handle = handles_.find(allocation);
  if (handle == handles_.end()) return refused("export_fabric: not a handle");
  if (!handle->second.pages->fabric)
    return refused("the allocation was made without fabric handles");
  const std::uint64_t number = world_->next_number();
  const std::lock_guard world_lock(world_->mutex_);
  world_->fabric_[number] = handle->second.pages;
  CudaFabricHandle exported;
  std::memcpy(exported.bytes.data(), &number, sizeof number);
  return exported;
}

Result<CudaAllocation> FakeCuda::import_fabric(const CudaFabricHandle& handle) {
  TUTTI_TRY(enter("import_fabric"));
  std::uint64_t number = 0;
  std::memcpy(&number, handle.bytes.data(), sizeof number);
  std::shared_ptr<Pages> pages;
  {
    const std::lock_guard lock(world_->mutex_);
    pages = world_->fabric_[number].lock();
  }
  if (pages == nullptr) return refused("import_fabric: the handle leads nowhere");
  return add_handle(std::move(pages));
}

Result<CudaAddress> FakeCuda::map_allocation(CudaAllocation allocation, std::size_t bytes,
                                             const std::vector<int>& devices) {
  TUTTI_TRY(enter("map_allocation"));
  const std::lock_guard lock(mutex_);
  const auto handle = handles_.find(allocation);
  if (handle == handles_.end()) return refused("map_allocation: not a handle");
  if (bytes != handle->second.pages->bytes)
    return refused("map_allocation: not the allocation's size");
  TUTTI_TRY(check_reach(devices, *handle->second.pages));
  Region region;
  region.how = Region::How::kMapped;
  region.kind = CudaMemoryKind::kVirtual;
  region.device = local_device(handle->second.pages->device);
  region.bytes = bytes;
  region.pages = handle->second.pages;
  region.allocation = allocation;
  region.devices = devices;
  TUTTI_ASSIGN(const CudaAddress address, add_region(std::move(region)));
  ++handle->second.mappings;
  return address;
}

Status FakeCuda::unmap_allocation(CudaAddress address, std::size_t bytes) {
  TUTTI_TRY(enter("unmap_allocation"));
  const std::lock_guard lock(mutex_);
  const auto region = region_at(address, Region::How::kMapped);
  if (region == regions_.end() || region->second.bytes != bytes)
    return refused("unmap_allocation: not what map_allocation gave");
  ::munmap(address, bytes);
  const CudaAllocation allocation = region->second.allocation;
  regions_.erase(region);
  --handles_[allocation].mappings;
  forget_if_unused(allocation);
  return Status::ok();
}

Result<CudaAllocation> FakeCuda::retain_allocation(CudaAddress address) {
  TUTTI_TRY(enter("retain_allocation"));
  const std::lock_guard lock(mutex_);
  const auto region = region_of(address);
  if (region == regions_.end() || region->second.how != Region::How::kMapped)
    return refused("retain_allocation: not a mapped address");
  ++handles_[region->second.allocation].references;
  return region->second.allocation;
}

}  // namespace tutti
