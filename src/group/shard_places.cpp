#include "group/shard_places.hpp"

#include <algorithm>

namespace tutti {

bool ShardPlaces::knows(const ShardPlace& place) const {
  return std::any_of(known_.begin(), known_.end(),
                     [&](const Known& known) { return known.place == place; });
}

bool ShardPlaces::admits(const ShardPlace& place) const {
  return known_.size() < kMost || is_forgotten(known_.front()) || knows(place);
}

void ShardPlaces::count_call(const ShardPlace* place) {
  ++calls_;
  if (place == nullptr) return;
  auto at = std::find_if(known_.begin(), known_.end(),
                         [&](const Known& known) { return known.place == *place; });
  if (at == known_.end() && known_.size() == kMost) at = known_.begin();
  if (at != known_.end()) known_.erase(at);
  known_.push_back({*place, calls_});
}

}  // namespace tutti
