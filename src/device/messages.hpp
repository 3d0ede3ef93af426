// Messages between pairs of ranks: one rank sends, another one takes, and nobody else is asked.
//
// Every block is a lane: of each message it has every so-manieth chunk. A lane of a pair has slots
// at the taker, and counts its chunks for ever, at both ends. The sender fills the slot of chunk k
// again once the taker has told that the chunk before in it is taken; the taker empties it once the
// sender has told that chunk k is there. So there is nothing to agree on beforehand, and nothing to
// clear behind.
//
// Where a long message is taken into memory that the sender reaches, it goes there, with nothing in
// between: the taker first posts the place, and then each lane has one chunk, its whole part.
//
// Short ones travel on GPUs as marked packets: 32 bits beside mark_of(k). What lies there from
// before has another mark, so each word is its own flag. On the host: chunks, as others.
#pragma once

#include "device/team.hpp"

namespace tutti {

inline constexpr int kLanes = 32;        // a grid's blocks, at most
inline constexpr int kMaxMessages = 32;  // of one operation: a thread of a warp for each

// Slots of a lane, for chunks and for those in packets.
inline constexpr int kChunkSlots = 4, kPacketSlots = 2;
inline constexpr std::size_t kPacketSlotBytes = 2 * 1024;
inline constexpr std::size_t kPacketChunk = kPacketSlotBytes / 2;  // what such a slot carries
// What the movers of a block have under way at once on GPUs. A slot holds so much, or less, or a
// whole number of it.
inline constexpr std::size_t kMoversBatch = 28 * 1024;
constexpr TUTTI_BODY int slots_of(bool packets) { return packets ? kPacketSlots : kChunkSlots; }
// A short message has no more chunks in a lane than there are slots.
constexpr TUTTI_BODY std::size_t most_in_packets(int lanes) {
  return static_cast<std::size_t>(lanes) * kPacketSlots * kPacketChunk;
}

// What a lane of a rank is told by another one. One writer per word.
struct MessageFlags {
  Flag chunks[kChunkSlots];  // slot by slot: `epoch` - 1 is the chunk that has come
  Flag credits;              // so many chunks that this rank sent there are taken
  // Of the message that begins with chunk `epoch` - 1: where it is to go, in halves, and which one
  // that is.
  Flag posts[3];
};

// What is posted, in the upper halves of the flags' second words: a registration and an offset in
// it, or that there is none. The highest bit is always set: a check word of 0 was never stored.
struct PostedPlace {
  std::uint32_t window;  // as Message::window
  std::uint64_t offset;  // below 2^48

  TUTTI_BODY Flag first(std::uint64_t epoch) const { return flag_of(epoch, kPosted | offset); }
  TUTTI_BODY Flag second(std::uint64_t epoch) const {
    return flag_of(epoch, kPosted | std::uint64_t{window} << kHighBits | offset >> kLowBits);
  }
  static TUTTI_BODY Flag flag_of(std::uint64_t epoch, std::uint64_t word) {
    return {epoch, word << 32 | static_cast<std::uint32_t>(epoch)};
  }
  static TUTTI_BODY PostedPlace of(const Flag& first, const Flag& second) {
    const std::uint64_t low = first.check >> 32 & (kPosted - 1);
    const std::uint64_t high = second.check >> 32 & (kPosted - 1);
    return {static_cast<std::uint32_t>(high >> kHighBits),
            (high & ((std::uint64_t{1} << kHighBits) - 1)) << kLowBits | low};
  }

 private:
  static constexpr int kLowBits = 31, kHighBits = 17;  // of the offset
  static constexpr std::uint64_t kPosted = std::uint64_t{1} << kLowBits;
};

// Where a registration lies on each rank, in a table by its number. Entries are never given to
// another one: a post of it may be under way, or wait in a graph. Later ones have none.
struct RegistrationEntry {
  PeerPointers at;
  std::uint64_t window;  // as Message::window; 0: none
};
inline constexpr std::uint32_t kRegistrationEntries = 1024;
constexpr std::uint32_t window_of(std::uint32_t registration) {
  return registration + 1 < kRegistrationEntries ? registration + 1 : 0;
}

// What each rank exposes to its peers; slots follow: those for packets of every other rank, and
// then those for chunks.
struct MessageMemory {
  MessageFlags of[kLanes][kMaxRanks];
};

// How far a lane has come with another rank. Private to this rank.
struct MessageCounts {
  std::uint64_t sent, taken;  // chunks
};
inline constexpr std::size_t kMessageCounts = std::size_t{kLanes} * kMaxRanks;  // [lane][rank]

// One message, at one of its ends.
struct Message {
  const std::byte* input;  // where it is sent from; null at the end that takes it
  std::byte* output;       // likewise. Both ends at once: a rank's message to itself
  std::size_t bytes;       // more than none
  std::size_t chunk_bytes;
  std::int32_t peer;
  std::int32_t lanes;
  std::uint32_t signature;  // equal at both ends where they mean the same
  std::uint32_t window;     // of the output, where senders reach it; 0: they do not
  std::uint64_t offset;     // in that
  bool in_packets;

