// Symmetric memory of GPUs. The heap's own is a VMM allocation, and a user's is taken as it is:
//
//   where it comes from      ranks of this process            other processes
//   the heap, a user's VMM   the mapping, for all devices     descriptor, imported and mapped
//   cudaMalloc               the address, with peer access    cudaIpc of the allocation, and offset
//   anything else            staged                           staged
//
// Where the group cannot pass descriptors (several hosts of one NVLink fabric, containers apart), a
// fabric handle takes the descriptor's place, and cudaMalloc is staged.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/log.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "memory/device_scope.hpp"
#include "memory/fabric.hpp"
#include "memory/heap_backend.hpp"
#include "memory/local_allocation.hpp"
#include "memory/shared_blocks.hpp"
#include "memory/side_stream.hpp"

namespace tutti {
namespace {

using Handle = MappingRegistry::Handle;
using Space = MappingKey::Space;
using Origin = Mapping::Origin;

// One reference to a VMM allocation.
class AllocationReference {
 public:
  AllocationReference(CudaDriver& cuda, CudaAllocation allocation)
      : cuda_(cuda), allocation_(allocation) {}
  ~AllocationReference() { static_cast<void>(cuda_.release_allocation(allocation_)); }
  AllocationReference(const AllocationReference&) = delete;
  AllocationReference& operator=(const AllocationReference&) = delete;
  CudaAllocation get() const { return allocation_; }

 private:
  CudaDriver& cuda_;
  CudaAllocation allocation_;
};

// What to do at the end of a mapping cannot fail for a reason that anyone could act on.
void log_failure(const Status& status) {
  if (!status.is_ok()) log(LogLevel::kWarn, "closing GPU memory: {}", status.to_string());
}

// Where something has run out, a later call may find room: that is no reason to stage for ever.
Result<LocalPart> staged_because(const Status& why) {
  if (why.code() == StatusCode::kResourceExhausted) return why;
  LocalPart part;
  part.offer = Offer::staged(why.message());
  return part;
}

class CudaBackend final : public HeapBackend {
 public:
  CudaBackend(CudaDriver& cuda, int device, GroupPlaces places)
      : cuda_(cuda), device_(device), places_(std::move(places)) {}

  int device() const override { return device_; }
  Result<std::size_t> granularity() override { return cuda_.allocation_granularity(device_); }
  Result<LocalPart> create(std::size_t bytes, const std::vector<int>& devices,
                           Deadline deadline) override;
  Result<LocalPart> create_small(std::size_t bytes, const std::vector<int>& devices,
                                 Deadline deadline) override;
  Status zero(std::byte* address, std::size_t bytes, Deadline deadline) override;
  Result<LocalPart> offer(std::byte* address, std::size_t bytes) override;
  Result<Fd> export_part(LocalPart& part) override;
  Result<OpenedPart> open(const PeerOffer& peer) override;
  Status check_alive(const SymmetricSegment& segment) const override;

 private:
  MappingKey key_of(std::size_t rank, Space space, std::uint64_t identity) const {
    MappingKey key;
    key.driver = &cuda_;
    key.process_token = places_.process_tokens[rank];
    key.space = space;
    key.identity = identity;
    return key;
  }
  Result<CudaAllocation> create_allocation(std::size_t bytes);
  std::string why_staged(const CudaPointer& pointer) const;
  Result<LocalPart> offer_malloc(const CudaPointer& pointer);
  Result<LocalPart> offer_virtual(const CudaPointer& pointer);
  Result<Handle> retain(const CudaPointer& pointer);
  Result<Handle> map(CudaAllocation allocation, std::size_t bytes, const std::vector<int>& devices,
                     Origin origin);

  Result<OpenedPart> open_malloc(const PeerOffer& peer);
  Result<OpenedPart> open_mapped(const PeerOffer& peer);
  Result<CudaAllocation> import(const PeerOffer& peer);
  Result<Handle> map_peer(const PeerOffer& peer);

