// How the thread that waits for A tells the one that loads it. Both go through the same steps: the
// k-groups of a block's tiles, in their order. The first is ahead, and a word in shared memory says
// how many steps are open. So a wait for memory delays no load whose A is there. Host and device:
// what differs between them is in `Word`, which says how the word is read and written.
#pragma once

#include <climits>

#include "matmul/kernel/order.hpp"

namespace tutti {

// Of the thread that waits.
class LeadingSteps {
 public:
  // Opens the next step once `wait` has returned; all of them if it says that it has failed: false.
  template <class Word, class Wait>
  TUTTI_ORDER_INLINE bool next(Word& word, const Wait& wait) {
    const bool waited = wait();
    open_ = waited ? open_ + 1 : INT_MAX;
    word.release(open_);
    return waited;
  }
  TUTTI_ORDER_INLINE int opened() const { return open_; }

 private:
  int open_ = 0;
};

// Of the thread that loads.
class FollowingSteps {
 public:
  // Whether the next step is open, which is then the current one. The word is read only if it was
  // not open at the last look.
  template <class Word>
  TUTTI_ORDER_INLINE bool next(Word& word) {
    if (open_ <= begun_) {
      open_ = word.acquire();
      if (open_ <= begun_) return false;
      word.before_bulk_loads();
    }
    ++begun_;
    return true;
  }
  TUTTI_ORDER_INLINE int begun() const { return begun_; }

 private:
  int open_ = 0, begun_ = 0;
};

}  // namespace tutti
