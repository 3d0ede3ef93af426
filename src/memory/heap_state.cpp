#include "memory/heap_state.hpp"

#include <utility>

namespace tutti {

HeapSegment::~HeapSegment() {
  binding.reset();  // a switch lets go of memory before it ends
  if (const auto alive = state.lock()) alive->give_back(*this);
}

void HeapState::add(std::span<const std::shared_ptr<HeapSegment>> segments) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& segment : segments) {
      segment->state = weak_from_this();
      allocated_bytes_ += segment->block.bytes;
      count_mappings(segment->parts, +1);
    }
  }
  table_.insert(std::vector<std::shared_ptr<SymmetricSegment>>(segments.begin(), segments.end()));
}

void HeapState::give_back(HeapSegment& segment) {
  // Out of the table first: once the block is in the pool its addresses may name a new segment.
  table_.erase(segment.id);
  const std::lock_guard lock(mutex_);
  if (segment.block.bytes > 0) {
    allocated_bytes_ -= segment.block.bytes;
    pool_.put(std::move(segment.room), std::move(segment.parts));
  } else {
    count_mappings(segment.parts, -1);
  }
}

Parts HeapState::take(std::uint32_t block_number) {
  const std::lock_guard lock(mutex_);
  Parts parts = pool_.take(block_number);
  count_mappings(parts, -1);
  return parts;
}

std::vector<Parts> HeapState::drop(std::span<const std::uint32_t> block_numbers) {
  const std::lock_guard lock(mutex_);
  std::vector<Parts> dropped = pool_.take_all(block_numbers);
  for (const Parts& parts : dropped) count_mappings(parts, -1);
  return dropped;
}

std::vector<FreeBlock> HeapState::free_blocks() const {
  const std::lock_guard lock(mutex_);
  return pool_.blocks();
}

HeapUse HeapState::use() const {
  const std::lock_guard lock(mutex_);
  return {allocated_bytes_, pool_.bytes(), peer_mappings_.size()};
}

void HeapState::count_mappings(const Parts& parts, int change) {
  for (const auto& mapping : parts.mappings) {
    if (mapping == nullptr || mapping->origin() == Mapping::Origin::kThisProcess) continue;
    const auto users = peer_mappings_.try_emplace(mapping.get(), 0).first;
    users->second += change;
    if (users->second == 0) peer_mappings_.erase(users);
  }
}

}  // namespace tutti
