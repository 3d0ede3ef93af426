// Epoch packets, for data that may have any bits: each word carries the low half of the epoch it
// belongs to, and the owner polls for that. Nothing is cleared between launches; two generations of
// slots are enough, since a peer that pushes into a slot again, two launches later, has had packets
// that were pushed after the slot was read.
//
// A word that only large messages use may hold a packet of long ago, whose low half of the epoch will
// come again. So at each crossing of half the range (2^31 there, 2 launches here) all slots are cleared
// under a barrier: to an epoch of the half that is over.

#define SLOT(owner, generation, source, word) \
  (1 + (((owner) * 2 + (generation)) * RANKS + (source)) * 4 + (word))
#define MAX_WORDS 2
#define DATA_PART 2  // of a slot: where data lies if the mutation parts it from its epoch
#define DATA_WORDS 1  // nobody's: slots and flags are only polled
#define FIRST_FLAG (1 + RANKS * 2 * RANKS * 4)
#define BUFFERED (10 * RANKS - 8)

// Mutations: what is left out, or done wrong.
#define ONE_GENERATION (mutation == 1)            // the second generation
#define EPOCH_IGNORED (mutation == 2)             // the comparison of epochs
#define DATA_APART (mutation == 3)                // data and epoch are stored apart
#define NOT_CLEARED (mutation == 4)               // the clear at a crossing
#define NO_BARRIER (mutation == 5)                // the barrier behind the clear
#define CLEAR_NOT_RELEASED (mutation == 6)        // the release of the barrier behind the clear
#define CLEARED_TO_ZERO (mutation == 7)           // slots are cleared to an epoch that will come
#define POLL_LEFT_OUT (mutation == 8)             // one rank's poll of one peer
#define PUSH_LEFT_OUT (mutation == 9)             // one rank's packets to one peer

#include "flags.pml"

#define HALF 2  // launches to a crossing; the low half of an epoch counts to twice that
#define LOW_EPOCH(k) ((k) % (2 * HALF))
#define DATA(source, word) (launch * 4 + (source) * MAX_WORDS + (word))
#define PACKET(data, k) ((data) * 2 * HALF + LOW_EPOCH(k))
#define GENERATION (ONE_GENERATION -> 0 : launch % 2)

inline push(me) {
  atomic {
    for (other : 0 .. RANKS - 1) {
      if
      :: other == me || PUSH_LEFT_OUT && me == 0 && other == RANKS - 1
      :: else ->
         for (word : 0 .. words - 1) {
           when(DATA_APART, store(me, SLOT(other, GENERATION, me, DATA_PART + word), launch));
           store(me, SLOT(other, GENERATION, me, word), PACKET(DATA(me, word), launch))
         }
      fi
    }
    other = 0;
    word = 0
  }
}

#define TAKEN(packet) \
  (LOW_EPOCH(packet) == LOW_EPOCH(launch) || EPOCH_IGNORED && (packet) != 0 || \
   POLL_LEFT_OUT && me == 0 && other == RANKS - 1)

// Polls for one word of a packet. Blocks, rather than turns, where no poll can bring anything new.
inline poll(me) {
  do
  :: atomic {
       UNDER_WAY(slot) || TAKEN(memory[slot]) ->
       deliver_some(slot);
       value = memory[slot];
       when(under_way[me].at[slot] > 0, own_store(me, slot, value));
       if
       :: TAKEN(value) ->
          assert(value == PACKET(DATA(other, word), launch));  // this launch's
          break
       :: else -> value = 0
       fi
     }
  od;
  value = 0
}

inline check_apart() {
  atomic {
    deliver_some(slot + DATA_PART);
    assert(memory[slot + DATA_PART] == launch)
  }
}

inline poll_all(me) {
  for (other : 0 .. RANKS - 1) {
    if
    :: other == me
    :: else ->
       for (word : 0 .. words - 1) {
         slot = SLOT(me, GENERATION, other, word);
         poll(me);
         when(DATA_APART, check_apart())
       }
    fi
  }
  other = 0;
  word = 0;
  slot = 0
}

inline clear_word(me, a) {
  store(me, a, (CLEARED_TO_ZERO -> 0 : LOW_EPOCH(launch - 1)))
}

inline clear_all(me) {
  for (other : 0 .. RANKS - 1) {
    for (word : 0 .. MAX_WORDS - 1) {
      unless(other == me, clear_word(me, SLOT(me, 0, other, word)));
      unless(other == me, clear_word(me, SLOT(me, 1, other, word)))
    }
  }
  other = 0;
  word = 0
}

inline cross(me) {
  atomic {
    unless(NOT_CLEARED, clear_all(me));
    unless(NO_BARRIER, arrive(me, !CLEAR_NOT_RELEASED))
  }
  unless(NO_BARRIER, wait(me, true))
}

proctype rank(byte me) {
  FLAG_VARIABLES;
  byte launch, words, other, word, slot, value;

  for (launch : 1 .. LAUNCHES) {
    atomic {
      words = (launch % (2 * HALF) == 1 -> MAX_WORDS : 1);
      kernel_boundary(me)
    }
    when(launch % HALF == 0, cross(me));
    push(me);
    poll_all(me)
  }
}

init {
  byte r;
  choose_mutation();
  atomic {
    for (r : 0 .. RANKS - 1) {
      run rank(r)
    }
  }
}
