// Freed memory that is kept for the next allocation, and what the ranks agree to do with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "base/units.hpp"
#include "memory/mapping.hpp"

namespace tutti {

// One allocation on all ranks: the number says which, the same everywhere.
struct FreeBlock {
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;  // rounded

  friend bool operator==(const FreeBlock&, const FreeBlock&) = default;
  friend bool operator<(const FreeBlock& a, const FreeBlock& b) {
    return std::tie(a.number, a.bytes) < std::tie(b.number, b.bytes);
  }
};

// Every rank's part of one piece of symmetric memory, as this rank addresses it.
struct Parts {
  std::vector<std::shared_ptr<Mapping>> mappings;  // null where nothing has to be closed
  std::vector<std::byte*> at;
  bool copies_queue = false;  // see SymmetricSegment
};

// Bounds of what is free on every rank. What only some ranks have freed counts on neither side: it
// can be neither used nor given back before the others have freed it too.
inline constexpr std::size_t kMaxPooledBytes = 1 * GiB;
inline constexpr std::size_t kMaxPooledBlocks = 64;

struct PoolDecision {
  std::optional<std::uint32_t> reuse;  // the block to use for this allocation
  std::vector<std::uint32_t> drop;     // blocks beyond the bounds, oldest first
  std::vector<std::uint32_t> keep;     // free on every rank, and not in the lists above
};

// Pure, so that every rank decides alike. Element r of `free_blocks` is what rank r has free,
// ascending; `bytes` is the rounded size that is wanted.
PoolDecision decide_pool(std::span<const std::vector<FreeBlock>> free_blocks, std::uint64_t bytes);

// One rank's free blocks. The caller synchronises.
class Pool {
  struct Entry {
    std::uint64_t bytes;
    Parts parts;
  };
  using Entries = std::map<std::uint32_t, Entry>;

 public:
  // Room in a pool for one block: made with the block, so that giving it back asks for no memory.
  using Room = Entries::node_type;
  static Room room_for(FreeBlock block);

  void put(Room room, Parts parts);
  void put(FreeBlock block, Parts parts) { put(room_for(block), std::move(parts)); }
  // Requires that the block is here.
  Parts take(std::uint32_t number);
  // What `numbers` held, to be closed by the caller outside its locks.
  std::vector<Parts> take_all(std::span<const std::uint32_t> numbers);

  std::vector<FreeBlock> blocks() const;  // ascending
  std::size_t bytes() const { return bytes_; }

 private:
  Entries entries_;
  std::size_t bytes_ = 0;
};

}  // namespace tutti
