#include "bench/arena.hpp"

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti::cli {

Result<Arena> Arena::make(Communicator& communicator, Engine& engine, const Shape& shape) {
  constexpr std::size_t kSlotAlignment = 4096;
  Arena arena;
  arena.shape_ = shape;
  arena.stride_ = round_up(std::max<std::size_t>(shape.slot_bytes, 1), kSlotAlignment);
  const std::size_t bytes = arena.stride_ * (static_cast<std::size_t>(shape.inputs) +
                                             static_cast<std::size_t>(shape.outputs));
  if (shape.kind == BufferKind::kSymmetric) {
    TUTTI_ASSIGN(arena.memory_, communicator.allocate(bytes));
    arena.base_ = static_cast<std::byte*>(arena.memory_.data());
    return arena;
  }
  TUTTI_ASSIGN(arena.plain_, engine.allocate(bytes));
  arena.base_ = arena.plain_.get();
  if (shape.kind == BufferKind::kRegistered) {
    TUTTI_ASSIGN(arena.memory_, communicator.register_memory(arena.base_, bytes));
  }
  return arena;
}

std::span<std::byte> Arena::input(int slot, std::size_t bytes) const {
  return {base_ + stride_ * static_cast<std::size_t>(slot), bytes};
}

std::span<std::byte> Arena::output(int slot, std::size_t bytes) const {
  return input(shape_.inputs + slot, bytes);
}

}  // namespace tutti::cli
