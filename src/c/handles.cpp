#include "c/handles.hpp"

#include <new>

namespace tutti::c {

constinit HandleTable handles;

HandleTable::Slot& HandleTable::at(std::uint32_t index) const noexcept {
  return chunks_[index >> kChunkBits].load(
      std::memory_order_acquire)[index & ((1u << kChunkBits) - 1)];
}

HandleTable::Slot* HandleTable::slot_of(std::uint64_t handle) const noexcept {
  const auto index = static_cast<std::uint32_t>(handle >> kKindBits) & (kMostSlots - 1);
  // Acquire: the chunk is seen as it was made.
  Slot* const chunk = chunks_[index >> kChunkBits].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &chunk[index & ((1u << kChunkBits) - 1)];
}

std::uint32_t HandleTable::free_slot_locked() noexcept {
  if (const std::uint32_t free = first_free_; free != 0) {
    first_free_ = at(free - 1).next_free;
    return free;
  }
  if (slots_ == kMostSlots) return 0;
  if (slots_ % (1u << kChunkBits) == 0) {
    Slot* const chunk = new (std::nothrow) Slot[std::size_t{1} << kChunkBits];
    if (chunk == nullptr) return 0;
    chunks_[slots_ >> kChunkBits].store(chunk, std::memory_order_release);
  }
  return ++slots_;
}

std::uint64_t HandleTable::open(unsigned kind, void* object) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint32_t found = free_slot_locked();
  if (found == 0) return 0;
  const std::uint32_t index = found - 1;
  Slot& slot = at(index);
  ++slot.uses;
  const std::uint64_t handle = (slot.uses << (kKindBits + kIndexBits)) |
                               (static_cast<std::uint64_t>(index) << kKindBits) | kind;
  slot.object.store(object, std::memory_order_relaxed);
  slot.handle.store(handle, std::memory_order_release);  // who finds the handle sees the object
  return handle;
}

void* HandleTable::find(unsigned kind, std::uint64_t handle) const noexcept {
  Slot* const slot = slot_of(handle);
  const bool is_kind = (handle & ((1u << kKindBits) - 1)) == kind;
  if (!is_kind || slot == nullptr || slot->handle.load(std::memory_order_acquire) != handle) {
    return nullptr;
  }
  return slot->object.load(std::memory_order_relaxed);
}

void* HandleTable::close(unsigned kind, std::uint64_t handle) noexcept {
  const std::lock_guard lock(mutex_);
  void* const object = find(kind, handle);
  if (object == nullptr) return nullptr;
  Slot& slot = *slot_of(handle);
  slot.handle.store(0, std::memory_order_relaxed);
  slot.next_free = first_free_;
  first_free_ = (static_cast<std::uint32_t>(handle >> kKindBits) & (kMostSlots - 1)) + 1;
  return object;
}

}  // namespace tutti::c
