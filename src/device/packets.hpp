// Packets: data that is its own flag. A rank pushes words of 64 bits into slots at its peers, where
// an empty word is zero; the owner of a slot polls until none of the words it waits for is empty,
// takes them, and empties them at once. No fence, no barrier: a word is there whole or not at all.
//
// Two generations of slots are enough. Rank A pushes launch k + 2 only after its launch k + 1 has
// ended, for which it needed an announcement of rank B's launch k + 1; B made that after its launch
// k had ended, and with it the emptying of what it took then.
#pragma once

#include <type_traits>

#include "device/team.hpp"

namespace tutti {

// How 8 bytes of a message travel, so that no packet is zero.
//
// Floating types: complemented. What would be zero is all ones, a NaN in each element of any type;
// it travels as another NaN of each: 0xffff7fff is that of fp32, of two fp16 or bf16, and of four
// fp8, and the upper half of one of fp64.
struct Complemented {
  static constexpr int kPackets = 1;
  static constexpr std::uint64_t kOtherNans = 0xffff7fff'ffff7fffu;
  static TUTTI_BODY void encode(std::uint64_t data, std::uint64_t* packets) {
    packets[0] = ~data != 0 ? ~data : ~kOtherNans;
  }
  static TUTTI_BODY std::uint64_t decode(const std::uint64_t* packets) { return ~packets[0]; }
  // Zero if the packet is not there.
  static TUTTI_BODY std::uint32_t presence(std::uint64_t packet) {
    return static_cast<std::uint32_t>(packet) | static_cast<std::uint32_t>(packet >> 32);
  }
};

// Integers need every pattern: 32 bits beside a mark, twice the bytes on the wire.
struct Marked {
  static constexpr int kPackets = 2;
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 32;
  static TUTTI_BODY void encode(std::uint64_t data, std::uint64_t* packets) {
    packets[0] = kMark | static_cast<std::uint32_t>(data);
    packets[1] = kMark | data >> 32;
  }
  static TUTTI_BODY std::uint64_t decode(const std::uint64_t* packets) {
    return packets[1] << 32 | static_cast<std::uint32_t>(packets[0]);
  }
  static TUTTI_BODY std::uint32_t presence(std::uint64_t packet) {
    return static_cast<std::uint32_t>(packet >> 32);
  }
};

template <class T>
using PacketCode = std::conditional_t<std::is_integral_v<T>, Marked, Complemented>;

// Counts slices. Half a register pair: 64 GiB of packets would be the first too many.
using Slice = std::uint32_t;

// Which of a part's slots at rank `owner` is that of rank `source`: there is none for its own
// tiles, which do not travel.
TUTTI_BODY std::size_t slot_of(int source, int owner) {
  return static_cast<std::size_t>(source < owner ? source : source - 1);
}

// Where a tile lies in a slot.
struct PacketAt {
  int part;  // of the operation
  Slice slice;
};

// A message in shares of equally many tiles; the last ones may be short or empty. Slice k of all
// shares belongs to one thread.
template <int kTileElements>
struct Shares {
  std::size_t count;  // elements of the message
  Slice slices;       // tiles of a share

  TUTTI_BODY Shares(std::size_t elements, int shares) : count(elements) {
    const auto tiles = static_cast<unsigned>((elements + kTileElements - 1) / kTileElements);
    slices = (tiles + static_cast<unsigned>(shares) - 1) / static_cast<unsigned>(shares);
  }
  TUTTI_BODY TileAt tile(int share, Slice slice) const {
    const std::size_t first = (static_cast<std::size_t>(share) * slices + slice) * kTileElements;
    const std::size_t left = first < count ? count - first : 0;
    return {first, static_cast<int>(left < kTileElements ? left : kTileElements)};
  }
};

// Whether `word`, as an operation in launch `launch` finds it after it was counted, shows that
// another operation is on the same area.
TUTTI_BODY bool shows_overlap(std::uint64_t word, std::uint64_t launch) {
  return LaunchWord::launch_of(word) != launch && word != LaunchWord::at(launch + 1);
}

}  // namespace tutti
