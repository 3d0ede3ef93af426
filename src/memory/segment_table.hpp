// Finds a segment by an address inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "memory/symmetric_heap.hpp"

namespace tutti {

// Safe from any thread. Holds no segment alive.
class SegmentTable {
 public:
  void insert(std::span<const std::shared_ptr<SymmetricSegment>> segments);
  void erase(std::uint32_t id);

  // The segment that holds all of [address, address + bytes). Where registrations overlap, the
  // latest of them: the rule must not depend on addresses, which differ between ranks.
  std::shared_ptr<SymmetricSegment> find(const void* address, std::size_t bytes) const;

 private:
  struct Entry {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uintptr_t furthest_end = 0;  // of this entry and all before it
    std::uint32_t id = 0;
    std::weak_ptr<SymmetricSegment> segment;
  };
  const Entry* latest_holding(std::uintptr_t begin, std::uintptr_t end,
                              std::uint64_t before_id) const;
  void update_furthest_ends();

  mutable std::shared_mutex mutex_;
  std::vector<Entry> entries_;  // sorted by begin
};

}  // namespace tutti
