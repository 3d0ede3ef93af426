#include "bench/binding.hpp"

#include <sched.h>

namespace tutti::cli {

void bind_to_core(int rank, int ranks) {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return;
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
