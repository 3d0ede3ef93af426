// Packets: data that is its own flag. Each launch pushes its words into slots at the peers, where an
// empty slot holds the sentinel; the owner polls until none of the words is the sentinel.
//
// Slots belong to (owner, generation, source). Launch k uses generation k % 3, and clears what launch
// k - 1 consumed: as many words as that one recorded, not as many as it has itself. The clear counts
// when its kernel has ended, before launch k + 1 pushes; a peer that pushes into the slot again, in
// its launch k + 2, has consumed what launch k + 1 pushed. So no packet needs a fence.

#define GENERATIONS 3
#ifndef MAX_WORDS
#define MAX_WORDS 2
#endif
#define SLOT(owner, generation, source, word) \
  (1 + (((owner) * GENERATIONS + (generation)) * RANKS + (ONE_SLOT_FOR_ALL -> 0 : (source))) * \
           MAX_WORDS + (word))
#define DATA_WORDS 1  // nobody's: slots are only polled
#define WORDS (1 + RANKS * GENERATIONS * RANKS * MAX_WORDS)
#define BUFFERED (4 * RANKS)

// Mutations: what is left out, or done wrong.
#define TWO_GENERATIONS (mutation == 1)           // the third generation
#define NOT_CLEARED (mutation == 2)               // the clear
#define CLEARED_BY_ITS_OWN_COUNT (mutation == 3)  // the record of what a generation consumed
#define CLEARED_IN_USE (mutation == 4)            // a launch clears the slots that it will poll
#define CLEARED_BY_SENDER (mutation == 5)         // the sender clears, not the consumer
#define KERNELS_OVERLAP (mutation == 6)           // the kernel boundary before a launch pushes
#define SENTINEL_SENT (mutation == 7)             // the rewriting of data that equals the sentinel
#define ONE_WORD_POLLED (mutation == 8)           // the check of every word but the first
#define POLL_LEFT_OUT (mutation == 9)             // one rank's poll of one peer
#define PUSH_LEFT_OUT (mutation == 10)            // one rank's packets to one peer
#define ONE_SLOT_FOR_ALL (mutation == 11)         // sources share a slot

#include "weak_memory.pml"

#define SENTINEL 0
#define ANOTHER_NAN 255
#define DATA(source, word) \
  (launch == 2 && source == 0 -> SENTINEL : ((launch * RANKS) + (source)) * MAX_WORDS + (word))
#define PACKET(source, word) \
  (DATA(source, word) == SENTINEL && !SENTINEL_SENT -> ANOTHER_NAN : DATA(source, word))
#define COUNT(k) ((k) % 3 == 1 -> MAX_WORDS : 1)  // words of launch k
#define GENERATION(k) ((k) % (TWO_GENERATIONS -> 2 : 3))

inline push(me) {
  for (other : 0 .. RANKS - 1) {
    if
    :: other == me || PUSH_LEFT_OUT && me == 0 && other == RANKS - 1
    :: else ->
       for (word : 0 .. words - 1) {
         store(me, SLOT(other, GENERATION(launch), me, word), PACKET(me, word))
       }
    fi
  }
  other = 0;
  word = 0
}

// Clears the slots of a generation: this rank's own, where nobody broke the rule.
inline clear(me, generation, size) {
  for (other : 0 .. RANKS - 1) {
    if
    :: other == me
    :: else ->
       for (word : 0 .. size - 1) {
         if
         :: CLEARED_BY_SENDER -> store(me, SLOT(other, generation, me, word), SENTINEL)
         :: else -> store(me, SLOT(me, generation, other, word), SENTINEL)
         fi
       }
    fi
  }
  other = 0;
  word = 0
}

// A word taken without having been polled for.
#define TAKEN_UNSEEN (ONE_WORD_POLLED && word > 0 || POLL_LEFT_OUT && me == 0 && other == RANKS - 1)

// Polls for one word of a packet. Blocks, rather than turns, where no poll can bring anything new.
inline poll(me) {
  do
  :: atomic {
       UNDER_WAY(slot) || memory[slot] != SENTINEL || TAKEN_UNSEEN ->
       deliver_some(slot);
       value = memory[slot];
       when(under_way[me].at[slot] > 0, own_store(me, slot, value));
       if
       :: value != SENTINEL || TAKEN_UNSEEN ->
          assert(value == PACKET(other, word));  // this launch's, and all of it
          break
       :: else -> value = 0
       fi
     }
  od;
  value = 0
}

inline poll_all(me) {
  for (other : 0 .. RANKS - 1) {
    if
    :: other == me
    :: else ->
       for (word : 0 .. words - 1) {
         slot = SLOT(me, GENERATION(launch), other, word);
         poll(me)
       }
    fi
  }
  other = 0;
  word = 0;
  slot = 0
}

proctype rank(byte me) {
  byte launch, words, other, word, slot, value, consumed;

  for (launch : 1 .. LAUNCHES) {
    atomic {
      words = COUNT(launch);
      unless(KERNELS_OVERLAP, kernel_boundary(me));
      when(CLEARED_IN_USE, clear(me, GENERATION(launch), words));
      push(me)
    }
    when(CLEARED_BY_ITS_OWN_COUNT && consumed > 0, consumed = words);
    unless(NOT_CLEARED || CLEARED_IN_USE || consumed == 0,
           clear(me, GENERATION(launch - 1), consumed));
    poll_all(me);
    consumed = words  // on the device: replays of a graph find it there
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
