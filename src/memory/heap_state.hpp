// What a heap and its segments share. Segments hold it weakly: they may outlive the heap.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/pool.hpp"
#include "memory/segment_table.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {

class HeapState;

class HeapSegment final : public SymmetricSegment {
 public:
  ~HeapSegment() override;

  Parts parts;
  FreeBlock block;  // what returns to the pool; 0 bytes for a registration
  Pool::Room room;  // for it
  std::weak_ptr<HeapState> state;
};

// Safe from any thread.
class HeapState : public std::enable_shared_from_this<HeapState> {
 public:
  // Takes the segments into account and makes them findable.
  void add(std::span<const std::shared_ptr<HeapSegment>> segments);
  void hide(const SymmetricSegment& segment) { table_.erase(segment.id); }
  // Called by a segment that ends.
  void give_back(HeapSegment& segment);

  Parts take(std::uint32_t block_number);
  // What they held: closed when the answer ends.
  std::vector<Parts> drop(std::span<const std::uint32_t> block_numbers);
  std::vector<FreeBlock> free_blocks() const;

  std::shared_ptr<SymmetricSegment> find(const void* address, std::size_t bytes) const {
    return table_.find(address, bytes);
  }
  HeapUse use() const;

 private:
  void count_mappings(const Parts& parts, int change);

  SegmentTable table_;
  mutable std::mutex mutex_;
  Pool pool_;
  std::size_t allocated_bytes_ = 0;
  std::unordered_map<const Mapping*, int> peer_mappings_;  // users of each
};

}  // namespace tutti
