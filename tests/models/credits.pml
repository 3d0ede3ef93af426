// Bulk rows: a credit loop over a ring of slots that does not grow with the message. Each rank sends
// CHUNKS chunks an operation to the next rank, and receives as many from the one before; its two roles
// take their steps in any order. Counts only grow, over operations too.
//
//   sender    waits for a credit: what its slot held was read; stores the data; release; signal
//   receiver  waits for the signal; acquire; loads the data; gives the credit
//
// BULK: chunks go by asynchronous copies, which read their source as late as they may, and do not see
// what the program stored there unless a proxy fence is between. A chunk is prepared while the copy of
// the one before is under way.
//
//   sender    wait_source_free; stores the source; proxy_fence
//             waits for a credit; starts the copy
//             wait_written; release; signal

#define DEPTH 2  // slots of the ring
#define NEXT(r) (((r) + 1) % RANKS)
#define BEFORE(r) (((r) + RANKS - 1) % RANKS)
#define SLOT(r, chunk) ((r) * DEPTH + (chunk) % DEPTH)  // of rank r, written by the rank before
#define SOURCE(r) (RANKS * DEPTH + (r))                 // what a bulk copy reads
#define DATA_WORDS (RANKS * DEPTH + RANKS)
#define SIGNAL(r) (DATA_WORDS + (r))                    // chunks that rank r has been sent
#define CREDIT(r) (DATA_WORDS + RANKS + (r))            // chunks of rank r's that have been read
#define WORDS (DATA_WORDS + 2 * RANKS)
#define BUFFERED 12

// Mutations: what is left out, or done wrong.
#define CREDIT_WAIT_LEFT_OUT (mutation == 1)      // the wait for a credit
#define CREDIT_BEFORE_LOAD (mutation == 2)        // a credit is given before the load
#define ONE_CREDIT_TOO_MANY (mutation == 3)       // one slot of the ring
#define DATA_NOT_RELEASED (mutation == 4)         // the release before the signal
#define NO_ACQUIRE (mutation == 5)                // the acquire behind the signal
#define SIGNAL_WAIT_LEFT_OUT (mutation == 6)      // the wait for the signal
#define SIGNAL_LEFT_OUT (mutation == 7)           // one rank's last signal
#define CREDIT_LEFT_OUT (mutation == 8)           // the credits that one rank gives
#define COUNTS_NOT_KEPT (mutation == 9)           // counts from earlier operations
#define SIGNAL_BEFORE_DATA (mutation == 10)       // a signal is sent before its data
#define SOURCE_NOT_FREE (mutation == 11)          // bulk: wait_source_free
#define NO_PROXY_FENCE (mutation == 12)           // bulk: proxy_fence

#include "weak_memory.pml"

#define VALUE(r, chunk) ((KEPT + (chunk)) * RANKS + (r))  // chunks count from 1
#define LAST (operation * CHUNKS - KEPT)
#define KEPT (COUNTS_NOT_KEPT * (operation - 1) * CHUNKS)  // by nobody

#define HAS_CREDIT \
  (CREDIT_WAIT_LEFT_OUT || memory[CREDIT(me)] + DEPTH + ONE_CREDIT_TOO_MANY > started)
#define HAS_CHUNK (SIGNAL_WAIT_LEFT_OUT || memory[SIGNAL(me)] > received)

inline signal_next(me) {
  unless(DATA_NOT_RELEASED, release(me));
  unless(SIGNAL_LEFT_OUT && me == 0 && sent + 1 == LAST, store(me, SIGNAL(NEXT(me)), sent + 1))
}

#ifdef BULK
// The copy that is under way, if any, reads its source now, as the last moment at which it may.
inline read_source(me) {
  if
  :: started > sent && !source_read -> copied = memory[SOURCE(me)]; source_read = true
  :: else
  fi
}

inline prepare(me) {
  unless(SOURCE_NOT_FREE, read_source(me));  // wait_source_free
  prepared++;
  store(me, SOURCE(me), VALUE(me, prepared));
  unless(NO_PROXY_FENCE, deliver_all(me))
}

inline write_chunk(me) {
  read_source(me);
  store(me, SLOT(NEXT(me), started), copied);
  copied = 0;
  source_read = false
}
#else
inline write_chunk(me) {
  store(me, SLOT(NEXT(me), started), VALUE(me, started))
}
#endif

inline finish_chunk(me) {
  unless(SIGNAL_BEFORE_DATA, write_chunk(me));  // bulk: wait_written
  signal_next(me);
  when(SIGNAL_BEFORE_DATA, write_chunk(me));
  sent++
}

inline give_credit(me) {
  unless(CREDIT_LEFT_OUT && me == 0, store(me, CREDIT(BEFORE(me)), received + 1))
}

inline receive(me) {
  load(me, SLOT(me, received + 1), value);
  assert(value == VALUE(BEFORE(me), received + 1));  // there, and not overwritten yet
  value = 0
}

inline forget_counts() {
  started = 0;
  sent = 0;
  received = 0
#ifdef BULK
  ;
  prepared = 0
#endif
}

proctype rank(byte me) {
  byte operation, started, sent, received, value;
  bool has_come;
#ifdef BULK
  byte prepared, copied;
  bool source_read;
#define IS_PREPARED (prepared > started)
#else
#define IS_PREPARED (started < LAST)
#endif

  for (operation : 1 .. OPERATIONS) {
    do
#ifdef BULK
    :: atomic { prepared == started && prepared < LAST -> prepare(me) }
#endif
    :: atomic {  // credit_wait
         IS_PREPARED && started == sent && (HAS_CREDIT || UNDER_WAY(CREDIT(me))) ->
         deliver_some(CREDIT(me));
         when(HAS_CREDIT, started++)
       }
    :: atomic { started > sent -> finish_chunk(me) }
    :: atomic {  // the wait for the signal
         !has_come && received < LAST && (HAS_CHUNK || UNDER_WAY(SIGNAL(me))) ->
         deliver_some(SIGNAL(me));
         has_come = HAS_CHUNK;
         when(has_come && !NO_ACQUIRE, acquire(me));
         when(has_come && CREDIT_BEFORE_LOAD, give_credit(me))
       }
    :: atomic {
         has_come ->
         receive(me);
         unless(CREDIT_BEFORE_LOAD, give_credit(me));
         received++;
         has_come = false
       }
    :: sent == LAST && received == LAST -> break
    od;
    kernel_boundary(me);
    when(COUNTS_NOT_KEPT, forget_counts())
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
