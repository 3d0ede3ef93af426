// The ring of stages of own_matmul (src/matmul/kernel/ring.cuh, producer.cuh, consumer.cuh).
//
//   producer   one per block: waits until a stage is empty, expects its bytes, loads A, and its part of
//              B for all blocks of the cluster
//   TMA        delivers loads in any order, to each block on its own
//   consumer   waits until a stage is full; its products of a stage read it until those of the next
//              stage are under way; then tells the producers of all blocks that it is empty
//
// A barrier counts arrivals and bytes. Its phase ends when both are there. A wait names a parity, so it
// tells a phase only from its neighbours. Of consumers' warps a block has CONSUMERS.

#define PARTS (1 + BLOCKS)  // of a stage: A, and B from each block

// Mutations: what is left out, or done wrong.
#define NO_WAIT_FOR_EMPTY (mutation == 1)         // the producer's wait
#define RELEASES_OWN_BLOCK (mutation == 2)        // the arrivals at the other block's barrier
#define COUNTS_OWN_BLOCK (mutation == 3)          // the other block's consumers in the count of arrivals
#define RELEASES_EARLY (mutation == 4)            // a stage is given back while its products are under way
#define EXPECTS_OWN_LOADS (mutation == 5)         // the bytes that the other block loads
#define EXPECTS_LATE (mutation == 6)              // the expectation before the loads
// redundant: bytes that come early are counted, and the phase cannot end before the producer arrives
#define SAME_PARITY (mutation == 7)               // the change of parity where the ring begins again
#define BEGINS_FULL (mutation == 8)               // the producer's first round, which finds all stages empty
#define NO_MEETING (mutation == 9)                // the meeting of the cluster before a block ends

#include "mutation.pml"

typedef Barrier {
  byte pending;
  short bytes;  // expected, and not here yet; below 0: here, and not expected yet
  bit phase
}
typedef Stage {
  Barrier filled, emptied;
  byte part[PARTS];     // the round whose data is there, from 1
  byte loading[PARTS]   // the round whose data is on its way; 0: none
}
typedef Block {
  Stage stage[STAGES];
  byte ended;  // of its producer and consumers
  bool gone
}
Block block[BLOCKS];
byte ended;

#define ALL (BLOCKS * (1 + CONSUMERS))
#define ARRIVALS (COUNTS_OWN_BLOCK -> CONSUMERS : CONSUMERS * BLOCKS)
#define PASSES(barrier, parity) (barrier.phase != (parity))

inline complete(barrier, arrivals) {
  if
  :: barrier.pending == 0 && barrier.bytes == 0 ->
     barrier.phase = 1 - barrier.phase;
     barrier.pending = arrivals
  :: else
  fi
}

// What is read must be all of this round, and nothing may be on its way to it.
inline check_stage(b, s, round) {
  for (part_ : 0 .. PARTS - 1) {
    assert(block[b].stage[s].part[part_] == round && block[b].stage[s].loading[part_] == 0)
  }
}

inline load(b, s, p, round) {
  assert(block[b].stage[s].loading[p] == 0);
  block[b].stage[s].loading[p] = round
}

inline expect(b, s) {
  block[b].stage[s].filled.bytes =
      block[b].stage[s].filled.bytes + (EXPECTS_OWN_LOADS -> 2 : PARTS);
  block[b].stage[s].filled.pending--;
  complete(block[b].stage[s].filled, 1)
}

inline leave(b) {
  atomic {
    ended++;
    block[b].ended++;
    if
    :: NO_MEETING && block[b].ended == 1 + CONSUMERS -> block[b].gone = true
    :: else
    fi
  }
  (NO_MEETING || ended == ALL)
}

proctype producer(byte me) {
  byte round, s, to;
  bit parity = 1;
  if
  :: BEGINS_FULL -> parity = 0
  :: else
  fi;
  for (round : 1 .. ROUNDS) {
    s = (round - 1) % STAGES;
    (NO_WAIT_FOR_EMPTY || PASSES(block[me].stage[s].emptied, parity));
    if
    :: EXPECTS_LATE
    :: else -> atomic { expect(me, s) }
    fi;
    atomic { load(me, s, 0, round) }
    for (to : 0 .. BLOCKS - 1) {
      atomic { load(to, s, 1 + me, round) }
    }
    if
    :: EXPECTS_LATE -> atomic { expect(me, s) }
    :: else
    fi;
    if
    :: s == STAGES - 1 -> parity = 1 - parity
    :: else
    fi
  }
  leave(me)
}

// A load that is on its way comes at any time: a process for each place.
proctype tma(byte b; byte s; byte p) {
end:
  do
  :: atomic {
       block[b].stage[s].loading[p] != 0 ->
       assert(!block[b].gone);
       block[b].stage[s].part[p] = block[b].stage[s].loading[p];
       block[b].stage[s].loading[p] = 0;
       block[b].stage[s].filled.bytes--;
       complete(block[b].stage[s].filled, 1)
     }
  od
}

inline release(s) {
  for (to : 0 .. BLOCKS - 1) {
    if
    :: RELEASES_OWN_BLOCK && to != me
    :: else ->
       atomic {
         assert(!block[to].gone);
         block[to].stage[s].emptied.pending--;
         complete(block[to].stage[s].emptied, ARRIVALS)
       }
    fi
  }
}

proctype consumer(byte me) {
  byte round, s, before, to, part_;
  bit parity = 0;
  for (round : 1 .. ROUNDS) {
    s = (round - 1) % STAGES;
    PASSES(block[me].stage[s].filled, parity);
    atomic { check_stage(me, s, round) }
    if
    :: RELEASES_EARLY -> release(s)
    :: else
    fi;
    if
    :: round > 1 ->
       before = (round - 2) % STAGES;
       atomic { check_stage(me, before, round - 1) }
       if
       :: RELEASES_EARLY
       :: else -> release(before)
       fi
    :: else
    fi;
    if
    :: s == STAGES - 1 && !SAME_PARITY -> parity = 1 - parity
    :: else
    fi
  }
  atomic { check_stage(me, s, ROUNDS) }
  if
  :: RELEASES_EARLY
  :: else -> release(s)
  fi;
  leave(me)
}

init {
  byte b, s, p, c;
  choose_mutation();
  atomic {
    for (b : 0 .. BLOCKS - 1) {
      for (s : 0 .. STAGES - 1) {
        block[b].stage[s].filled.pending = 1;
        block[b].stage[s].emptied.pending = ARRIVALS
      }
    }
    for (b : 0 .. BLOCKS - 1) {
      for (s : 0 .. STAGES - 1) {
        for (p : 0 .. PARTS - 1) {
          run tma(b, s, p)
        }
      }
      run producer(b);
      for (c : 1 .. CONSUMERS) {
        run consumer(b)
      }
    }
  }
}
