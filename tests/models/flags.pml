// Flags, epochs and the barrier, as docs/internals/protocols.md tells them and both teams do them, over the
// weak memory. Clocks and deadlines are left out: a wait that only its deadline would end is a
// deadlock here.
//
// The model defines FIRST_FLAG, DATA_WORDS and BUFFERED, and those of the mutations named here that it is run
// with. HOST: the order of the host, where the check is stored first, the epoch behind a release.
// WHOLE_FLAGS: both words of a flag arrive at once, which leaves fewer states.
#ifndef EPOCH_COMPARED_EQUAL
#define SIGNAL_LEFT_OUT false
#define WAIT_LEFT_OUT false
#define EPOCH_COMPARED_EQUAL false
#define HALVES_NOT_COMPARED false
#define ONE_FLAG_FOR_ALL false
#define EPOCH_NOT_RELEASED false
#endif

// The flag that rank s writes in rank r's memory: two words, stored together, arriving apart.
#define EPOCH(r, s) (FIRST_FLAG + 2 * ((r) * RANKS + (ONE_FLAG_FOR_ALL -> 0 : (s))))
#define CHECK(r, s) (EPOCH(r, s) + 1)
#define WORDS (FIRST_FLAG + 2 * RANKS * RANKS)
#include "weak_memory.pml"

#define LOW(word) ((word) & 15)  // the half of a check word that repeats the epoch
#define CHECK_WORD(e) (signature * 16 + LOW(e))

#define FLAG_VARIABLES \
  byte epoch, signature, peer, seen_epoch, seen_check; \
  bool mismatch

inline store_flag(me) {
#ifdef HOST
  store(me, CHECK(peer, me), CHECK_WORD(epoch));
  unless(EPOCH_NOT_RELEASED, release(me));  // always: the language has no weaker way
  store(me, EPOCH(peer, me), epoch)
#else
  store(me, EPOCH(peer, me), epoch);
  store(me, CHECK(peer, me), CHECK_WORD(epoch))
#endif
}

inline arrive(me, releasing) {
  d_step {
#ifndef HOST
    when(releasing, release(me));
#endif
    epoch++;
    for (peer : 0 .. RANKS - 1) {
      unless(peer == me || SIGNAL_LEFT_OUT && me == 0 && peer == RANKS - 1, store_flag(me))
    }
    peer = 0
  }
}

// Has the peer of this flag come as far as this rank?
#ifdef HOST
#define HAS_COME(e, check) (EPOCH_COMPARED_EQUAL -> (e) == epoch : (e) >= epoch)
#define IS_OTHER(e, check) (LOW(check) == LOW(epoch) && (check) != CHECK_WORD(epoch))
#else
#define HAS_COME(e, check) ((EPOCH_COMPARED_EQUAL -> (e) == epoch : (e) >= epoch) && \
                            (HALVES_NOT_COMPARED || LOW(check) == LOW(e)))
#define IS_OTHER(e, check) ((e) == epoch && (check) != CHECK_WORD(epoch))
#endif

// Some of the stores to a flag become visible.
inline deliver_some_of_flag(me) {
#ifdef WHOLE_FLAGS
  do
  :: writer_ < RANKS && under_way[writer_].at[EPOCH(me, peer)] > 0 ->
     deliver(writer_, EPOCH(me, peer));
     deliver(writer_, CHECK(me, peer));
     writer_ = 0
  :: writer_ < RANKS -> writer_++
  :: else -> writer_ = 0; break
  od
#else
  deliver_some(EPOCH(me, peer));
  deliver_some(CHECK(me, peer))
#endif
}

inline look_at_flag(me) {
  deliver_some_of_flag(me);
  seen_epoch = memory[EPOCH(me, peer)];
  seen_check = memory[CHECK(me, peer)]
}

// Polls until it has. Blocks, rather than turns, where no poll can bring anything new.
inline wait_for(me) {
  do
  :: atomic {
       UNDER_WAY(EPOCH(me, peer)) || UNDER_WAY(CHECK(me, peer)) ||
       HAS_COME(memory[EPOCH(me, peer)], memory[CHECK(me, peer)]) ->
       look_at_flag(me);
       if
       :: HAS_COME(seen_epoch, seen_check) ->
          mismatch = mismatch || IS_OTHER(seen_epoch, seen_check);
          break
       :: else -> skip
       fi
     }
  od;
  atomic { seen_epoch = 0; seen_check = 0 }
}

// Sets `mismatch` where a peer runs another operation.
inline wait(me, acquiring) {
  for (peer : 0 .. RANKS - 1) {
    unless(peer == me || WAIT_LEFT_OUT && me == 0 && peer == RANKS - 1, wait_for(me))
  }
  peer = 0;
  when(acquiring, acquire(me))
}
