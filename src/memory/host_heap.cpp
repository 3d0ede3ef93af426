// Symmetric memory of the host: shared memory, mapped once per process however many ranks live in
// it (ThreadSanitizer follows virtual addresses and sees nothing between two mappings).
#include <fmt/format.h>

#include <cstring>

#include "base/try.hpp"
#include "drivers/shared_memory.hpp"
#include "memory/heap_backend.hpp"
#include "memory/local_allocation.hpp"

namespace tutti {
namespace {

constexpr std::size_t kPageBytes = 4096;

class HostBackend final : public HeapBackend {
 public:
  HostBackend(SharedMemoryDriver& shared_memory, GroupPlaces places)
      : shared_memory_(shared_memory), places_(std::move(places)) {}

  int device() const override { return -1; }
  Result<std::size_t> granularity() override { return kPageBytes; }

  Result<LocalPart> create(std::size_t bytes, const std::vector<int>& devices,
                           Deadline deadline) override;
  Status zero(std::byte* address, std::size_t bytes, Deadline) override {
    std::memset(address, 0, bytes);
    return Status::ok();
  }
  Result<LocalPart> offer(std::byte* address, std::size_t bytes) override;
  Result<Fd> export_part(LocalPart& part) override;
  Result<OpenedPart> open(const PeerOffer& peer) override;
  // Nothing of a plain pointer can be re-read: its owner keeps it alive.
  Status check_alive(const SymmetricSegment&) const override { return Status::ok(); }

 private:
  using Handle = MappingRegistry::Handle;

  MappingKey key_of(std::size_t rank, std::uint64_t identity) const {
    MappingKey key;
    key.driver = &shared_memory_;
    key.process_token = places_.process_tokens[rank];
    key.identity = identity;
    return key;
  }
  Result<Handle> map(int descriptor, std::size_t bytes, Mapping::Origin origin);
  Result<LocalPart> offer_local(const LocalAllocation::Owned& local, std::byte* address,
                                std::size_t bytes);

  SharedMemoryDriver& shared_memory_;
  const GroupPlaces places_;
};

Result<HostBackend::Handle> HostBackend::map(int descriptor, std::size_t bytes,
                                             Mapping::Origin origin) {
  TUTTI_ASSIGN(std::byte* const address, shared_memory_.map(descriptor, bytes));
  return std::make_shared<Mapping>(address, origin, [&driver = shared_memory_, address, bytes] {
    driver.unmap(address, bytes);
  });
}

Result<LocalPart> HostBackend::create(std::size_t bytes, const std::vector<int>&, Deadline) {
  LocalPart part;
  TUTTI_ASSIGN(part.memory, shared_memory_.create(bytes));
  TUTTI_ASSIGN(part.mapping, map(part.memory.get(), bytes, Mapping::Origin::kThisProcess));
  part.offer.how = Offer::How::kOwned;
  part.offer.identity = part.mapping->number();
  part.offer.address = reinterpret_cast<std::uint64_t>(part.mapping->address());
  part.offer.allocation_bytes = bytes;
  MappingRegistry::process().publish(key_of(places_.rank, part.offer.identity), part.mapping);
  return part;
}

// The part owns the allocation, for as long as the registration lives.
Result<LocalPart> HostBackend::offer_local(const LocalAllocation::Owned& local, std::byte* address,
                                           std::size_t bytes) {
  LocalPart part;
  part.offer.how = Offer::How::kOwned;
  part.offer.identity = local->mapping()->number();
  part.offer.address = reinterpret_cast<std::uint64_t>(address);
  part.offer.offset = static_cast<std::uint64_t>(address - local->address());
  part.offer.allocation_bytes = local->bytes();
  if (bytes > local->bytes() - part.offer.offset)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} bytes were given, but the local memory ends after {}", bytes,
                              local->bytes() - part.offer.offset));
  part.mapping = Handle(local, local->mapping().get());
  MappingRegistry::process().publish(key_of(places_.rank, part.offer.identity), part.mapping);
  return part;
}

Result<Fd> HostBackend::export_part(LocalPart& part) {
  if (part.memory.valid() || part.offer.how != Offer::How::kOwned) return std::move(part.memory);
  const auto* const address = part.mapping->address();
  return LocalAllocation::find(&shared_memory_, address)->duplicate_descriptor();
}

Result<LocalPart> HostBackend::offer(std::byte* address, std::size_t bytes) {
  if (address == nullptr)
    return Status(StatusCode::kInvalidArgument, "a null pointer cannot be registered");
  if (const auto local = LocalAllocation::find(&shared_memory_, address)) {
    return offer_local(local, address, bytes);
  }
  LocalPart part;
  if (places_.one_process) {
    part.offer.how = Offer::How::kPointer;
    part.offer.address = reinterpret_cast<std::uint64_t>(address);
  } else {
    part.offer = Offer::staged(
        "memory of a process cannot be mapped by the others; use allocate_local(), or symmetric "
        "memory, to avoid the copies");
  }
  return part;
}

Result<OpenedPart> HostBackend::open(const PeerOffer& peer) {
  if (peer.offer.how == Offer::How::kPointer)
    return OpenedPart{nullptr, reinterpret_cast<std::byte*>(peer.offer.address)};
  auto& registry = MappingRegistry::process();
  const MappingKey key = key_of(peer.rank, peer.offer.identity);
  OpenedPart opened;
  if (places_.same_process(peer.rank)) {
    opened.mapping = registry.find(key);
    if (opened.mapping == nullptr)
      return Status(StatusCode::kPeerFailed, "it is gone: its rank gave up");
  } else {
    TUTTI_ASSIGN(opened.mapping, registry.find_or_open(key, [&] {
      return map(peer.descriptor, peer.offer.allocation_bytes, Mapping::Origin::kPeerProcess);
    }));
  }
  opened.at = opened.mapping->address() + peer.offer.offset;
  return opened;
}

}  // namespace

Result<std::unique_ptr<SymmetricHeap>> make_host_heap(Bootstrap& bootstrap,
                                                      SharedMemoryDriver& shared_memory) {
  const GroupPlaces places = places_of(bootstrap);
  if (!places.one_host) {
    return Status(StatusCode::kUnsupported,
                  "ranks of the host backend share memory within one host and one container: make "
                  "a communicator per host");
  }
  return make_collective_heap(bootstrap, places,
                              std::make_unique<HostBackend>(shared_memory, places));
}

}  // namespace tutti
