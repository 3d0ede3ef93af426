// The fake's devices, memory and handles; streams and graphs are in fake_cuda_stream.cpp.
#include "fakes/fake_cuda.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "base/try.hpp"

namespace tutti {
namespace {

constexpr std::string_view kGivingBack[] = {
    "release_allocation", "unmap_allocation", "ipc_close",     "free",
    "free_mapped_host",   "destroy_stream",   "destroy_event", "destroy_graph",
    "destroy_graph_exec", "unregister_host",
};

thread_local std::unordered_map<const FakeCuda*, int> current_devices;

Result<std::uint64_t> inode_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return refused("not an open descriptor");
  return static_cast<std::uint64_t>(info.st_ino);
}

// The device is in the memfd's name, for processes that did not see it made.
int device_by_name(int fd) {
  std::array<char, 64> name{};
  if (::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), name.data(), name.size() - 1) < 0)
    return -1;
  int device = -1;
  return std::sscanf(name.data(), "/memfd:tutti-fake-gpu-%d", &device) == 1 ? device : -1;
}

struct IpcContent {
  std::uint64_t number;
  const FakeCuda* exporter;
};

}  // namespace

// ---- The world

FakeCudaWorld::FakeCudaWorld(int count, std::size_t memory_bytes) : used_bytes_(count, 0) {
  static std::atomic<std::uint8_t> worlds{0};
  const std::uint8_t world = worlds++;
  for (int device = 0; device < count; ++device) {
    CudaDeviceProperties properties;
    properties.name = "Fake GPU";
    properties.pci_bus_id = fmt::format("0000:{:02x}:00.0", device + 1);
    properties.uuid = {0xfa, 0x4e, world, static_cast<std::uint8_t>(device)};
    properties.compute_major = 9;
    properties.multiprocessors = 132;
    properties.memory_bytes = memory_bytes;
    properties.l2_bytes = 50 * MiB;
    properties.posix_fd_handles = true;
    properties.stream_memory_operations = true;
    properties.orders_rdma_writes = true;
    devices.push_back(properties);
  }
}

FakeCudaWorld::Pages::~Pages() {
  if (world == nullptr) return;
  const std::lock_guard lock(world->mutex_);
  world->used_bytes_[device] -= bytes;
}

Result<std::shared_ptr<FakeCudaWorld::Pages>> FakeCudaWorld::make_pages(int device,
                                                                        std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > devices[device].memory_bytes - used_bytes_[device])
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("GPU {} is out of memory: {} bytes wanted", device, bytes));
  auto pages = std::make_shared<Pages>();
  pages->memory = Fd(::memfd_create(fmt::format("tutti-fake-gpu-{}", device).c_str(), MFD_CLOEXEC));
  if (!pages->memory.valid() || ::ftruncate(pages->memory.get(), static_cast<off_t>(bytes)) != 0)
    return Status(StatusCode::kResourceExhausted, "no memfd for the fake's memory");
  TUTTI_ASSIGN(const std::uint64_t inode, inode_of(pages->memory.get()));
  pages->world = this;
  pages->device = device;
  pages->bytes = bytes;
  used_bytes_[device] += bytes;
  pages_[inode] = pages;
  return pages;
}

Result<std::shared_ptr<FakeCudaWorld::Pages>> FakeCudaWorld::pages_of(int fd) {
  TUTTI_ASSIGN(const std::uint64_t inode, inode_of(fd));
  const std::lock_guard lock(mutex_);
  if (auto known = pages_[inode].lock()) return known;
  struct stat info {};
  const int device = device_by_name(fd);
  if (device < 0 || device >= static_cast<int>(devices.size()) || ::fstat(fd, &info) != 0)
    return refused("the descriptor is no allocation");
  auto pages = std::make_shared<Pages>();
  pages->device = device;
  pages->bytes = static_cast<std::size_t>(info.st_size);
  pages->memory = Fd(::dup(fd));
  pages_[inode] = pages;
  return pages;
}

std::uint64_t FakeCudaWorld::next_number() {
  const std::lock_guard lock(mutex_);
  return ++last_number_;
}

// ---- A process

