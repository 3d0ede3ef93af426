// all_reduce/two_shot over the flag barrier: each rank reduces its shard, then writes it to everyone.
// A shard is one word here.
//
// STAGED: through staging, in PASSES that use the same words one after the other; else in place: the
// output overwrites the input, and the caller's kernel both, between two operations.

#ifndef PASSES
#define PASSES 1
#endif
#define SHARD(r, s) ((r) * RANKS + (s))  // of rank r's buffer, or of its staging
#define DATA_WORDS (RANKS * RANKS)
#define FIRST_FLAG DATA_WORDS
#define BUFFERED (7 * RANKS + 2)

// Mutations: what is left out, or done wrong.
#define FIRST_BARRIER_LEFT_OUT (mutation == 1)    // the barrier before the loads
#define SECOND_BARRIER_LEFT_OUT (mutation == 2)   // the barrier behind the stores to everyone
#define STAGING_NOT_RELEASED (mutation == 3)      // the release of the first arrival
#define SHARDS_NOT_RELEASED (mutation == 4)       // the release of the second arrival
#define FIRST_WAIT_NO_ACQUIRE (mutation == 5)     // the acquire of the first wait
#define SECOND_WAIT_NO_ACQUIRE (mutation == 6)    // the acquire of the second wait
#define SIGNAL_LEFT_OUT (mutation == 7)           // one rank's flag at one peer
#define WAIT_LEFT_OUT (mutation == 8)             // one rank's wait for one peer
#define ARRIVES_BEFORE_STAGING (mutation == 9)    // the first arrival comes before the copy in
#define ARRIVES_BEFORE_STORING (mutation == 10)   // the second arrival comes before the stores
#define EPOCH_STANDS (mutation == 11)             // the second barrier has the epoch of the first
#define EPOCH_NOT_KEPT (mutation == 12)           // each operation begins with the first epoch again
#define EPOCH_COMPARED_EQUAL (mutation == 13)     // a wait asks for its epoch, not for one as late
#define HALVES_NOT_COMPARED (mutation == 14)      // a flag is taken though its halves disagree
#define ONE_FLAG_FOR_ALL (mutation == 15)         // all peers write the same flag
#define EPOCH_NOT_RELEASED (mutation == 16)       // host: the epoch may arrive before the shards

#include "flags.pml"

#define STEP ((operation - 1) * PASSES + pass - 1)
#define VALUE(r, s) ((STEP * RANKS + (s)) * RANKS + (r) + 1)  // of rank r's input
#define SUM(s) (RANKS * ((STEP * RANKS + (s)) * RANKS + 1) + RANKS * (RANKS - 1) / 2)

inline write_inputs(me) {
  for (other : 0 .. RANKS - 1) {
    store(me, SHARD(me, other), VALUE(me, other))
  }
  other = 0
}

inline load_and_reduce(me) {
  for (other : 0 .. RANKS - 1) {
    load(me, SHARD(other, me), value);
    assert(value == VALUE(other, me));  // there, and not overwritten yet
    sum = sum + value
  }
  other = 0;
  value = 0
}

inline store_to_all(me) {
  for (other : 0 .. RANKS - 1) {
    store(me, SHARD(other, me), sum)
  }
  other = 0;
  sum = 0
}

inline check_output(me) {
  atomic {
    for (other : 0 .. RANKS - 1) {
      load(me, SHARD(me, other), value);
      assert(value == SUM(other))
    }
    other = 0;
    value = 0
  }
}

inline first_barrier(me) {
#ifdef STAGED
  atomic {
    unless(ARRIVES_BEFORE_STAGING, write_inputs(me));  // the copy in
    arrive(me, !STAGING_NOT_RELEASED);
    when(ARRIVES_BEFORE_STAGING, write_inputs(me))
  }
#else
  arrive(me, false);  // the inputs were written by an earlier kernel
#endif
  wait(me, !FIRST_WAIT_NO_ACQUIRE)
}

inline second_barrier(me) {
  unless(ARRIVES_BEFORE_STORING, arrive(me, !SHARDS_NOT_RELEASED));
  wait(me, !SECOND_WAIT_NO_ACQUIRE)
}

proctype rank(byte me) {
  FLAG_VARIABLES;
  byte operation, pass, other, value, sum;

  for (operation : 1 .. OPERATIONS) {
    signature = operation;
    when(EPOCH_NOT_KEPT, epoch = 0);
    for (pass : 1 .. PASSES) {
#ifndef STAGED
      atomic {  // the caller's kernel
        write_inputs(me);
        kernel_boundary(me)
      }
#endif
      unless(FIRST_BARRIER_LEFT_OUT, first_barrier(me));
      atomic {
        load_and_reduce(me);
        when(EPOCH_STANDS, epoch--);
        when(ARRIVES_BEFORE_STORING, arrive(me, !SHARDS_NOT_RELEASED));
        store_to_all(me)
      }
      unless(SECOND_BARRIER_LEFT_OUT, second_barrier(me));
      assert(!mismatch);  // all run the same
#ifndef STAGED
      kernel_boundary(me);
#endif
      check_output(me)      // the copy out, or the caller's next kernel
    }
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
