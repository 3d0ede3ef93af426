#include "memory/segment_table.hpp"

#include <algorithm>
#include <mutex>

namespace tutti {

void SegmentTable::insert(std::span<const std::shared_ptr<SymmetricSegment>> segments) {
  const std::unique_lock lock(mutex_);
  for (const auto& segment : segments) {
    const auto begin = reinterpret_cast<std::uintptr_t>(segment->local);
    entries_.push_back({begin, begin + segment->bytes, 0, segment->id, segment});
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
  update_furthest_ends();
}

void SegmentTable::erase(std::uint32_t id) {
  const std::unique_lock lock(mutex_);
  std::erase_if(entries_, [id](const Entry& entry) { return entry.id == id; });
  update_furthest_ends();
}

std::shared_ptr<SymmetricSegment> SegmentTable::find(const void* address, std::size_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (begin + bytes < begin) return nullptr;
  const std::shared_lock lock(mutex_);
  std::uint64_t before_id = std::uint64_t{1} << 32;
  // A segment that is being destroyed still has its entry: then the next older one counts. Only
  // what is returned is ever locked, since a segment must not die while the table is held.
  while (const Entry* entry = latest_holding(begin, begin + bytes, before_id)) {
    if (auto segment = entry->segment.lock()) return segment;
    before_id = entry->id;
  }
  return nullptr;
}

const SegmentTable::Entry* SegmentTable::latest_holding(std::uintptr_t begin, std::uintptr_t end,
                                                        std::uint64_t before_id) const {
  auto after = std::upper_bound(
      entries_.begin(), entries_.end(), begin,
      [](std::uintptr_t address, const Entry& entry) { return address < entry.begin; });
  const Entry* latest = nullptr;
  while (after != entries_.begin() && std::prev(after)->furthest_end > begin) {
    --after;
    const bool holds = begin < after->end && end <= after->end && after->id < before_id;
    if (holds && (latest == nullptr || after->id > latest->id)) latest = &*after;
  }
  return latest;
}

void SegmentTable::update_furthest_ends() {
  std::uintptr_t furthest = 0;
  for (Entry& entry : entries_) {
    furthest = std::max(furthest, entry.end);
    entry.furthest_end = furthest;
  }
}

}  // namespace tutti
