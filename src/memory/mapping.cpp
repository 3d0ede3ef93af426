#include "memory/mapping.hpp"

#include <atomic>

#include "base/try.hpp"

namespace tutti {

std::uint64_t Mapping::next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

MappingRegistry& MappingRegistry::process() {
  static MappingRegistry registry;
  return registry;
}

Result<MappingRegistry::Handle> MappingRegistry::find_or_open(
    const MappingKey& key, const std::function<Result<Handle>()>& open) {
  // Held while opening: of two ranks that ask at once, one opens and the other finds.
  const std::lock_guard lock(mutex_);
  if (const auto known = open_.find(key); known != open_.end()) {
    if (Handle mapping = known->second.lock()) return mapping;
  }
  TUTTI_ASSIGN(Handle mapping, open());
  forget_closed();
  open_[key] = mapping;
  return mapping;
}

MappingRegistry::Handle MappingRegistry::find(const MappingKey& key) {
  const std::lock_guard lock(mutex_);
  const auto known = open_.find(key);
  return known == open_.end() ? nullptr : known->second.lock();
}

void MappingRegistry::publish(const MappingKey& key, const Handle& mapping) {
  const std::lock_guard lock(mutex_);
  forget_closed();
  open_[key] = mapping;
}

void MappingRegistry::forget_closed() {
  std::erase_if(open_, [](const auto& entry) { return entry.second.expired(); });
}

}  // namespace tutti
