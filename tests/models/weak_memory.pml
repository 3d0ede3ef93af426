// A weak memory, for models of protocols: as much of the one between GPUs, or between cores, as a
// protocol may rely on.
//
//   store    waits in its writer's buffer. Buffered stores become visible in any order, but those
//            to one word in theirs, and those behind a release after all those before it.
//   release  separates a writer's stores, whosever memory they go to.
//   load     what is visible now, or what was at the reader's last acquire: a load may be done ahead
//            of its turn. A rank sees its own stores.
//   acquire  loads behind it are done after it.
//
// A rank is one block of one rank, and runs its program in order but for the above. No store has a
// moment of its own at which it becomes visible. Only a load can tell, so it is the loads that
// decide, for the stores to their word, whether they are visible by now; a store takes along what
// releases put before it. The outcomes are those of a delivery at any moment, the states far fewer.
//
// The model that includes this defines RANKS, WORDS (of all ranks together), DATA_WORDS (the first of
// them; flags, behind them, are only polled) and BUFFERED (room in a buffer; too little is an error).

#define when(condition, step) \
  if \
  :: condition -> step \
  :: else \
  fi
#define unless(mutant, step) when(!(mutant), step)

#define RELEASE 255  // in a buffer: no store but a release

typedef Buffer {
  byte word[BUFFERED];
  byte value[BUFFERED];
  byte count
}
typedef Words {
  byte at[WORDS]
}
typedef DataWords {
  byte at[DATA_WORDS]
}

byte memory[WORDS];         // what is visible
Buffer buffer[RANKS];       // what is not, by writer and in the order of the program
Words under_way[RANKS];     // how many stores to each word are in the writer's buffer
DataWords acquired[RANKS];  // what was visible at the reader's last acquire, or is its own store

#if RANKS == 2
#define UNDER_WAY(a) (under_way[0].at[a] + under_way[1].at[a] > 0)
#elif RANKS == 3
#define UNDER_WAY(a) (under_way[0].at[a] + under_way[1].at[a] + under_way[2].at[a] > 0)
#endif

byte writer_, entry_;                // within atomic steps; else 0
hidden byte at_, to_, first_, end_;  // within deterministic ones

inline append(writer, a, v) {
  assert(buffer[writer].count < BUFFERED);
  buffer[writer].word[buffer[writer].count] = a;
  buffer[writer].value[buffer[writer].count] = v;
  buffer[writer].count++
}

inline store(writer, a, v) {
  d_step {
    append(writer, a, v);
    under_way[writer].at[a]++
  }
}

inline release(writer) {
  d_step {
    if
    :: buffer[writer].count > 0 && buffer[writer].word[buffer[writer].count - 1] != RELEASE ->
       append(writer, RELEASE, 0)
    :: else
    fi
  }
}

// Entries of a buffer before `end_`, and `first_`, become visible; the others move up.
inline make_visible(writer) {
  to_ = 0;
  for (at_ : 0 .. buffer[writer].count - 1) {
    if
    :: buffer[writer].word[at_] == RELEASE && (at_ < end_ || to_ == 0)
    :: buffer[writer].word[at_] != RELEASE && (at_ < end_ || at_ == first_) ->
       memory[buffer[writer].word[at_]] = buffer[writer].value[at_];
       when(buffer[writer].word[at_] < DATA_WORDS,
            acquired[writer].at[buffer[writer].word[at_]] = buffer[writer].value[at_]);
       under_way[writer].at[buffer[writer].word[at_]]--
    :: else ->
       buffer[writer].word[to_] = buffer[writer].word[at_];
       buffer[writer].value[to_] = buffer[writer].value[at_];
       to_++
    fi
  }
  for (at_ : to_ .. buffer[writer].count - 1) {  // so that equal states look equal
    buffer[writer].word[at_] = 0;
    buffer[writer].value[at_] = 0
  }
  buffer[writer].count = to_
}

// The first store to `a` of this writer becomes visible, after all that releases put before it.
inline deliver(writer, a) {
  d_step {
    first_ = 0;
    end_ = 0;
    do
    :: buffer[writer].word[first_] == a -> break
    :: buffer[writer].word[first_] == RELEASE -> first_++; end_ = first_
    :: else -> first_++
    od;
    make_visible(writer)
  }
}

// The end of a kernel: all its stores become visible.
inline deliver_all(writer) {
  d_step {
    end_ = buffer[writer].count;
    first_ = end_;
    if
    :: end_ > 0 -> make_visible(writer)
    :: else
    fi
  }
}

// Some of the stores to `a`, of any writers, become visible.
inline deliver_some(a) {
  do
  :: writer_ < RANKS && under_way[writer_].at[a] > 0 -> deliver(writer_, a); writer_ = 0
  :: writer_ < RANKS -> writer_++
  :: else -> writer_ = 0; break
  od
}

inline own_store(reader, a, into) {
  d_step {
    for (at_ : 0 .. buffer[reader].count - 1) {
      if
      :: buffer[reader].word[at_] == a -> into = buffer[reader].value[at_]
      :: else
      fi
    }
  }
}

inline load(reader, a, into) {
  atomic {
    if
    :: under_way[reader].at[a] > 0 -> own_store(reader, a, into)
    :: else ->
       deliver_some(a);
       if
       :: into = memory[a]
       :: into = acquired[reader].at[a]
       fi
    fi
  }
}

inline acquire(reader) {
  d_step {
    for (at_ : 0 .. DATA_WORDS - 1) {
      acquired[reader].at[at_] = memory[at_]
    }
  }
}

// Between two kernels of a rank. What a peer stored to a word that this one stored to, too, may have
// come before.
inline kernel_boundary(rank) {
  atomic {
    do
    :: writer_ < RANKS && entry_ < buffer[rank].count && buffer[rank].word[entry_] != RELEASE &&
       writer_ != rank && under_way[writer_].at[buffer[rank].word[entry_]] > 0 ->
       deliver(writer_, buffer[rank].word[entry_])
    :: writer_ < RANKS && entry_ < buffer[rank].count -> writer_++
    :: writer_ == RANKS -> writer_ = 0; entry_++
    :: entry_ == buffer[rank].count -> entry_ = 0; break
    od;
    deliver_all(rank);
    acquire(rank)
  }
}

#include "mutation.pml"
