// What ranks tell each other about symmetric memory, and how they find out that they disagree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "bootstrap/rank_names.hpp"
#include "memory/pool.hpp"
#include "tutti/status.hpp"

namespace tutti {

// What must be equal on every rank.
struct HeapCall {
  enum class Kind : std::uint8_t { kAllocate, kRegister };
  Kind kind = Kind::kAllocate;
  std::uint64_t sequence = 0;  // of this heap's collective calls
  std::uint32_t first_id = 0;
  std::vector<std::uint64_t> sizes;  // bytes, per segment

  friend bool operator==(const HeapCall&, const HeapCall&) = default;
};

// "allocate #3 (1048576 bytes)" or "register #4 (2 ranges)"
std::string describe(const HeapCall& call);

// How a rank's memory can be reached by the others.
struct Offer {
  enum class How : std::uint8_t {
    kStaged,   // not at all; `reason` says why
    kPointer,  // the address itself; only where all ranks are in one process
    kOwned,    // made by the heap: found by `identity` in its process, elsewhere as kVirtual
    kMalloc,   // cudaMalloc: peer access in its process, by `handle` (cudaIpc) elsewhere
    kVirtual,  // a user's VMM allocation, mapped whole: by descriptor, or by `handle` (fabric)
  };
  How how = How::kStaged;
  std::int32_t device = -1;      // in the owner's numbering
  std::int32_t descriptor = -1;  // which of the descriptors that the owner sends; -1 for none
  std::uint64_t identity = 0;    // never reused in the owner's process
  std::uint64_t address = 0;     // in the owner's process
  std::uint64_t offset = 0;      // of `address` in the allocation
  std::uint64_t allocation_bytes = 0;
  std::array<std::byte, 64> handle{};
  std::string reason;

  static Offer staged(std::string reason) {
    Offer offer;
    offer.reason = std::move(reason);
    return offer;
  }
};

struct HeapMessage {
  HeapCall call;
  Status status;                       // of what the sender did before the exchange
  int device = -1;                     // the sender's, in its process's numbering
  std::uint64_t granularity = 1;       // allocations are multiples of it
  std::vector<FreeBlock> free_blocks;  // ascending
  std::vector<Offer> offers;           // one per size, or none
};

Bytes encode(const HeapMessage& message);
Result<HeapMessage> decode_message(ByteView bytes);

// What follows names ranks as `names` does.
Result<std::vector<HeapMessage>> decode_messages(std::span<const Bytes> per_rank,
                                                 const RankNames& names = {});

// kMismatch where calls differ: names the first two ranks that disagree, and what each has given.
// Otherwise the failure of the lowest rank that has one, with its number. The same on every rank.
Status check_agreement(std::span<const HeapMessage> per_rank, const RankNames& names = {});

// kMismatch where some message lacks the offers that its call needs, or offers less than was asked
// for.
Status check_offers(std::span<const HeapMessage> per_rank, const RankNames& names = {});

// The second half: what became of each segment on the sending rank. A failure's text says whose it
// is: mostly, but not always, the sender's.
Bytes encode_outcomes(std::span<const Status> outcomes);
Result<std::vector<Status>> decode_outcomes(ByteView bytes, std::size_t expected);

// Element k: the failure of the lowest rank that could not serve segment k, or success.
Result<std::vector<Status>> combine_outcomes(std::span<const Bytes> per_rank, std::size_t expected,
                                             const RankNames& names = {});

}  // namespace tutti
