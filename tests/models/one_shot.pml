// all_reduce/one_shot over the flag barrier: every rank reads everybody's input.
//
// STAGED: through staging, in PASSES that use the same words one after the other; else in place,
// where the caller overwrites the input between two operations. OTHER_OPERATION: the last rank runs
// another operation than its peers at the end; nobody may store a result of it.

#ifndef PASSES
#define PASSES 1
#endif
#define SOURCE(r) (r)  // what peers read: the input, or staging
#define DATA_WORDS RANKS
#define FIRST_FLAG DATA_WORDS
#define BUFFERED (6 * RANKS + 4)

// Mutations: what is left out, or done wrong.
#define FIRST_BARRIER_LEFT_OUT (mutation == 1)    // the barrier before the loads
#define SECOND_BARRIER_LEFT_OUT (mutation == 2)   // the barrier behind the loads
#define STAGING_NOT_RELEASED (mutation == 3)      // the release of the first arrival
#define FIRST_WAIT_NO_ACQUIRE (mutation == 4)     // the acquire of the first wait
#define SECOND_WAIT_NO_ACQUIRE (mutation == 5)    // the acquire of the second wait
// redundant: what follows stores only; the next load of a peer's is behind the next first wait
#define SIGNAL_LEFT_OUT (mutation == 6)           // one rank's flag at one peer
#define WAIT_LEFT_OUT (mutation == 7)             // one rank's wait for one peer
#define ARRIVES_BEFORE_STAGING (mutation == 8)    // the first arrival comes before the copy in
#define ARRIVES_BEFORE_LOADING (mutation == 9)    // the second arrival comes before the loads
#define EPOCH_STANDS (mutation == 10)             // the second barrier has the epoch of the first
#define EPOCH_NOT_KEPT (mutation == 11)           // each operation begins with the first epoch again
#define EPOCH_COMPARED_EQUAL (mutation == 12)     // a wait asks for its epoch, not for one as late
#define HALVES_NOT_COMPARED (mutation == 13)      // a flag is taken though its halves disagree
#define ONE_FLAG_FOR_ALL (mutation == 14)         // all peers write the same flag
#define SIGNATURE_IGNORED (mutation == 15)        // a mismatch of signatures ends nothing
#define EPOCH_NOT_RELEASED (mutation == 16)       // host: the epoch may arrive before the check

#include "flags.pml"

#define STEP ((operation - 1) * PASSES + pass - 1)
#define VALUE(r) (STEP * RANKS + (r) + 1)  // of the input of rank r
#define SUM (RANKS * (STEP * RANKS + 1) + RANKS * (RANKS - 1) / 2)

inline load_and_reduce(me) {
  atomic {
    for (from : 0 .. RANKS - 1) {
      load(me, SOURCE(from), value);
      assert(value == VALUE(from));  // there, and not overwritten yet
      sum = sum + value;
      value = 0
    }
    from = 0;
    assert(sum == SUM);
    sum = 0
  }
}

inline first_barrier(me) {
#ifdef STAGED
  atomic {
    unless(ARRIVES_BEFORE_STAGING, store(me, SOURCE(me), VALUE(me)));
    arrive(me, !STAGING_NOT_RELEASED);
    when(ARRIVES_BEFORE_STAGING, store(me, SOURCE(me), VALUE(me)))
  }
#else
  arrive(me, false);  // the input was written by an earlier kernel
#endif
  wait(me, !FIRST_WAIT_NO_ACQUIRE)
}

inline second_barrier(me) {
  when(EPOCH_STANDS, epoch--);
  unless(ARRIVES_BEFORE_LOADING, arrive(me, false));  // the loads have returned
  wait(me, !SECOND_WAIT_NO_ACQUIRE)
}

proctype rank(byte me) {
  FLAG_VARIABLES;
  byte operation, pass, from, value, sum;

  for (operation : 1 .. OPERATIONS) {
    signature = operation;
#ifdef OTHER_OPERATION
    when(me == RANKS - 1 && operation == OPERATIONS, signature = 15);
#endif
    when(EPOCH_NOT_KEPT, epoch = 0);
    for (pass : 1 .. PASSES) {
#ifndef STAGED
      atomic {  // the caller's kernel
        store(me, SOURCE(me), VALUE(me));
        kernel_boundary(me)
      }
#endif
      unless(FIRST_BARRIER_LEFT_OUT, first_barrier(me));
      if
      :: mismatch && !SIGNATURE_IGNORED -> goto failed
      :: else
      fi;
#ifdef OTHER_OPERATION
      assert(operation != OPERATIONS);  // nobody gets here
#endif
      when(ARRIVES_BEFORE_LOADING, arrive(me, false));
      load_and_reduce(me);
      unless(SECOND_BARRIER_LEFT_OUT, second_barrier(me))
    }
    kernel_boundary(me)
  }
  goto done;
failed:
#ifdef OTHER_OPERATION
  assert(operation == OPERATIONS);
#else
  assert(false);  // all run the same
#endif
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
