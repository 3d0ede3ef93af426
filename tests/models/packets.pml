// Packets, as src/device/packets.hpp tells them: data that is its own flag. Each launch pushes its
// words into slots at the peers, where an empty word is zero; the owner polls until none is empty,
// takes them, and empties them at once. No packet needs a fence.
//
// Slots belong to (owner, generation, part, source); launch k uses generation k % 2. Each launch is
// announced by a flag when it begins, and ends when all have announced it: then what they took in the
// launch before has been emptied, and may be filled by the next one. A launch may have nothing to
// push, so announcements alone have to keep ranks together.
//
// INTEGERS: each half of a word travels beside a mark; else words are complemented, and what would be
// empty is sent as another NaN. PARTS: how often a launch pushes and polls. HOST: no kernel ends, but
// announcements release. OTHER_OPERATION: the last rank runs another operation than its peers at the
// end, with as many words or with none; nobody may take that launch for done.

#ifndef PARTS
#define PARTS 1
#endif
#ifndef MAX_WORDS
#define MAX_WORDS 2
#endif
#define SLOT(owner, generation, part, source, word) \
  (1 + ((((owner) * 2 + (generation)) * PARTS + (PARTS_SHARE_A_SLOT -> 0 : (part))) * RANKS + \
        (SOURCES_SHARE_A_SLOT -> 0 : (source))) * MAX_WORDS + (word))
#define DATA_WORDS 1  // nobody's: slots and flags are only polled
#define FIRST_FLAG (1 + RANKS * 2 * PARTS * RANKS * MAX_WORDS)
#define BUFFERED (8 * PARTS * RANKS)

// Mutations: what is left out, or done wrong.
#define ONE_GENERATION (mutation == 1)            // the second generation
#define SIGNAL_LEFT_OUT (mutation == 2)           // one rank's announcements at one peer
#define WAIT_LEFT_OUT (mutation == 3)             // one rank's wait for one peer's announcements
#define ANNOUNCED_EARLY (mutation == 4)           // a launch is announced before the one before it ends
#define KERNELS_OVERLAP (mutation == 5)           // the end of a kernel before the next one begins
#define NOT_EMPTIED (mutation == 6)               // the emptying of what was taken
#define ONE_WORD_EMPTIED (mutation == 7)          // the emptying of every word but the first
#define EMPTIED_EARLY (mutation == 8)             // a launch empties what it will poll, not what it took
#define EMPTIED_LATE (mutation == 9)              // what was taken is emptied by the next launch
#define POLL_LEFT_OUT (mutation == 10)            // one rank's poll of one peer
#define ONE_WORD_POLLED (mutation == 11)          // the check of every word but the first
#define PUSH_LEFT_OUT (mutation == 12)            // one rank's packets to one peer
#define EMPTY_SENT (mutation == 13)               // the rewriting of data that would be empty
#define MARK_LEFT_OUT (mutation == 14)            // integers: the mark
#define SOURCES_SHARE_A_SLOT (mutation == 15)     // a slot of its own for each source
#define PARTS_SHARE_A_SLOT (mutation == 16)       // a slot of its own for each part
#define EPOCH_COMPARED_EQUAL (mutation == 17)     // a wait asks for its launch, not for one as late
#define HALVES_NOT_COMPARED (mutation == 18)      // a flag is taken though its halves disagree
#define ONE_FLAG_FOR_ALL (mutation == 19)         // all peers write the same flag
#define SIGNATURE_IGNORED (mutation == 20)        // a mismatch of signatures ends nothing
#define NEVER_LOOKED (mutation == 21)             // a poll that waits long looks at no announcement
#define EPOCH_NOT_RELEASED (mutation == 22)       // host: the release of an announcement
#define NO_ACQUIRE (mutation == 23)               // host: the acquire of an announcement
// redundant: what is behind it is only polled, and no store here goes ahead of a load

#include "flags.pml"

#define EMPTY 0
#ifdef INTEGERS
#define LOOKS_EMPTY 0  // of a half
#define ENCODED(half) ((half) + (MARK_LEFT_OUT -> 0 : 128))
#else
#define LOOKS_EMPTY 255  // all ones
#define ENCODED(data) (255 - ((data) == LOOKS_EMPTY && !EMPTY_SENT -> 254 : (data)))
#endif
#define DATA(source, word) \
  (launch == 3 && (source) == 0 -> LOOKS_EMPTY : \
   ((launch * PARTS + part) * RANKS + (source)) * MAX_WORDS + (word))