  CudaDriver& cuda_;
  const int device_;
  const GroupPlaces places_;
  std::shared_ptr<SideStream> side_;  // since the first zero()
};

// ---- The heap's own memory

Result<Handle> CudaBackend::map(CudaAllocation allocation, std::size_t bytes,
                                const std::vector<int>& devices, Origin origin) {
  TUTTI_ASSIGN(const CudaAddress address, cuda_.map_allocation(allocation, bytes, devices));
  return std::make_shared<Mapping>(address, origin, [&cuda = cuda_, address, bytes] {
    log_failure(cuda.unmap_allocation(address, bytes));
  });
}

Result<CudaAllocation> CudaBackend::create_allocation(std::size_t bytes) {
  if (places_.descriptors) return cuda_.create_allocation(device_, bytes);
  auto made = create_fabric_allocation(cuda_, device_, bytes);
  if (made.status().code() != StatusCode::kUnsupported) return made;
  return Status(StatusCode::kUnavailable,
                fmt::format("the group can pass no descriptors (it spans hosts, or containers that "
                            "share no TUTTI_RUNTIME_DIR), and no fabric handles: {}",
                            made.status().message()));
}

Result<LocalPart> CudaBackend::create(std::size_t bytes, const std::vector<int>& devices,
                                      Deadline deadline) {
  TUTTI_ASSIGN(const CudaAllocation allocation, create_allocation(bytes));
  const AllocationReference reference(cuda_, allocation);
  LocalPart part;
  TUTTI_ASSIGN(part.mapping, map(allocation, bytes, devices, Origin::kThisProcess));
  TUTTI_TRY(zero(part.mapping->address(), bytes, deadline));
  part.offer.how = Offer::How::kOwned;
  part.offer.device = device_;
  part.offer.identity = part.mapping->number();
  part.offer.address = reinterpret_cast<std::uint64_t>(part.mapping->address());
  part.offer.allocation_bytes = bytes;
  MappingRegistry::process().publish(key_of(places_.rank, Space::kOwned, part.offer.identity),
                                     part.mapping);
  return part;
}

// Fabric handles are for few, large allocations.
Result<LocalPart> CudaBackend::create_small(std::size_t bytes, const std::vector<int>& devices,
                                            Deadline deadline) {
  TUTTI_ASSIGN(const std::size_t block_bytes, granularity());
  if (!places_.descriptors || bytes > block_bytes / 2) {
    return HeapBackend::create_small(bytes, devices, deadline);
  }
  TUTTI_ASSIGN(const SharedBlocks::Piece piece,
               SharedBlocks::process().take(
                   {&cuda_, device_, devices}, bytes, block_bytes, [&]() -> Result<Handle> {
                     TUTTI_ASSIGN(const LocalPart block, create(block_bytes, devices, deadline));
                     return block.mapping;
                   }));
  LocalPart part;
  part.mapping = piece.block;
  part.offer.how = Offer::How::kOwned;
  part.offer.device = device_;
  part.offer.identity = piece.block->number();
  part.offer.address = reinterpret_cast<std::uint64_t>(piece.block->address() + piece.offset);
  part.offer.offset = piece.offset;
  part.offer.allocation_bytes = block_bytes;
  return part;
}

// Not synchronize(): behind kernels that spin on a lost peer it would not end.
Status CudaBackend::zero(std::byte* address, std::size_t bytes, Deadline deadline) {
  const DeviceScope scope(cuda_, device_);
  TUTTI_TRY(scope.status());
  if (side_ == nullptr) {
    TUTTI_ASSIGN(side_, SideStream::of(cuda_, device_));
  }
  TUTTI_TRY(cuda_.set_async(address, 0, bytes, side_->get()));
  while (true) {
    TUTTI_ASSIGN(const bool finished, cuda_.stream_finished(side_->get()));
    if (finished) return Status::ok();
    if (deadline.passed())
      return {StatusCode::kTimeout,
              fmt::format("GPU {} did not zero {} bytes in time: other work keeps it busy", device_,
                          bytes)};
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

// ---- Memory that the user has

std::string CudaBackend::why_staged(const CudaPointer& pointer) const {
  switch (pointer.kind) {
    case CudaMemoryKind::kMalloc:
    case CudaMemoryKind::kVirtual:
      if (pointer.device == device_) return {};
      return fmt::format("the memory is on GPU {}, but this rank uses GPU {}", pointer.device,
                         device_);
    case CudaMemoryKind::kPool:
      return "memory of cudaMallocAsync cannot be mapped by peers; use cudaMalloc or symmetric "
             "memory to avoid the copies";
    case CudaMemoryKind::kManaged:
      return "managed memory cannot be mapped by peers; use cudaMalloc or symmetric memory to "
             "avoid the copies";
    case CudaMemoryKind::kHost:
      return "pinned host memory is not on a GPU; use cudaMalloc or symmetric memory to avoid the "
             "copies";
    case CudaMemoryKind::kUnknown:
      break;
  }
  return "the memory is not known to CUDA; use cudaMalloc or symmetric memory to avoid the copies";
}

Result<LocalPart> CudaBackend::offer(std::byte* address, std::size_t bytes) {
  if (address == nullptr)
    return Status(StatusCode::kInvalidArgument, "a null pointer cannot be registered");
  TUTTI_ASSIGN(const CudaPointer pointer, cuda_.pointer(address));
  LocalPart part;
  part.offer = Offer::staged(why_staged(pointer));
  if (!part.offer.reason.empty()) return part;
  const auto offset = static_cast<std::size_t>(address - pointer.base);
  const bool inside = bytes <= pointer.bytes && offset <= pointer.bytes - bytes;
  if (!inside && pointer.kind == CudaMemoryKind::kVirtual) {
    part.offer.reason = fmt::format(
        "the range of {} bytes spans several VMM allocations (the first ends after {}); register "
        "each by itself to avoid the copies",
        bytes, pointer.bytes - offset);
    return part;
  }
  if (!inside)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} bytes were given, but the allocation ends after {}", bytes,
                              pointer.bytes - offset));
  const bool is_malloc = pointer.kind == CudaMemoryKind::kMalloc;
  TUTTI_ASSIGN(part, is_malloc ? offer_malloc(pointer) : offer_virtual(pointer));
  part.offer.device = device_;
  part.offer.address = reinterpret_cast<std::uint64_t>(address);
  part.offer.offset = offset;
  part.offer.allocation_bytes = pointer.bytes;
  part.buffer_id = pointer.buffer_id;
  return part;
}

Result<LocalPart> CudaBackend::offer_malloc(const CudaPointer& pointer) {
  LocalPart part;
  if (!places_.descriptors) {
    part.offer = Offer::staged(
        "memory of cudaMalloc cannot be mapped from other hosts and containers; use symmetric "
        "memory to avoid the copies");
    return part;
  }
  if (!places_.one_process) {
    const auto handle = cuda_.ipc_handle(pointer.base);
    if (!handle.is_ok()) return staged_because(handle.status());
    part.offer.handle = handle->bytes;
  }
  part.offer.how = Offer::How::kMalloc;
  part.offer.identity = pointer.buffer_id;
  return part;
}

Result<LocalPart> CudaBackend::offer_virtual(const CudaPointer& pointer) {
  LocalPart part;
  auto retained = retain(pointer);
  if (!retained.is_ok()) return staged_because(retained.status());
  part.mapping = *std::move(retained);
  part.offer.how = Offer::How::kVirtual;
  part.offer.identity = part.mapping->number();
  return part;
}

// A reference that is held while the allocation is registered, so that its number means this
// allocation and no later one at the same address. Local memory is held with its mapping.
Result<Handle> CudaBackend::retain(const CudaPointer& pointer) {
  TUTTI_ASSIGN(const CudaAllocation allocation, cuda_.retain_allocation(pointer.base));
  const auto local = LocalAllocation::find(&cuda_, pointer.base);  // null where the user made it
  bool held = false;
  auto mapping = MappingRegistry::process().find_or_open(
      key_of(places_.rank, Space::kRetained, allocation), [&]() -> Result<Handle> {
        held = true;
        return std::make_shared<Mapping>(pointer.base, Origin::kThisProcess,
                                         [&cuda = cuda_, allocation, local] {
                                           log_failure(cuda.release_allocation(allocation));
                                         });
      });
  if (!held) log_failure(cuda_.release_allocation(allocation));
  return mapping;
}

Result<Fd> CudaBackend::export_part(LocalPart& part) {
  if (part.mapping == nullptr) return Fd();
  TUTTI_ASSIGN(const CudaAllocation allocation, cuda_.retain_allocation(part.mapping->address()));
  const AllocationReference reference(cuda_, allocation);
  if (places_.descriptors) return cuda_.export_allocation(allocation);
  TUTTI_ASSIGN(const CudaFabricHandle handle, cuda_.export_fabric(allocation));
  part.offer.handle = handle.bytes;
  return Fd();
}

// ---- Memory of peers

Result<OpenedPart> CudaBackend::open(const PeerOffer& peer) {
  if (peer.offer.how == Offer::How::kMalloc) return open_malloc(peer);
  return open_mapped(peer);
}

Result<OpenedPart> CudaBackend::open_malloc(const PeerOffer& peer) {
  const Offer& offer = peer.offer;
  if (places_.same_process(peer.rank)) {
    if (offer.device != device_) TUTTI_TRY(cuda_.enable_peer_access(device_, offer.device));
    return OpenedPart{nullptr, reinterpret_cast<std::byte*>(offer.address)};
  }
  MappingKey key = key_of(peer.rank, Space::kMalloc, offer.identity);
  key.handle = offer.handle;
  key.devices = {device_};
  OpenedPart opened;
  TUTTI_ASSIGN(
      opened.mapping, MappingRegistry::process().find_or_open(key, [&]() -> Result<Handle> {
        TUTTI_ASSIGN(const CudaAddress base, cuda_.ipc_open(device_, CudaIpcHandle{offer.handle}));
        return std::make_shared<Mapping>(base, Origin::kPeerProcess, [&cuda = cuda_, base] {
          log_failure(cuda.ipc_close(base));
        });
      }));
  opened.at = opened.mapping->address() + offer.offset;
  return opened;
}

Result<OpenedPart> CudaBackend::open_mapped(const PeerOffer& peer) {
  auto& registry = MappingRegistry::process();
  const bool owned = peer.offer.how == Offer::How::kOwned;
  MappingKey key = key_of(peer.rank, owned ? Space::kOwned : Space::kVirtual, peer.offer.identity);
  OpenedPart opened;
  if (owned && places_.same_process(peer.rank)) {
    opened.mapping = registry.find(key);
    if (opened.mapping == nullptr)
      return Status(StatusCode::kPeerFailed, "it is gone: its rank gave up");
  } else {
    key.devices = peer.devices;
    TUTTI_ASSIGN(opened.mapping, registry.find_or_open(key, [&] { return map_peer(peer); }));
  }
  opened.at = opened.mapping->address() + peer.offer.offset;
  return opened;
}

Result<CudaAllocation> CudaBackend::import(const PeerOffer& peer) {
  if (places_.same_process(peer.rank))
    return cuda_.retain_allocation(reinterpret_cast<CudaAddress>(peer.offer.address));
  if (places_.descriptors) return cuda_.import_allocation(peer.descriptor);
  return cuda_.import_fabric(CudaFabricHandle{peer.offer.handle});
}

// A user's VMM mapping serves the devices that the user gave it to; peers therefore map the
// allocation again, in the same process too.
Result<Handle> CudaBackend::map_peer(const PeerOffer& peer) {
  TUTTI_ASSIGN(const CudaAllocation allocation, import(peer));
  const AllocationReference reference(cuda_, allocation);
  return map(allocation, peer.offer.allocation_bytes, peer.devices,
             places_.same_process(peer.rank) ? Origin::kThisProcess : Origin::kPeerProcess);
}

Status CudaBackend::check_alive(const SymmetricSegment& segment) const {
  if (segment.buffer_id == 0) return Status::ok();
  TUTTI_ASSIGN(const CudaPointer pointer, cuda_.pointer(segment.local));
  if (pointer.buffer_id == segment.buffer_id) return Status::ok();
  return {StatusCode::kInvalidArgument,
          fmt::format("registered memory at {} ({} bytes) has been freed{}: destroy its "
                      "registration before freeing memory, and register the new memory",
                      static_cast<const void*>(segment.local), segment.bytes,
                      pointer.kind == CudaMemoryKind::kUnknown ? "" : " and given out again")};
}

}  // namespace

Result<std::unique_ptr<SymmetricHeap>> make_cuda_heap(Bootstrap& bootstrap, CudaDriver& cuda,
                                                      int device) {
  const GroupPlaces places = places_of(bootstrap);
  return make_collective_heap(bootstrap, places,
                              std::make_unique<CudaBackend>(cuda, device, places));
}

}  // namespace tutti