FakeCuda::FakeCuda(std::shared_ptr<FakeCudaWorld> world, std::vector<int> visible)
    : world_(std::move(world)), visible_(std::move(visible)) {
  if (visible_.empty()) {
    visible_.resize(world_->devices.size());
    std::iota(visible_.begin(), visible_.end(), 0);
  }
}

FakeCuda::~FakeCuda() {
  for (const auto& [address, region] : regions_) ::munmap(address, region.bytes);
  for (const auto& [bytes, address] : free_addresses_) ::munmap(address, bytes);
}

void FakeCuda::fail(std::string_view method, int k, bool exhausted) {
  const std::lock_guard lock(mutex_);
  failure_ = {std::string(method), k, false, exhausted};
}

bool FakeCuda::has_failed() const {
  const std::lock_guard lock(mutex_);
  return failure_.happened;
}

int FakeCuda::calls(std::string_view method) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(method);
  return found == calls_.end() ? 0 : found->second;
}

FakeCudaOpen FakeCuda::open() const {
  const std::lock_guard lock(mutex_);
  FakeCudaOpen open;
  for (const auto& [address, region] : regions_) {
    if (region.how == Region::How::kAllocated) ++open.allocations;
    if (region.how == Region::How::kMapped) ++open.mappings;
    if (region.how == Region::How::kIpcOpened) open.ipc += region.openings;
  }
  for (const auto& [allocation, handle] : handles_) open.handles += handle.references;
  for (const auto& [address, times] : registered_) open.registered += times;
  open.streams = streams_.size();
  open.events = events_.size();
  open.graphs = graphs_.size();
  open.graph_execs = execs_.size();
  return open;
}

// Every method's first line. Takes and releases the lock.
Status FakeCuda::enter(std::string_view method) {
  const std::lock_guard lock(mutex_);
  ++calls_[std::string(method)];
  const bool gives_back =
      std::find(std::begin(kGivingBack), std::end(kGivingBack), method) != std::end(kGivingBack);
  const bool counts = failure_.method.empty() ? !gives_back : failure_.method == method;
  if (!counts || failure_.left < 0 || failure_.left-- > 0) return Status::ok();
  failure_.happened = true;
  const bool memory =
      method == "create_allocation" || method == "create_fabric_allocation" || method == "allocate";
  return {memory || failure_.exhausted ? StatusCode::kResourceExhausted : StatusCode::kCuda,
          fmt::format("{} fails as the test asks", method)};
}

Status FakeCuda::check_device(int device) const {
  if (device >= 0 && device < static_cast<int>(visible_.size())) return Status::ok();
  return refused(fmt::format("there is no device {}", device));
}

int FakeCuda::local_device(int world_device) const {
  const auto found = std::find(visible_.begin(), visible_.end(), world_device);
  return found == visible_.end() ? -1 : static_cast<int>(found - visible_.begin());
}

Result<int> FakeCuda::device_count() {
  TUTTI_TRY(enter("device_count"));
  return static_cast<int>(visible_.size());
}

Result<CudaDeviceProperties> FakeCuda::properties(int device) {
  TUTTI_TRY(enter("properties"));
  TUTTI_TRY(check_device(device));
  return world_->devices[visible_[device]];
}

Status FakeCuda::set_device(int device) {
  TUTTI_TRY(enter("set_device"));
  TUTTI_TRY(check_device(device));
  current_devices[this] = device;
  return Status::ok();
}

Result<int> FakeCuda::current_device() {
  TUTTI_TRY(enter("current_device"));
  return current_devices[this];
}

Result<bool> FakeCuda::can_access_peer(int device, int peer) {
  TUTTI_TRY(enter("can_access_peer"));
  TUTTI_TRY(check_device(device));
  TUTTI_TRY(check_device(peer));
  return device != peer &&
         !world_->without_peer_access.contains({visible_[device], visible_[peer]});
}

Status FakeCuda::enable_peer_access(int device, int peer) {
  TUTTI_TRY(enter("enable_peer_access"));
  TUTTI_TRY(check_device(device));
  TUTTI_TRY(check_device(peer));
  if (device == peer || world_->without_peer_access.contains({visible_[device], visible_[peer]}))
    return refused(fmt::format("device {} cannot access device {}", device, peer));
  const std::lock_guard lock(mutex_);
  peer_access_.insert({device, peer});
  return Status::ok();
}

// ---- Addresses

