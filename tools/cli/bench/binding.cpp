#include "bench/binding.hpp"

#include <sched.h>

namespace tutti::cli {

namespace {

// What this process may use; asked before the first of its threads is bound.
const cpu_set_t& usable_cores() {
  static const cpu_set_t usable = [] {
    cpu_set_t cores;
    if (::sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
    return cores;
  }();
  return usable;
}

}  // namespace

void bind_to_core(int rank, int ranks) {
  const cpu_set_t& usable = usable_cores();
  const int cores = CPU_COUNT(&usable);
  if (rank < 0 || rank >= ranks || ranks > cores) return;
  int left = rank * cores / ranks;  // spread: neighbours may be threads of one core
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);  // where it is refused, times vary more
    return;
  }
}

}  // namespace tutti::cli
