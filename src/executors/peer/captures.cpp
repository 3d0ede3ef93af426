#include "executors/peer/captures.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tutti {

Captures::Captures(int channels, int late_slots) : channels_(channels) {
  for (int slot = late_slots; slot-- > 0;) free_late_slots_.push_back(slot);
}

const CaptureLease* Captures::find(std::uint64_t id) const {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

CaptureLease* Captures::find(std::uint64_t id) {
  return const_cast<CaptureLease*>(std::as_const(*this).find(id));
}

std::vector<std::uint64_t> Captures::offer(Stream stream) {
  take_back();
  std::vector<std::uint64_t> words(static_cast<std::size_t>(channels_) + 1, 0);
  std::uint64_t latest = 0;
  for (const auto& [id, lease] : leases_) {
    const auto channel = static_cast<std::size_t>(lease.channel);
    ++words[channel];
    if (lease.stream != stream || lease.number < latest) continue;
    latest = lease.number;
    words[0] = channel;
  }
  return words;
}

// The driver destroys a graph when it likes, so one rank may still have it and another not.
int Captures::chosen(const std::vector<std::vector<std::uint64_t>>& offers) {
  std::uint64_t known = 0;
  for (const auto& words : offers) known = std::max(known, words.front());
  const bool is_common =
      known != 0 && std::all_of(offers.begin(), offers.end(), [&](const auto& words) {
        const bool has_none = words.front() == 0 && known < words.size() && words[known] == 0;
        return words.front() == known || has_none;
      });
  if (is_common) return static_cast<int>(known);
  std::vector<std::uint64_t> graphs(offers.front().size(), 0);
  for (const auto& words : offers) {
    for (std::size_t c = 1; c < graphs.size(); ++c) graphs[c] += c < words.size() ? words[c] : 0;
  }
  const auto fewest = std::min_element(graphs.begin() + 1, graphs.end());
  return static_cast<int>(fewest - graphs.begin());
}

CaptureLease& Captures::open(std::uint64_t id, Stream stream, int channel) {
  CaptureLease& lease = leases_[id];
  lease.channel = channel;
  lease.stream = stream;
  lease.number = ++opened_;
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