FakeCuda::Regions::const_iterator FakeCuda::region_of(const void* address) const {
  auto* const at = static_cast<CudaAddress>(const_cast<void*>(address));
  auto after = regions_.upper_bound(at);
  if (after == regions_.begin()) return regions_.end();
  const auto region = std::prev(after);
  return at < region->first + region->second.bytes ? region : regions_.end();
}

FakeCuda::Regions::iterator FakeCuda::region_at(CudaAddress base, Region::How how) {
  const auto found = regions_.find(base);
  return found != regions_.end() && found->second.how == how ? found : regions_.end();
}

int FakeCuda::world_device(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto region = region_of(address);
  if (region == regions_.end() || region->second.kind == CudaMemoryKind::kHost) return -1;
  return region->second.pages->device;
}

// Addresses for memory of VMM's, which begins at a multiple of the granularity; null where there
// are none.
void* FakeCuda::reserve(std::size_t bytes, std::size_t granularity) {
  constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const room = ::mmap(nullptr, bytes + granularity, PROT_NONE, kReserved, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(room);
  const std::size_t before = granularity - reinterpret_cast<std::uintptr_t>(first) % granularity;
  ::munmap(first, before);
  if (before < granularity) ::munmap(first + before + bytes, granularity - before);
  return first + before;
}

// Requires the lock. Maps region.pages.
Result<CudaAddress> FakeCuda::add_region(Region region) {
  void* wanted = nullptr;
  int flags = MAP_SHARED;
  auto again = free_addresses_.end();
  if (region.how == Region::How::kAllocated) again = free_addresses_.find(region.bytes);
  if (again != free_addresses_.end()) wanted = again->second;
  if (region.how == Region::How::kMapped) wanted = reserve(region.bytes, world_->granularity);
  if (wanted != nullptr) flags |= MAP_FIXED;
  void* const address =
      ::mmap(wanted, region.bytes, PROT_READ | PROT_WRITE, flags, region.pages->memory.get(), 0);
  if (address == MAP_FAILED) return Status(StatusCode::kResourceExhausted, "no address space");
  if (again != free_addresses_.end()) free_addresses_.erase(again);
  region.buffer_id = world_->next_number();
  const auto base = static_cast<CudaAddress>(address);
  regions_.emplace(base, std::move(region));
  return base;
}

bool FakeCuda::accessible(int device, const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto found = region_of(address);
  if (found == regions_.end()) return false;
  const Region& region = found->second;
  if (region.kind == CudaMemoryKind::kHost || region.kind == CudaMemoryKind::kManaged) return true;
  if (region.how == Region::How::kAllocated)
    return region.device == device || peer_access_.contains({device, region.device});
  return std::find(region.devices.begin(), region.devices.end(), device) != region.devices.end();
}

Result<CudaPointer> FakeCuda::pointer(const void* address) {
  TUTTI_TRY(enter("pointer"));
  const std::lock_guard lock(mutex_);
  const auto found = region_of(address);
  if (found == regions_.end()) return CudaPointer{};
  const Region& region = found->second;
  return CudaPointer{region.kind, region.device, found->first, region.bytes, region.buffer_id};
}

Result<CudaAddress> FakeCuda::allocate_kind(CudaMemoryKind kind, int device, std::size_t bytes) {
  TUTTI_TRY(check_device(device));
  if (bytes == 0) return refused("an allocation of 0 bytes");
  TUTTI_ASSIGN(auto pages, world_->make_pages(visible_[device], bytes));
  const std::lock_guard lock(mutex_);
  Region region;
  region.kind = kind;
  region.device = device;
  region.bytes = bytes;
  region.pages = std::move(pages);
  return add_region(std::move(region));
}

Result<CudaAddress> FakeCuda::allocate(int device, std::size_t bytes) {
  TUTTI_TRY(enter("allocate"));
  return allocate_kind(CudaMemoryKind::kMalloc, device, bytes);
}

Status FakeCuda::free(CudaAddress address) {
  TUTTI_TRY(enter("free"));
  if (address == nullptr) return Status::ok();
  const std::lock_guard lock(mutex_);
  const auto region = region_at(address, Region::How::kAllocated);
  if (region == regions_.end()) return refused("free: not an address that allocate gave");
  const std::size_t bytes = region->second.bytes;
  // Kept reserved and unreadable: a use after this is a fault.
  constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  if (::mmap(address, bytes, PROT_NONE, kReserved, -1, 0) == MAP_FAILED)
    return refused("free: the address cannot be kept");
  free_addresses_.emplace(bytes, address);
  regions_.erase(region);
  return Status::ok();
}

Result<std::byte*> FakeCuda::allocate_mapped_host(std::size_t bytes) {
  TUTTI_TRY(enter("allocate_mapped_host"));
  return allocate_kind(CudaMemoryKind::kHost, 0, bytes);
}

Status FakeCuda::free_mapped_host(std::byte* address) {
  TUTTI_TRY(enter("free_mapped_host"));
  return free(address);
}

Result<std::byte*> FakeCuda::register_host(std::byte* address, std::size_t bytes) {
  TUTTI_TRY(enter("register_host"));
  if (bytes == 0) return refused("register_host: 0 bytes");
  const std::lock_guard lock(mutex_);
  ++registered_[address];
  return address;
}

Status FakeCuda::unregister_host(std::byte* address) {
  TUTTI_TRY(enter("unregister_host"));
  const std::lock_guard lock(mutex_);
  const auto found = registered_.find(address);
  if (found == registered_.end()) return refused("unregister_host: not registered");
  if (--found->second == 0) registered_.erase(found);
  return Status::ok();
}

// ---- cudaIpc

Result<CudaIpcHandle> FakeCuda::ipc_handle(CudaAddress base) {
  TUTTI_TRY(enter("ipc_handle"));
  const std::lock_guard lock(mutex_);
  const auto region = region_at(base, Region::How::kAllocated);
  if (region == regions_.end() || region->second.kind != CudaMemoryKind::kMalloc)
    return refused("ipc_handle: not the base of a cudaMalloc allocation");
  const IpcContent content{region->second.buffer_id, this};
  const std::lock_guard world_lock(world_->mutex_);
  world_->ipc_[content.number] = region->second.pages;
  CudaIpcHandle handle;
  std::memcpy(handle.bytes.data(), &content, sizeof content);
  return handle;
}

Result<CudaAddress> FakeCuda::ipc_open(int device, const CudaIpcHandle& handle) {
  TUTTI_TRY(enter("ipc_open"));
  TUTTI_TRY(check_device(device));
  IpcContent content{};
  std::memcpy(&content, handle.bytes.data(), sizeof content);
  if (content.exporter == this) return refused("ipc_open in the process that made the handle");
  std::shared_ptr<Pages> pages;
  {
    const std::lock_guard lock(world_->mutex_);
    pages = world_->ipc_[content.number].lock();
  }
  if (pages == nullptr) return refused("ipc_open: the memory has been freed");
  TUTTI_TRY(check_reach({device}, *pages));
  const std::lock_guard lock(mutex_);
  for (auto& [address, region] : regions_) {
    if (region.how != Region::How::kIpcOpened || region.pages != pages) continue;
    if (region.devices.front() != device) continue;
    ++region.openings;
    return address;
  }
  Region region;
  region.how = Region::How::kIpcOpened;
  region.kind = CudaMemoryKind::kMalloc;
  region.device = local_device(pages->device);
  region.bytes = pages->bytes;
  region.devices = {device};
  region.pages = std::move(pages);
  return add_region(std::move(region));
}

Status FakeCuda::ipc_close(CudaAddress address) {
  TUTTI_TRY(enter("ipc_close"));
  const std::lock_guard lock(mutex_);
  const auto region = region_at(address, Region::How::kIpcOpened);
  if (region == regions_.end()) return refused("ipc_close: not an address that ipc_open gave");
  if (--region->second.openings > 0) return Status::ok();
  ::munmap(address, region->second.bytes);
  regions_.erase(region);
  return Status::ok();
}

Status FakeCuda::check_reach(const std::vector<int>& devices, const Pages& pages) const {
  if (devices.empty()) return refused("a mapping for no device");
  for (const int device : devices) {
    TUTTI_TRY(check_device(device));
    if (world_->without_peer_access.contains({visible_[device], pages.device}))
      return refused(fmt::format("device {} has no peer access to the memory", device));
  }
  return Status::ok();
}

}  // namespace tutti
