// What one rank does in a call of all_gather_matmul/fused in memory that all ranks share: in which
// order it puts, tells, waits and multiplies. Written once, for host threads and for tests that run
// ranks on a simulated memory.
//
// A chunk's flag holds the last epoch whose data is there. ended[r] holds the last call that rank r
// has ended, which no longer reads what was put into its memory. A rank without rows has a flag,
// too, for which all wait: so who ends a call knows that every rank has begun it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "matmul/kernel/arrival.hpp"

namespace tutti::fused {

struct ArrivingCall {
  const ArrivalGate&
      gate;  // its chunks of one k-group, its parts and order; tiles have all columns
  int tile_rows = 1;
  int ranks = 1;
  ArrivalWaits arrived;  // for chunks, of this call's epoch
  ArrivalWaits ended;    // for ranks, of the epoch before

  int rank() const { return gate.chunks.own; }
  GroupOfRows own_rows() const { return {gate.parts.end[0], gate.parts.end[1]}; }
  int first_flag(int rank) const { return rank * gate.chunks.chunks; }
  bool has_rows(int rank) const {
    return static_cast<long long>(rank) * gate.chunks.shard_rows < gate.chunks.m;
  }
};

// Rank says how this is done. It has the Words of gate.hpp, and:
//   put(peer, rows)             copies this rank's rows of A into the peer's memory
//   tell_arrived(peer, flag)    stores the epoch into the peer's flag, with release
//   bool multiply(rows, own)    `own`: rows of this rank's shard; false ends the call
//   finish()                    what else has to be done with the gathered A
//   tell_ended(peer)            stores the epoch into the peer's ended[this rank], with release
template <class Rank>
void put_own_rows(Rank& rank, const ArrivingCall& call, int peer) {
  const int chunk_rows = call.gate.chunks.chunk_rows;
  const GroupOfRows own = call.own_rows();
  int flag = call.first_flag(call.rank());
  if (own.begin == own.end) rank.tell_arrived(peer, flag);
  for (int row = own.begin; row < own.end; row += chunk_rows) {
    rank.put(peer, GroupOfRows{row, std::min(row + chunk_rows, own.end)});
    rank.tell_arrived(peer, flag++);
  }
}

// All tiles, each behind the arrival of its rows.
template <class Rank>
bool multiply_as_it_arrives(Rank& rank, const ArrivingCall& call) {
  const ArrivalGate& gate = call.gate;
  GateState state;
  SegmentedOrder::Cursor cursor;
  for (int i = 0; i < gate.sweep.count(); ++i) {
    const TileRows tile = gate.parts.rows(gate.sweep.at(i, cursor).row, call.tile_rows);
    const GroupOfRows rows{tile.row, std::min(tile.row + call.tile_rows, tile.end)};
    wait_for_rows(rank, gate.chunks, call.arrived, state, rows);
    if (state.failed || !rank.multiply(rows, gate.parts.in_own(rows.begin))) return false;
  }
  return true;
}

// False: a wait or a multiplication has failed.
template <class Rank>
bool run_arriving(Rank& rank, const ArrivingCall& call) {
  const auto each_peer = [&](const auto& f) {  // the next rank first
    bool goes_on = true;
    for (int step = 1; step < call.ranks && goes_on; ++step) {
      goes_on = f((call.rank() + step) % call.ranks);
    }
    return goes_on;
  };
  const bool sent = each_peer([&](int peer) {
    if (!wait_for_chunk(rank, call.ended, peer)) return false;
    put_own_rows(rank, call, peer);
    return true;
  });
  if (!sent || !multiply_as_it_arrives(rank, call)) return false;
  const bool all_have_begun = each_peer([&](int peer) {
    return call.has_rows(peer) || wait_for_chunk(rank, call.arrived, call.first_flag(peer));
  });
  if (!all_have_begun) return false;
  rank.finish();
  return each_peer([&](int peer) {
    rank.tell_ended(peer);
    return true;
  });
}

}  // namespace tutti::fused
