// A rank that leaves the group while another one waits for it: who waits learns it from a notice, and
// gives up exactly where what it waits for will never come.
//
//   leaver    stores its flags; its kernels end, so that all of them are visible; gives notice
//   waiter    polls the flag; looks at the notice, acquires; polls once more before it gives up
//
// How many flags the one stores, and how many the other waits for, is any number up to MOST.

#define FLAG 0        // a load of it may be early, so it is a data word
#define NOTICE 1
#define DATA_WORDS 1
#define WORDS 2
#define BUFFERED 8

#define WAITER 0
#define LEAVER 1

// Mutations: what is left out, or done wrong.
#define NO_SECOND_POLL (mutation == 1)          // the poll between the notice and giving up
#define NO_ACQUIRE (mutation == 2)              // the acquire of the notice
#define LEFT_BEFORE_THE_END (mutation == 3)     // notice is given before the kernels have ended
#define NOTICE_LEFT_OUT (mutation == 4)         // the notice
#define NOTICE_NOT_LOOKED_AT (mutation == 5)    // the look at the notice

#include "weak_memory.pml"

byte sent, awaited;

#define HAS_NOTICE (memory[NOTICE] == 1 && !NOTICE_NOT_LOOKED_AT)
#define IS_NEWS \
  (UNDER_WAY(FLAG) || memory[FLAG] >= awaited || left || HAS_NOTICE || \
   (UNDER_WAY(NOTICE) && !NOTICE_NOT_LOOKED_AT))

proctype leaver() {
  byte flag;
  for (flag : 1 .. sent) {
    store(LEAVER, FLAG, flag)
  }
  unless(LEFT_BEFORE_THE_END, kernel_boundary(LEAVER));
  unless(NOTICE_LEFT_OUT, store(LEAVER, NOTICE, 1));
  kernel_boundary(LEAVER)
}

inline look_at_notice() {
  deliver_some(NOTICE);
  left = HAS_NOTICE;
  when(left && !NO_ACQUIRE, acquire(WAITER))
}

proctype waiter() {
  byte seen;
  bool left;
  do
  :: atomic {
       IS_NEWS ->
       when(NO_SECOND_POLL && !left, look_at_notice());
       unless(NO_SECOND_POLL && left, load(WAITER, FLAG, seen));
       if
       :: seen >= awaited -> assert(sent >= awaited); break
       :: seen < awaited && left -> assert(sent < awaited); break
       :: else
       fi
     }
     unless(NO_SECOND_POLL, atomic { look_at_notice() })
  od
}

init {
  choose_mutation();
  atomic {
    select(sent : 0 .. MOST);
    select(awaited : 1 .. MOST);
    run waiter();
    run leaver()
  }
}
