#include "simulator/mutation.hpp"

#include <fmt/format.h>

namespace tutti::simulated {
namespace {

std::string describe_of_packets(const Mutation& mutation) {
  using Kind = Mutation::Kind;
  const int at = mutation.at, peer = mutation.peer;
  switch (mutation.kind) {
    case Kind::kNoPush:
      return fmt::format("part {}: no push to rank + {}", at, peer);
    case Kind::kNoPoll:
      return fmt::format("part {}: no poll", at);
    case Kind::kWordNotPolled:
      return fmt::format("part {}: the last word not polled for", at);
    case Kind::kNoClear:
      return fmt::format("part {}: no clear", at);
    case Kind::kWordNotCleared:
      return fmt::format("part {}: the last word not cleared", at);
    case Kind::kOneGeneration:
      return "the same slots in every launch";
    case Kind::kEmptySent:
      return "a word that means empty sent as it is";
    case Kind::kLaunchNotCounted:
      return "the launch not counted";
    case Kind::kNoAnnouncement:
      return fmt::format("no announcement to rank + {}", peer);
    default:
      return "announcements not waited for";
  }
}

std::string describe_of_ring(const Mutation& mutation) {
  using Kind = Mutation::Kind;
  const std::string_view way = mutation.at == kForward ? "forwards" : "back";
  switch (mutation.kind) {
    case Kind::kNoChunkWait:
      return fmt::format("{}: no wait for chunks", way);
    case Kind::kNoChunkAcquire:
      return fmt::format("{}: chunks not acquired", way);
    case Kind::kNoChunk:
      return fmt::format("{}: chunks not told of", way);
    case Kind::kNoCreditWait:
      return "no wait for credits";
    case Kind::kNoCreditAcquire:
      return "credits not acquired";
    case Kind::kNoCredit:
      return "no credits";
    case Kind::kCreditTooMany:
      return "one credit too many";
    default:
      break;
  }
  std::string moves;
  for (const Direction direction : {kForward, kReverse}) {
    const std::string_view which = direction == kForward ? "forwards" : "back";
    const auto add = [&](std::string_view what) {
      moves += fmt::format("{}{} {}", moves.empty() ? "" : ", ", what, which);
    };
    if ((static_cast<unsigned>(mutation.at) & taken(direction)) != 0) add("taken");
    if ((static_cast<unsigned>(mutation.at) & sent(direction)) != 0) add("sent");
  }
  return fmt::format("a chunk {}: no release", moves);
}

}  // namespace

std::string describe(const Mutation& mutation) {
  using Kind = Mutation::Kind;
  const int at = mutation.at, peer = mutation.peer;
  switch (mutation.kind) {
    case Kind::kNone:
      return "nothing taken away";
    case Kind::kNoBarrier:
      return fmt::format("barrier {} left out", at);
    case Kind::kNoArrival:
      return fmt::format("barrier {}: no signals", at);
    case Kind::kNoSignal:
      return fmt::format("barrier {}: no signal to rank + {}", at, peer);
    case Kind::kNoWait:
      return fmt::format("barrier {}: no wait", at);
    case Kind::kNoWaitFor:
      return fmt::format("barrier {}: no wait for rank + {}", at, peer);
    case Kind::kPublishLess:
      return fmt::format("barrier {}: weaker release", at);
    case Kind::kNoAcquire:
      return fmt::format("barrier {}: no acquire", at);
    case Kind::kOldEpoch:
      return fmt::format("barrier {}: the epoch before is enough", at);
    case Kind::kEpochNotKept:
      return "epoch not kept at the end";
    case Kind::kNoCopyIn:
      return fmt::format("copy {} into staging left out", at);
    case Kind::kNoCopyOut:
      return fmt::format("copy {} out of staging left out", at);
    case Kind::kNoScalar:
      return "multiplier not published";
    case Kind::kNoCounts:
      return "counts not published";
    case Kind::kNoBulkWait:
      return fmt::format("wait {} for bulk copies left out", at);
    case Kind::kNoSignature:
      return "signatures not compared";
    case Kind::kNoPoison:
      return "poison not read at entry, nor flags taken back";
    case Kind::kFlagsNotTakenBack:
      return "flags not taken back on giving up";
    default:
      return mutation.kind >= Kind::kNoChunkWait ? describe_of_ring(mutation)
                                                 : describe_of_packets(mutation);
  }
}

namespace {

// Credits are waited for where there are more chunks than slots.
void add_of_ring(const Trace& trace, std::vector<Mutation>& all) {
  using Kind = Mutation::Kind;
  for (const Direction direction : {kForward, kReverse}) {
    if (trace.chunks[direction] == 0) continue;
    for (const Kind kind : {Kind::kNoChunkWait, Kind::kNoChunkAcquire, Kind::kNoChunk}) {
      all.push_back({kind, direction, 0});
    }
  }
  if (trace.uses_credits && trace.chunks[kForward] > RingSlots::kPerBlock) {
    for (const Kind kind :
         {Kind::kNoCreditWait, Kind::kNoCreditAcquire, Kind::kNoCredit, Kind::kCreditTooMany}) {
      all.push_back({kind, 0, 0});
    }
  }
  for (const unsigned moves : trace.passes) {
    // That a chunk is taken is told where senders wait for slots, and of slots forwards alone.
    const unsigned silent = taken(kReverse) | (trace.uses_credits ? 0 : taken(kForward));
    if ((moves & ~silent) == 0) continue;
    all.push_back({Kind::kPassNotReleased, static_cast<int>(moves), 0});
  }
}

// An announcement that nobody waits for is missed where operations differ, see misfortunes.
void add_of_packets(const Trace& trace, int ranks, std::vector<Mutation>& all) {
  using Kind = Mutation::Kind;
  for (int part = 0; part < trace.parts; ++part) {
    for (int peer = 1; peer < ranks; ++peer) all.push_back({Kind::kNoPush, part, peer});
    for (const Kind kind :
         {Kind::kNoPoll, Kind::kWordNotPolled, Kind::kNoClear, Kind::kWordNotCleared}) {
      all.push_back({kind, part, 0});
    }
  }
  for (const Kind kind : {Kind::kOneGeneration, Kind::kEmptySent, Kind::kLaunchNotCounted}) {
    all.push_back({kind, 0, 0});
  }
  for (int peer = 1; peer < ranks; ++peer) all.push_back({Kind::kNoAnnouncement, 0, peer});
}

}  // namespace

std::vector<Mutation> mutations_of(const Trace& trace, int ranks) {
  using Kind = Mutation::Kind;
  std::vector<Mutation> all;
  const int barriers = static_cast<int>(trace.arrivals.size());
  for (int b = 0; b < barriers; ++b) {
    for (const Kind kind : {Kind::kNoBarrier, Kind::kNoArrival, Kind::kNoWait, Kind::kNoAcquire}) {
      all.push_back({kind, b, 0});
    }
    for (int peer = 1; peer < ranks; ++peer) all.push_back({Kind::kNoSignal, b, peer});
    if (trace.arrivals[static_cast<std::size_t>(b)] != Publish::kEarlierKernels) {
      all.push_back({Kind::kPublishLess, b, 0});
    }
    // A ring's epochs count chunks, too, and those make up for one rank that was not waited for
    // unless it runs something else: see misfortunes.
    if (!trace.passes.empty()) continue;
    all.push_back({Kind::kOldEpoch, b, 0});
    for (int peer = 1; peer < ranks; ++peer) all.push_back({Kind::kNoWaitFor, b, peer});
  }
  for (int i = 0; i < trace.copies_in; ++i) all.push_back({Kind::kNoCopyIn, i, 0});
  for (int i = 0; i < trace.copies_out; ++i) all.push_back({Kind::kNoCopyOut, i, 0});
  for (int i = 0; i < trace.scalars; ++i) all.push_back({Kind::kNoScalar, i, 0});
  for (int i = 0; i < trace.counts; ++i) all.push_back({Kind::kNoCounts, i, 0});
  for (int i = 0; i < trace.bulk_waits; ++i) all.push_back({Kind::kNoBulkWait, i, 0});
  if (barriers > 0) all.push_back({Kind::kEpochNotKept, 0, 0});
  if (trace.parts > 0) add_of_packets(trace, ranks, all);
  add_of_ring(trace, all);
  return all;
}

}  // namespace tutti::simulated
