// The bodies of operations on one peer's memory, and of signals: what tutti/device/peers.hpp does,
// as one kernel; and of copies whose addresses are known. Called by every thread of every block of
// the grid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/device/impl/memory.hpp"
#include "tutti/device/peers.hpp"

namespace tutti {

enum class OneSided : std::uint8_t { kPut, kGet, kSignal, kPutSignal, kWaitSignal };

struct OneSidedWork {
  OneSided kind;
  device::Peers peers;  // its memory begins where the peer's side of a copy does
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
  int peer, channel;
  std::uint64_t times;
};

// Between any memory that this rank addresses: its own, and that of peers.
struct CopyWork {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
};

// Signals are one block's: it cannot know how far others are.
constexpr bool takes_many_blocks(OneSided kind) {
  return kind == OneSided::kPut || kind == OneSided::kGet;
}

// The part of `bytes` bytes that is the block's: whole lines of 128 bytes, but for the last.
struct Part {
  std::size_t first, bytes;
};
TUTTI_DEVICE Part part_of(std::size_t bytes, const device::Block& block) {
  constexpr std::size_t kLine = 128;
  const auto blocks = static_cast<std::size_t>(block.count());
  const std::size_t share = (bytes / kLine + blocks) / blocks * kLine;
  const std::size_t first = share * static_cast<std::size_t>(block.index());
  if (first >= bytes) return {0, 0};
  return {first, bytes - first < share ? bytes - first : share};
}

TUTTI_DEVICE void run_copy(const CopyWork& work, const device::Block& block) {
  const Part part = part_of(work.bytes, block);
  device::impl::SystemMemory::copy(block, work.to + part.first, work.from + part.first, part.bytes);
}

// False where a wait failed.
TUTTI_DEVICE bool run_one_sided(const OneSidedWork& work, const device::Block& block) {
  const device::Peers& peers = work.peers;
  const Part part = part_of(work.bytes, block);
  const device::Put put{work.peer, part.first, work.from + part.first, part.bytes};
  switch (work.kind) {
    case OneSided::kPut:
      peers.put(block, put);
      return true;
    case OneSided::kGet:
      peers.get(block, {work.peer, part.first, work.to + part.first, part.bytes});
      return true;
    case OneSided::kPutSignal:
      peers.put_signal(block, put, work.channel);
      return true;
    case OneSided::kSignal:
      peers.signal(block, work.peer, work.channel);
      return true;
    case OneSided::kWaitSignal:
      break;
  }
  return peers.wait_signal(block, work.peer, work.channel, work.times);
}

}  // namespace tutti