#ifdef OTHER_OPERATION
#define OPERATIONS_DIFFER (launch == LAUNCHES)
#else
#define OPERATIONS_DIFFER false
#endif
#define SHOWS_OTHER(e, check) (HAS_COME(e, check) && IS_OTHER(e, check))
#define PACKET(source, word) ENCODED(DATA(source, word))
#define COUNT(k) ((k) % 3 == 1 -> MAX_WORDS : ((k) % 3 == 2 -> 0 : 1))  // words of launch k
#define GENERATION(k) (ONE_GENERATION -> 0 : (k) % 2)

inline push(me) {
  for (other : 0 .. RANKS - 1) {
    if
    :: other == me || PUSH_LEFT_OUT && me == 0 && other == RANKS - 1
    :: else ->
       for (word : 0 .. words - 1) {
         store(me, SLOT(other, GENERATION(launch), part, me, word), PACKET(me, word))
       }
    fi
  }
  other = 0;
  word = 0
}

// Empties what launch k takes in this part.
inline empty_slots(me, k, size) {
  for (other : 0 .. RANKS - 1) {
    if
    :: other == me
    :: else ->
       for (word : 0 .. size - 1) {
         unless(ONE_WORD_EMPTIED && word > 0,
                store(me, SLOT(me, GENERATION(k), part, other, word), EMPTY))
       }
    fi
  }
  other = 0;
  word = 0
}

// A word taken without having been polled for.
#define TAKEN_UNSEEN (ONE_WORD_POLLED && word > 0 || POLL_LEFT_OUT && me == 0 && other == RANKS - 1)

#define POLLED SLOT(me, GENERATION(launch), part, other, word)
// Polls for one word of a packet. Blocks, rather than turns, where no poll can bring anything new.
inline poll_word(me) {
  do
  :: atomic {
       UNDER_WAY(POLLED) || memory[POLLED] != EMPTY || TAKEN_UNSEEN ->
       deliver_some(POLLED);
       value = memory[POLLED];
       when(under_way[me].at[POLLED] > 0, own_store(me, POLLED, value));
       if
       :: value != EMPTY || TAKEN_UNSEEN ->
          assert(value == PACKET(other, word) || OPERATIONS_DIFFER);  // this launch's, and all of it
          value = 0;
          break
       :: else -> value = 0
       fi
     }
#ifdef OTHER_OPERATION
  :: atomic {  // a poll that waits long looks at the announcement, too
       OPERATIONS_DIFFER && !NEVER_LOOKED &&
       (UNDER_WAY(EPOCH(me, other)) || UNDER_WAY(CHECK(me, other)) ||
        SHOWS_OTHER(memory[EPOCH(me, other)], memory[CHECK(me, other)])) ->
       peer = other;
       look_at_flag(me);
       mismatch = SHOWS_OTHER(seen_epoch, seen_check);
       when(mismatch && !SIGNATURE_IGNORED, goto failed);
       peer = 0;
       seen_epoch = 0;
       seen_check = 0
     }
#endif
  od
}

inline poll(me) {
  for (other : 0 .. RANKS - 1) {
    if
    :: other == me
    :: else ->
       for (word : 0 .. words - 1) {
         poll_word(me)
       }
    fi
  }
  other = 0;
  word = 0
}

inline begin(me) {
  words = COUNT(launch);
  if
  :: signature == 2 -> words = 0
  :: skip
  fi;
#ifndef HOST
  unless(KERNELS_OVERLAP, kernel_boundary(me));
#endif
  unless(ANNOUNCED_EARLY, arrive(me, false));
  when(EMPTIED_LATE, empty_slots(me, launch - 1, COUNT(launch - 1)));
  when(EMPTIED_EARLY, empty_slots(me, launch, words));
  push(me)
}

inline finish(me) {
#ifdef HOST
  wait(me, !NO_ACQUIRE);
#else
  wait(me, false);
#endif
  when(mismatch && !SIGNATURE_IGNORED, goto failed);
  assert(!OPERATIONS_DIFFER)
}

proctype rank(byte me) {
  FLAG_VARIABLES;
  byte launch, words, part, other, word, value;

  for (launch : 1 .. LAUNCHES) {
    signature = (me == RANKS - 1 && OPERATIONS_DIFFER -> 2 : 1);
    when(ANNOUNCED_EARLY, arrive(me, false));
    atomic { begin(me) }
    do
    :: poll(me);
       atomic {
         unless(NOT_EMPTIED || EMPTIED_EARLY || EMPTIED_LATE, empty_slots(me, launch, words));
         part++;
         if
         :: part < PARTS -> push(me)
         :: else -> part = 0; break
         fi
       }
    od;
    finish(me)
  }
  goto done;
failed:
  assert(OPERATIONS_DIFFER);  // else all run the same
done:
  skip
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
