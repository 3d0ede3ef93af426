// What differs between symmetric memory of the host and of GPUs. The protocol among the ranks is
// collective_heap.cpp's; nothing here talks to a peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/deadline.hpp"
#include "base/fd.hpp"
#include "base/units.hpp"
#include "memory/heap_messages.hpp"
#include "memory/mapping.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {

// Where the members of the group live, as one rank sees it.
struct GroupPlaces {
  std::size_t rank = 0;
  std::vector<std::uint64_t> process_tokens;  // per rank
  bool one_process = true;                    // all ranks are in this one
  bool one_host = true;
  bool descriptors = true;  // every rank can send them to every other

  bool same_process(std::size_t peer) const { return process_tokens[peer] == process_tokens[rank]; }
};

// Memory of this rank, ready to be told to the others.
struct LocalPart {
  Offer offer;
  std::shared_ptr<Mapping> mapping;  // null where nothing has to be closed
  std::uint64_t buffer_id = 0;       // SymmetricSegment::buffer_id
  Fd memory;                         // for export_part(), where it cannot be made later
};

struct PeerOffer {
  std::size_t rank = 0;
  const Offer& offer;
  int descriptor = -1;  // of the memory, where it is another process's; stays the caller's
  // Devices of the ranks in this process, ascending: a mapping serves all of them.
  const std::vector<int>& devices;
};

struct OpenedPart {
  std::shared_ptr<Mapping> mapping;  // null where nothing has to be closed
  std::byte* at = nullptr;           // the offered range
};

class HeapBackend {
 public:
  virtual ~HeapBackend() = default;

  virtual int device() const = 0;  // -1 on the host
  virtual Result<std::size_t> granularity() = 0;

  // New zeroed memory of `bytes`, a multiple of the granularity, that all `devices` can reach.
  virtual Result<LocalPart> create(std::size_t bytes, const std::vector<int>& devices,
                                   Deadline deadline) = 0;
  // Likewise, but of a few bytes: of no allocation of its own, where those are large. Zeroed.
  virtual Result<LocalPart> create_small(std::size_t bytes, const std::vector<int>& devices,
                                         Deadline deadline) {
    const auto unit = granularity();
    if (!unit.is_ok()) return unit.status();
    return create(round_up(bytes, *unit), devices, deadline);
  }
  virtual Status zero(std::byte* address, std::size_t bytes, Deadline deadline) = 0;

  // How memory that the user has can be reached. A failure says that the range cannot be right.
  virtual Result<LocalPart> offer(std::byte* address, std::size_t bytes) = 0;

  // What other processes need to open the part: a descriptor, or what it adds to the offer.
  virtual Result<Fd> export_part(LocalPart& part) = 0;

  // kPeerFailed: a rank of this process has dropped its part since, which it does where it gives
  // up.
  virtual Result<OpenedPart> open(const PeerOffer& peer) = 0;
  virtual Status check_alive(const SymmetricSegment& segment) const = 0;
};

GroupPlaces places_of(const Bootstrap& bootstrap);

std::unique_ptr<SymmetricHeap> make_collective_heap(Bootstrap& bootstrap, GroupPlaces places,
                                                    std::unique_ptr<HeapBackend> backend);

}  // namespace tutti