  TUTTI_BODY bool is_sent() const { return input != nullptr; }
  TUTTI_BODY bool is_own() const { return input != nullptr && output != nullptr; }
  // Its chunks that are this lane's.
  TUTTI_BODY std::uint32_t chunks_of(int lane) const {
    if (lane >= lanes) return 0;
    const std::size_t all = (bytes + chunk_bytes - 1) / chunk_bytes;
    const auto first = static_cast<std::size_t>(lane), stride = static_cast<std::size_t>(lanes);
    return first < all ? static_cast<std::uint32_t>((all - first + stride - 1) / stride) : 0;
  }
  // All that is this lane's, where the message goes to its place at once.
  TUTTI_BODY Range part(int lane) const {
    const std::size_t length = divided(bytes, lanes, 16);
    const std::size_t first = length * static_cast<std::size_t>(lane);
    return cut({first, length}, bytes);
  }
  TUTTI_BODY Range chunk(int lane, std::uint32_t index) const {
    const std::size_t first =
        (std::size_t{index} * static_cast<std::size_t>(lanes) + static_cast<std::size_t>(lane)) *
        chunk_bytes;
    const std::size_t left = bytes - first;
    return {first, left < chunk_bytes ? left : chunk_bytes};
  }
};

// The messages of one operation of one rank. Those to, or from, one peer go in their order.
struct Messages {
  Message at[kMaxMessages];
  std::int32_t number;
  std::int32_t ranks;
  std::size_t slot_bytes;            // of slots for chunks; a multiple of 16
  PeerPointers memory;               // MessageMemory, by rank
  MessageCounts* counts;             // [kMessageCounts]
  const RegistrationEntry* windows;  // [kRegistrationEntries]

  // Where a message to `peer` goes that is posted there; null where that is not known here.
  TUTTI_BODY std::byte* place_of(PostedPlace place, int peer) const {
    const RegistrationEntry& window = windows[place.window % kRegistrationEntries];
    return window.window == place.window ? window.at.at[peer] + place.offset : nullptr;
  }

  TUTTI_BODY MessageFlags& flags(int owner, int lane, int teller) const {
    return reinterpret_cast<MessageMemory*>(memory.at[owner])->of[lane][teller];
  }
  // Where chunk `chunk` of that lane lies, from `source` to `owner`.
  TUTTI_BODY std::byte* slot(bool packets, int owner, int source, int lane,
                             std::uint64_t chunk) const {
    const auto other = static_cast<std::size_t>(source < owner ? source : source - 1);
    const auto slots = static_cast<std::size_t>(slots_of(packets));
    const std::size_t index =
        (other * kLanes + static_cast<std::size_t>(lane)) * slots + chunk % slots;
    std::byte* const first = memory.at[owner] + sizeof(MessageMemory);
    if (packets) return first + index * kPacketSlotBytes;
    return first + packet_slots_bytes(ranks) + index * slot_bytes;
  }
  static constexpr TUTTI_BODY std::size_t packet_slots_bytes(int ranks) {
    return static_cast<std::size_t>(ranks - 1) * kLanes * kPacketSlots * kPacketSlotBytes;
  }
};

// What marks the packets of chunk k: the low half of k + 1, but for 0, which is in words that were
// never written.
constexpr TUTTI_BODY std::uint32_t mark_of(std::uint64_t chunk) {
  const auto mark = static_cast<std::uint32_t>(chunk + 1);
  return mark != 0 ? mark : 1;
}

// What marks the packets of a chunk, and who sends them.
struct MarkedFrom {
  std::uint32_t mark;
  std::int32_t peer;
};

// A step of a lane: chunk `chunk` of all that its pair has seen is `index` of the message's own.
struct MessageMove {
  enum Kind : std::uint8_t { kNothing, kIdle, kSend, kTake, kOwn } kind;
  std::int32_t message;
  std::uint32_t index;
  std::uint64_t chunk;
  std::byte* place;  // null, or where the whole message goes, or has come
};

}  // namespace tutti
