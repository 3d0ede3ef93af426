// What a test may take away from a protocol, to see that its absence is found. Barriers, copies and
// scalars are numbered from 0 in the order in which one operation of one block comes to them; every
// rank does the same wrong thing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/team.hpp"

namespace tutti::simulated {

struct Mutation {
  enum class Kind : std::uint8_t {
    kNone,
    kNoBarrier,          // neither arrives nor waits
    kNoArrival,          // counts, but tells nobody
    kNoSignal,           // does not tell the rank `peer` places on
    kNoWait,             // goes on without waiting
    kNoWaitFor,          // does not wait for the rank `peer` places on
    kPublishLess,        // stores published as loads, loads as nothing of this operation
    kNoAcquire,          // the wait acquires nothing
    kOldEpoch,           // takes the flag of the barrier before for this one's
    kEpochNotKept,       // the operation ends without keeping its epoch
    kNoCopyIn,           // staging is not filled
    kNoCopyOut,          // nor emptied
    kNoScalar,           // the multiplier is not published
    kNoCounts,           // nor what a rank has for each
    kNoBulkWait,         // goes on before its bulk copies are complete
    kNoSignature,        // does not compare what the peer runs
    kNoPoison,           // begins although the rank is poisoned, and nobody takes flags back
    kFlagsNotTakenBack,  // stops waiting, and lets its flags stand

    // Of packets: `at` is the part of the operation.
    kNoPush,            // to the rank `peer` places on
    kNoPoll,            // takes what lies there
    kWordNotPolled,     // likewise, the last word of each tile alone
    kNoClear,           // leaves the packets where they are
    kWordNotCleared,    // likewise, the last word of each tile alone
    kOneGeneration,     // every launch uses the same slots
    kEmptySent,         // a word that means "empty" is sent as it is
    kLaunchNotCounted,  // the last block to come does not begin the next launch
    kNoAnnouncement,    // to the rank `peer` places on
    kNoClosing,         // ends without the others' announcements

    // Of a ring: `at` is the direction, or what a pass does.
    kNoChunkWait,      // takes what lies in the slot
    kNoChunkAcquire,   // sees that a chunk has come, but need not see the chunk
    kNoChunk,          // does not tell that chunks are sent
    kNoCreditWait,     // sends into slots that may not be free
    kNoCreditAcquire,  // sees that a slot is free, but may store before it was loaded from
    kNoCredit,         // does not tell that slots are free
    kCreditTooMany,    // takes one slot for free before it is
    kPassNotReleased,  // tells before what it tells of is so
  };
  Kind kind = Kind::kNone;
  int at = 0;
  int peer = 0;

  bool operator==(const Mutation&) const = default;
};

// "barrier 1: no wait for the next rank but 1"
std::string describe(const Mutation& mutation);

// What one operation of a block did: what there is to take away.
struct Trace {
  std::vector<Publish> arrivals;
  int copies_in = 0, copies_out = 0, scalars = 0, counts = 0, bulk_waits = 0;
  int parts = 0;                 // of packets
  int chunks[2] = {};            // that went around a ring, by direction
  bool uses_credits = false;     // its chunks go through slots
  std::vector<unsigned> passes;  // different ones
};
std::vector<Mutation> mutations_of(const Trace& trace, int ranks);

}  // namespace tutti::simulated
