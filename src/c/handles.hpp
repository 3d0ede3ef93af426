// Handles: numbers that name open objects. A closed handle is never given out again, so it is found
// out. Looking one up takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "tutti/communicator.hpp"
#include "tutti/local_memory.hpp"
#include "tutti/sharded_parameters.hpp"
#include "tutti/symmetric_memory.hpp"
#include "tutti/symmetric_pool.hpp"
#include "tutti/tutti.h"

namespace tutti::c {

// Bits, from the lowest: kind, index of a slot, how often the slot was used (from 1, so that no
// handle is null).
class HandleTable {
 public:
  // `kind` is 0 to 15. 0: no memory, or more than kMostSlots are open.
  std::uint64_t open(unsigned kind, void* object) noexcept;
  // The object; null if no open handle of this kind has the number.
  void* find(unsigned kind, std::uint64_t handle) const noexcept;
  // The same, and closes it: one thread alone gets the object.
  void* close(unsigned kind, std::uint64_t handle) noexcept;

 private:
  struct Slot {
    std::atomic<std::uint64_t> handle = 0;  // 0: closed
    std::atomic<void*> object = nullptr;
    std::uint64_t uses = 0;
    std::uint32_t next_free = 0;  // 1 + index; 0: none
  };
  static constexpr unsigned kKindBits = 4, kIndexBits = 24, kChunkBits = 10;
  static constexpr std::size_t kChunks = std::size_t{1} << (kIndexBits - kChunkBits);
  static constexpr std::uint32_t kMostSlots = 1u << kIndexBits;

  Slot* slot_of(std::uint64_t handle) const noexcept;
  Slot& at(std::uint32_t index) const noexcept;
  std::uint32_t free_slot_locked() noexcept;  // 1 + index; 0: none

  // Chunks are never freed, so that a closed handle can be looked up.
  std::array<std::atomic<Slot*>, kChunks> chunks_{};
  std::mutex mutex_;  // of whoever opens or closes
  std::uint32_t slots_ = 0, first_free_ = 0;
};

static_assert(std::is_trivially_destructible_v<HandleTable>);
// Never destroyed: programs may use handles while the process ends.
extern HandleTable handles;

// What a handle names. Other objects refer to their communicator by its handle, and so find out
// that it is closed.
struct OpenCommunicator {
  explicit OpenCommunicator(Communicator made) : communicator(std::move(made)) {}

  Communicator communicator;
  std::atomic<int> dependents = 0;  // that it must outlive
};
struct OpenPool {
  tutti_communicator_t* communicator;
  SymmetricPool pool;
};
struct OpenShardedParameters {
  explicit OpenShardedParameters(OpenCommunicator& of, ShardedParameters made)
      : communicator(of), parameters(std::move(made)) {
    ++communicator.dependents;
  }
  ~OpenShardedParameters() { --communicator.dependents; }
  OpenShardedParameters(const OpenShardedParameters&) = delete;
  OpenShardedParameters& operator=(const OpenShardedParameters&) = delete;

  OpenCommunicator& communicator;
  ShardedParameters parameters;
};

template <class Handle>
struct HandleKind;
template <>
struct HandleKind<tutti_communicator_t> {
  using Object = OpenCommunicator;
  static constexpr unsigned kNumber = 1;
  static constexpr const char* kName = "communicator";
};
template <>
struct HandleKind<tutti_memory_t> {
  using Object = SymmetricMemory;
  static constexpr unsigned kNumber = 2;
  static constexpr const char* kName = "memory";
};
template <>
struct HandleKind<tutti_pool_t> {
  using Object = OpenPool;
  static constexpr unsigned kNumber = 3;
  static constexpr const char* kName = "pool";
};
template <>
struct HandleKind<tutti_block_t> {
  using Object = SymmetricBlock;
  static constexpr unsigned kNumber = 4;
  static constexpr const char* kName = "block";
};
template <>
struct HandleKind<tutti_sharded_parameters_t> {
  using Object = OpenShardedParameters;
  static constexpr unsigned kNumber = 5;
  static constexpr const char* kName = "sharded parameters";
};
template <>
struct HandleKind<tutti_local_memory_t> {
  using Object = LocalMemory;
  static constexpr unsigned kNumber = 6;
  static constexpr const char* kName = "local memory";
};

template <class Handle>
using ObjectOf = typename HandleKind<Handle>::Object;

template <class Handle>
ObjectOf<Handle>* find(Handle* handle) noexcept {
  return static_cast<ObjectOf<Handle>*>(
      handles.find(HandleKind<Handle>::kNumber, reinterpret_cast<std::uintptr_t>(handle)));
}

// Null if the table is full; the object is then destroyed.
template <class Handle>
Handle* open(std::unique_ptr<ObjectOf<Handle>> object) noexcept {
  const std::uint64_t handle = handles.open(HandleKind<Handle>::kNumber, object.get());
  if (handle != 0) (void)object.release();
  return reinterpret_cast<Handle*>(static_cast<std::uintptr_t>(handle));
}

template <class Handle>
std::unique_ptr<ObjectOf<Handle>> close(Handle* handle) noexcept {
  return std::unique_ptr<ObjectOf<Handle>>(static_cast<ObjectOf<Handle>*>(
      handles.close(HandleKind<Handle>::kNumber, reinterpret_cast<std::uintptr_t>(handle))));
}

}  // namespace tutti::c
