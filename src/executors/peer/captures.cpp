#include "executors/peer/captures.hpp"

#include <bit>
#include <utility>

namespace tutti {
namespace {
constexpr int kBits = 64;
}

Captures::Captures(int channels, int late_slots) : channel_free_(channels, true) {
  for (int slot = late_slots; slot-- > 0;) free_late_slots_.push_back(slot);
}

int Captures::area(Stream stream) {
  return areas_.emplace(stream, static_cast<int>(areas_.size()) + 1).first->second;
}

CaptureLease* Captures::find(std::uint64_t id) {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

std::vector<std::uint64_t> Captures::free_channels() {
  take_back();
  std::vector<std::uint64_t> bitmap((channel_free_.size() + kBits - 1) / kBits, 0);
  for (std::size_t c = 0; c < channel_free_.size(); ++c) {
    if (channel_free_[c]) bitmap[c / kBits] |= std::uint64_t{1} << c % kBits;
  }
  return bitmap;
}

int Captures::lowest_common(const std::vector<std::vector<std::uint64_t>>& bitmaps) {
  for (std::size_t w = 0; w < bitmaps.front().size(); ++w) {
    std::uint64_t common = ~std::uint64_t{0};
    for (const auto& bitmap : bitmaps) common &= w < bitmap.size() ? bitmap[w] : 0;
    if (common != 0) return static_cast<int>(w) * kBits + std::countr_zero(common) + 1;
  }
  return 0;
}

CaptureLease& Captures::open(std::uint64_t id, int channel) {
  channel_free_[channel - 1] = false;
  CaptureLease& lease = leases_[id];
  lease.channel = channel;
  return lease;
}

std::function<void()> Captures::on_graph_destroyed(std::uint64_t id) {
  return [retired = retired_, id] {
    const std::lock_guard lock(retired->mutex);
    retired->ids.push_back(id);
  };
}

Result<int> Captures::take_late_slot(CaptureLease& lease) {
  if (free_late_slots_.empty()) {
    return Status(StatusCode::kResourceExhausted,
                  "too many captured operations on buffers that are not symmetric: destroy graphs, "
                  "or use symmetric memory");
  }
  const int slot = free_late_slots_.back();
  free_late_slots_.pop_back();
  lease.late_slots.push_back(slot);
  return slot;
}

void Captures::take_back() {
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(retired_->mutex);
    ids.swap(retired_->ids);
  }
  for (const std::uint64_t id : ids) {
    const auto found = leases_.find(id);
    if (found == leases_.end()) continue;
    CaptureLease& lease = found->second;
    channel_free_[lease.channel - 1] = true;
    used_late_slots_.insert(used_late_slots_.end(), lease.late_slots.begin(),
                            lease.late_slots.end());
    dead_segments_.insert(dead_segments_.end(), lease.segments.begin(), lease.segments.end());
    leases_.erase(found);
  }
}

std::vector<int> Captures::sweep() {
  take_back();
  dead_segments_.clear();
  return std::exchange(used_late_slots_, {});
}

void Captures::give_late_slots(const std::vector<int>& emptied) {
  free_late_slots_.insert(free_late_slots_.end(), emptied.begin(), emptied.end());
}

}  // namespace tutti
